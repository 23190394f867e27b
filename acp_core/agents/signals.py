"""Waiting that ends at once when something happens: a child that ends, a request to stop.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_STOP = ("SIGTERM", "SIGINT", "SIGHUP")
_NOTICE = ("SIGCHLD",)


class Signals:
    """Takes this process's signals for the length of a ``with`` block, in its main thread.

    Elsewhere it only waits.

    Attributes:
        stop: the name of the signal that asked to stop; "" as long as none did.
    """

    def __init__(self) -> None:
        self.stop = ""
        self._before: dict[int, Any] = {}
        self._wakeup = -1
        self._ends: tuple[int, int] | None = None

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            return self
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._ends = (read, write)
        self._wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for name in (*_STOP, *_NOTICE):
            number = getattr(signal, name)
            # a handler, not SIG_IGN: programs that we start would inherit that one
            self._before[number] = signal.signal(number, self._received)
        return self

    def _received(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if name in _STOP:
            self.stop = name

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until a signal comes."""
        if self._ends is None:
            threading.Event().wait(seconds)
            return
        ready, _, _ = select.select([self._ends[0]], [], [], max(0.0, seconds))
        if ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._ends[0], 4096):
                    pass

    def wake(self) -> None:
        """End the wait of the main thread, from any thread, while the ``with`` block lasts."""
        if self._ends is not None:
            with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
                os.write(self._ends[1], b"\0")

    def let_go(self) -> None:
        """Let signals do again what they did before: a process that is about to be another

        program must not take one that this one would have heeded.
        """
        self.__exit__(None, None, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ends is None:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        for end in self._ends:
            os.close(end)
        self._ends = None
