"""How the dashboard writes to a terminal: known to `Terminal`, and with the signs that it has."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from textual.driver import Driver


def terminal_driver(driver: type[Driver]) -> type[Driver]:
    """The driver for a terminal, or that for a page in a browser.

    It tells the app's `Terminal` of itself, and writes with the signs that the terminal has
    (`acp_core.cli.plain_signs`).
    """
    if "TEXTUAL_DRIVER" in os.environ:
        from acp_tui.terminal.browser_page import page_driver

        return page_driver(driver)
    from acp_core.cli import plain_signs

    signs = plain_signs.wanted(os.environ)

    class TerminalDriver(driver):  # type: ignore[valid-type, misc]
        """Writes what the terminal can show."""

        def __init__(self, app: Any, **options: Any) -> None:
            super().__init__(app, **options)
            _take_in_turn(signal.SIGTSTP, signal.SIGCONT)
            app.terminal.connect(self)

    if signs == plain_signs.ALL:
        return TerminalDriver
    known = plain_signs.table(signs)

    class PlainDriver(TerminalDriver):
        """Writes what a terminal with few signs can show."""

        def write(self, data: str) -> None:
            super().write(data.translate(known))

    return PlainDriver


def _take_in_turn(*signals: signal.Signals) -> None:
    """Have the event loop call what Textual's driver does on signals, between two other calls.

    The driver writes to the terminal then. In the midst of a write it would wait for a lock that the very
    same thread holds, and the dashboard would hang.
    """
    loop = asyncio.get_running_loop()
    for number in signals:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, partial(_soon, loop, handler))


def _soon(
    loop: asyncio.AbstractEventLoop,
    handler: Callable[[int, FrameType | None], Any],
    number: int,
    frame: FrameType | None,
) -> None:
    loop.call_soon_threadsafe(handler, number, None)
