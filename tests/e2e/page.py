"""The dashboard in a real browser, as a person uses it who has nothing else at hand."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from tests.e2e.day import PATIENCE, Machine
from tests.e2e.test_browser import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """`acp serve` for a place, opened in a browser without a window."""

    def __init__(self, host: Machine, place: Path) -> None:
        words = host.words("serve", "--port", "0", place, module="acp_tui")
        self._served = subprocess.Popen(
            words, cwd=host.home, env=host.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert self._served.stdout is not None
        address = self._served.stdout.readline().split()[-1]
        self._browser = Browser(host.home / "browser")
        blank = self._browser.picture()
        self._browser.open(address)
        self._browser.fuller_picture(blank)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._browser.close()
        self._served.terminate()
        self._served.communicate()

    def allow(self, answered: Callable[[], bool]) -> None:
        """Open the card of the first request, and allow it once; again where it came too early."""
        end = time.monotonic() + PATIENCE
        while not answered():
            assert time.monotonic() < end, "nothing is answered"
            self._browser.press("f")
            time.sleep(3)
            self._browser.press("1")
            time.sleep(3)
