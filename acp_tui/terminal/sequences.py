"""What is said to the terminal itself, past the screen: its title, its bell, its notices.

The one place that does it, so that it can be off where nobody is behind a terminal (the
browser, a test, a recording), and so that no stranger's text gets there unlooked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acp_tui.text import safe_line

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver

_SAVE, _RESTORE = "\x1b[22;2t", "\x1b[23;2t"  # the terminal keeps its titles on a stack
TITLE_LENGTH = 120
NOTICE_LENGTH = 300


class Terminal:
    """The terminal that an app runs in."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._title: str | None = None
        self._driver: Driver | None = None

    def connect(self, driver: Driver) -> None:
        """Write by ``driver`` from now on, in the order of its pictures."""
        self._driver = driver

    @property
    def reachable(self) -> bool:
        """Whether there is one: not in a browser, and not without a screen."""
        return not (self._app.is_headless or self._app.is_web)

    def title(self, text: str) -> None:
        """Set the window's title; the one before comes back by `restore`."""
        title = safe_line(text)[:TITLE_LENGTH]
        if title == self._title or not self.reachable:
            return
        self._write(("" if self._title is not None else _SAVE) + f"\x1b]2;{title}\x1b\\")
        self._title = title

    def restore(self) -> None:
        """Give the window the title back that it had."""
        if self._title is not None:
            self._write(_RESTORE)
            self._title = None

    def bell(self) -> None:
        """Ring, once."""
        if self.reachable:
            self._app.bell()

    def notice(self, title: str, text: str, way: str) -> None:
        """Have the terminal show a notice; ``way`` is ``osc9``, ``osc777`` or ``off``."""
        if way == "off" or not self.reachable:
            return
        name, words = safe_line(title)[:TITLE_LENGTH], safe_line(text)[:NOTICE_LENGTH]
        if way == "osc777":  # its parts end at semicolons
            self._write(f"\x1b]777;notify;{name.replace(';', ',')};{words.replace(';', ',')}\x1b\\")
        else:
            self._write(f"\x1b]9;{name}: {words}\x1b\\")

    def _write(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)
            self._driver.flush()
