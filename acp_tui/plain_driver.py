"""The dashboard on terminals that have few signs: what it writes passes through a table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.driver import Driver


def drawn_with_what_there_is(driver: type[Driver]) -> type[Driver]:
    """The driver, or one that writes with the signs that the terminal has (`acp_core.cli.plain_signs`).

    A page in a browser has all of them.
    """
    if "TEXTUAL_DRIVER" in os.environ:
        return driver
    from acp_core.cli import plain_signs

    signs = plain_signs.wanted(os.environ)
    if signs == plain_signs.ALL:
        return driver
    known = plain_signs.table(signs)

    class PlainDriver(driver):  # type: ignore[valid-type, misc]
        """Writes what the terminal can show."""

        def write(self, data: str) -> None:
            super().write(data.translate(known))

    return PlainDriver
