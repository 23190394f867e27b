"""Whether a thread that is long about its work gets on with it, or waits for something outside."""

from __future__ import annotations

import math
import threading
import time

import psutil

_LEAST = 0.05  # s of the processor that count; it is counted in ticks of a hundredth


class Progress:
    """The work of one thread at a time.

    A thread that computes gets on: it is slow, but it ends. One that waits, for a disk or a network,
    uses no processor.
    """

    def __init__(self) -> None:
        self._thread: int | None = None
        self._began = self._used = 0.0

    def begin(self, *, computes: bool = True) -> None:
        """The calling thread begins; unless it ``computes``, all it could do for long is wait."""
        self._used = time.thread_time() if computes else math.inf
        self._began = time.monotonic()
        self._thread = threading.get_native_id()

    def end(self) -> None:
        """It has ended."""
        self._thread = None

    def seconds(self) -> float:
        """For how long it has been at it; 0 where it is not."""
        return time.monotonic() - self._began if self._thread is not None else 0.0

    def advances(self) -> bool:
        """Whether it used the processor since this was last asked with that answer, or it began."""
        thread = self._thread
        if thread is None or self._used == math.inf:
            return False
        try:
            threads = psutil.Process().threads()
        except (psutil.Error, OSError):
            return False
        used = sum(each.user_time + each.system_time for each in threads if each.id == thread)
        if used < self._used + _LEAST:
            return False
        self._used = used
        return True
