"""A person opens `acp serve` in a real browser: the dashboard is seen there, and obeys keys."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Acp

pytest.importorskip("textual_serve", reason="needs the extra web")
client = pytest.importorskip("websockets.sync.client", reason="needs websockets")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PLENTY = 120.0  # seconds; nothing passes or fails by being quicker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]


class Browser:
    """One page of a browser without a window, spoken to as its developer tools do."""

    def __init__(self, home: Path) -> None:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        options += ["--remote-debugging-port=0", "--window-size=1300,800"]
        self._process = subprocess.Popen(
            [str(CHROMIUM), *options, f"--user-data-dir={home}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        found = None
        while not found:
            line = self._process.stderr.readline()
            assert line, "chromium ended"
            found = re.search(r"ws://([^/]+)/", line)
        with urllib.request.urlopen(f"http://{found.group(1)}/json") as told:
            page = next(tab for tab in json.load(told) if tab["type"] == "page")
        self._connection = client.connect(page["webSocketDebuggerUrl"], max_size=None)
        self._page = self._connection.__enter__()
        self._asked = 0
        self.complaints: list[str] = []
        self.do("Log.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        asked = {"id": self._asked, "method": method, "params": parameters}
        self._page.send(json.dumps(asked))
        while True:
            told = json.loads(self._page.recv(timeout=PLENTY))
            if told.get("method") == "Log.entryAdded":
                self.complaints.append(told["params"]["entry"]["text"])
            if told.get("id") == self._asked:
                result: dict[str, Any] = told["result"]
                return result

    def ask(self, script: str) -> Any:
        return self.do("Runtime.evaluate", expression=script, returnByValue=True)["result"].get(
            "value"
        )

    def open(self, address: str) -> None:
        """Open what `acp serve` serves, and wait until something is drawn."""
        self.do("Page.navigate", url=address)
        end = time.monotonic() + PLENTY
        while "-first-byte" not in str(self.ask("document.body && document.body.className")):
            assert time.monotonic() < end, "nothing is drawn"
            time.sleep(0.2)

    def picture(self) -> bytes:
        return base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"])

    def press_enter(self) -> None:
        """Press enter, wherever the page has put the focus."""
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
        self.do("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        self.do("Input.dispatchKeyEvent", type="keyUp", **key)

    def press(self, letter: str) -> None:
        self.do("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
        self.do("Input.dispatchKeyEvent", type="keyUp", key=letter)

    def wait_for(self, script: str) -> None:
        end = time.monotonic() + PLENTY
        while not self.ask(script):
            assert time.monotonic() < end, (script, self.ask("document.body.innerText"))
            time.sleep(0.2)

    def fuller_picture(self, than: bytes, press: Callable[[], None] = lambda: None) -> bytes:
        """The next picture with far more on it than another (which takes more bytes to say)."""
        end = time.monotonic() + PLENTY
        while len(shown := self.picture()) < 2 * len(than):
            assert time.monotonic() < end, "no more comes"
            press()
            time.sleep(1)
        while abs(len(after := self.picture()) - len(shown)) > len(shown) / 20:  # still drawing
            shown = after
            time.sleep(3)
        return after

    def close(self) -> None:
        self._connection.__exit__(None, None, None)
        self._process.terminate()
        self._process.communicate()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


def test_the_dashboard_is_seen_and_obeys(tmp_path: Path, browser: Browser) -> None:
    acp = Acp(tmp_path)
    assert acp("demo", "--headless", "--speed", "500", "--folder", "run").returncode == 0
    served = subprocess.Popen(
        acp.command("serve", "--port", "0", "."), cwd=tmp_path, env=acp.env,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert served.stdout is not None
        address = served.stdout.readline().split()[-1]
        blank = browser.picture()
        browser.open(address)
        assert browser.ask("location.search") == "", "the key stays in no history"
        assert browser.ask("document.title").startswith("acp on ")
        fleet = browser.fuller_picture(blank)
        collaboration = browser.fuller_picture(fleet, browser.press_enter)
        (tmp_path / "collaboration.png").write_bytes(collaboration)
        assert collaboration.startswith(b"\x89PNG")
        assert browser.ask("document.fonts.status") == "loaded"
        assert [c for c in browser.complaints if "http" in c and address[:16] not in c] == []
        assert browser.ask(
            "performance.getEntriesByType('resource')"
            ".filter(e => e.responseStatus && !e.name.startsWith(location.origin)).length"
        ) == 0  # fmt: skip
        browser.press("q")
        browser.press("q")  # from the collaboration to the fleet, and out
        browser.wait_for("document.body.className.includes('-closed')")
        browser.wait_for("document.getElementById('why').textContent.includes('You left')")
        assert browser.ask("document.activeElement.id") == "again"
        browser.press_enter()
        browser.wait_for(
            "((drawn) => drawn.includes('-first-byte') && !drawn.includes('-closed'))"
            "(document.body.className)"
        )
        served.terminate()
        served.wait()
        browser.wait_for("document.getElementById('why').textContent.includes('has stopped')")
        assert browser.ask("document.getElementById('again').hidden") is True
    finally:
        served.terminate()
        served.communicate()
