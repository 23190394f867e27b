"""A browser without a window, driven by its own protocol over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}


class Browser:
    """One page in Chromium; use it in a ``with``.

    Args:
        program: the browser's.
        url: what to show.
        home: a folder of its own.
        width, height: of the screen, in pixels.
    """

    def __init__(self, program: str, url: str, home: Path, width: int, height: int) -> None:
        theirs, self._write = os.pipe()
        self._read, ours = os.pipe()
        # it reads commands from 3 and writes to 4; the shell puts them there
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 f"--user-data-dir={home}", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{theirs} 4>&{ours}', "bash", *words],
            pass_fds=(theirs, ours), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(ours)
        self._number, self._rest, self._session = 0, b"", ""
        self.told: list[Json] = []
        pages = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in pages if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.call("Emulation.setDeviceMetricsOverride", **screen)
        self.call("Page.navigate", url=url)
        while not any(each.get("method") == "Page.loadEventFired" for each in self.told):
            self.told.append(self._next())

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **parameters: object) -> Json:
        """Ask for something, and wait for the answer."""
        self._number += 1
        said: Json = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._write, json.dumps(said).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: Json = answer["result"]
                return result
            self.told.append(answer)

    def value(self, expression: str) -> Any:
        """What an expression gives in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, and let go of it."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=_KEYS[key],
            )  # fmt: skip

    def complaints(self) -> list[Json]:
        """What the console showed, and what went wrong in scripts."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [each for each in self.told if each.get("method") in kinds]

    def _next(self) -> Json:
        while b"\0" not in self._rest:
            more = os.read(self._read, 65_536)
            assert more, "the browser has ended"
            self._rest += more
        first, self._rest = self._rest.split(b"\0", 1)
        told: Json = json.loads(first)
        return told
