"""Neither memory nor time without a limit: whatever takes too much of one is a fault.

How long a case may take is counted in the processor's time, which a machine that has much else to
do does not lengthen. What uses none, and starts nothing that does, waits for something.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

WORKS = 120.0  # seconds of the processor's time
WAITS = 60.0  # seconds without any of it
_IDLE = 0.005  # seconds of the processor's time in a look, below which nothing was done
_AGAIN = 5.0  # seconds of it after which a limit is told once more, where that was lost
_MEMORY = 2 << 30  # bytes of address space beyond what is used already


class _Stuck(BaseException):
    """No `Exception`: readers rightly catch those, errors of time among them."""


@contextmanager
def bounded(works: float = WORKS, waits: float = WAITS, look: float = 1.0) -> Iterator[None]:
    """Run what is inside within limits.

    Args:
        works: seconds of the processor's time that it may take.
        waits: seconds that it may wait.
        look: seconds between two looks.

    Raises:
        AssertionError: it does not end.
    """
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _Watch(works, waits))
    # Again and again: what is raised inside a finalizer or a callback of the collector is lost.
    signal.setitimer(signal.ITIMER_REAL, look, look)
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, hard))
    try:
        yield
    except _Stuck as stuck:
        raise AssertionError(str(stuck)) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class _Watch:
    """Looks how much of the processor's time was used; raises in the main thread."""

    def __init__(self, works: float, waits: float) -> None:
        self._works, self._waits = works, waits
        self._last = time.process_time()
        self._until = self._last + works
        self._children = 0.0
        self._moved = time.monotonic()
        self._looks = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._looks:
            return  # the next look is due before this one is done
        self._looks = True
        try:
            self._look(frame)
        finally:
            self._looks = False

    def _look(self, frame: FrameType | None) -> None:
        used, now = time.process_time(), time.monotonic()
        if used - self._last > _IDLE or self._child_moved():
            self._moved = now
        self._last = time.process_time()  # without what this look took
        if used > self._until:
            self._until = self._last + min(self._works, _AGAIN)
            raise _Stuck(f"not done after {self._works:g} s of work, {_where(frame)}")
        if now - self._moved > self._waits:
            self._moved = now
            raise _Stuck(f"waiting for {self._waits:g} s, {_where(frame)}")

    def _child_moved(self) -> bool:
        before, self._children = self._children, 0.0
        for child in psutil.Process().children(recursive=True):
            try:
                times = child.cpu_times()
                self._children += times.user + times.system
            except psutil.Error:
                continue
        return self._children != before


def _where(frame: FrameType | None) -> str:
    """The innermost frames of a stack, the outer one first."""
    names: list[str] = []
    while frame is not None and len(names) < 6:
        code = frame.f_code
        names.insert(0, f"{os.path.basename(code.co_filename)}:{frame.f_lineno} {code.co_name}")
        frame = frame.f_back
    return " > ".join(names)
