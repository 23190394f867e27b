"""One attempt: a program from when it was started, or taken over, until it has ended.

Every protocol that runs a participant's program watches it through an `Attempt`. It never waits by
itself, so that a thread (`Attempt.wait`), a loop with signals (`acp_core.agents.session`) and an
event loop (`acp_core.agents.shielded`) can each look at it in their own rhythm. What it watches
is anything with a `Process`: a program that was started here, one that a watcher before us started
and that is known by its identity or by a lock in its folder, or a turn of a program that stays.
"""

from __future__ import annotations

import signal
import time
from typing import Protocol

from acp_core.agents.ending import GRACE
from acp_core.agents.spawn import Exit

_STEP = 0.05  # seconds between two looks


class Process(Protocol):
    """A program at work, however it was come by."""

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""

    def signal(self, number: int) -> None:
        """Send a signal to it and to everything in its process group."""


class Attempt:
    """Watches a program; whoever has it calls `poll` until the program has ended.

    Args:
        process: the program.
        grace: seconds between asking it to end and making it.

    Attributes:
        stopped: why it was asked to end; "" where it was not.
    """

    def __init__(self, process: Process, grace: float = GRACE) -> None:
        self._process = process
        self._grace = grace
        self._kill_at: float | None = None
        self.stopped = ""

    def poll(self) -> Exit | None:
        """How the program ended, or None while it runs.

        One that was asked to end and did not within its time is made to.
        """
        ended = self._process.poll()
        if ended is None and self._kill_at is not None and time.monotonic() > self._kill_at:
            self._process.signal(signal.SIGKILL)
        return ended

    def stop(self, why: str) -> bool:
        """Ask the program to end, once.

        Args:
            why: the reason; with "" nothing is done.

        Returns:
            Whether it was asked now.
        """
        if self.stopped or not why:
            return False
        self.stopped = why
        self._process.signal(signal.SIGTERM)
        self._kill_at = time.monotonic() + self._grace
        return True

    def wait(self, seconds: float | None = None, late: str = "it exceeded its time limit") -> Exit:
        """Wait until the program has ended.

        Args:
            seconds: after which it is stopped; None for never.
            late: the reason that is given then.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while (ended := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                self.stop(late)
            time.sleep(_STEP)
        return ended
