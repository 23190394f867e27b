"""Keeping an interruption from coming between a write and the answer about it.

A program that is interrupted after its event is in the log must still say so: its exit code
is what an agent goes by. Standard library only.
"""

from __future__ import annotations

import signal
from types import TracebackType

_HELD = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


class Shield:
    """From `up` to the end of the ``with`` block, interruptions of this thread wait.

    One that came in the meantime is dropped at the end: what it wanted to stop is done.
    """

    def __init__(self) -> None:
        self._before: set[signal.Signals | int] | None = None

    def __enter__(self) -> Shield:
        return self

    def up(self) -> None:
        """Begin to hold interruptions back."""
        if self._before is None and hasattr(signal, "pthread_sigmask"):
            self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is None:
            return
        while waiting := (signal.sigpending() & _HELD) - self._before:
            signal.sigwait(waiting)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
