"""How the dashboard writes to a terminal: known to `Terminal`, and with the signs that it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
            app.terminal.connect(self)

    if signs == plain_signs.ALL:
        return TerminalDriver
    known = plain_signs.table(signs)

    class PlainDriver(TerminalDriver):
        """Writes what a terminal with few signs can show."""

        def write(self, data: str) -> None:
            super().write(data.translate(known))

    return PlainDriver
