"""What a protocol's write raises that is not done. Standard library only."""

from __future__ import annotations


class Refused(Exception):
    """A write that is not done, and why: one line. Nothing was changed.

    ``code`` is the exit code that a command ends with.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class CommandError(Exception):
    """Ends a command with one line on the standard error and an exit code (2 by default).

    The message says what is wrong, where, and what to do; it is made safe when printed.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code
