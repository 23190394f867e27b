"""How a command says that it cannot go on."""

from __future__ import annotations


class CommandError(Exception):
    """Ends a command with one line on the standard error and an exit code (2 by default).

    The message says what is wrong, where, and what to do; it is made safe when printed.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
