"""What other threads and timers want done in the event loop's thread, one after another."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable


class Mailbox:
    """Collects small functions and runs them in the event loop, in order.

    Made inside a running loop. `post` may be called from any thread and does nothing once
    the mailbox or the loop is closed; the other methods belong to the loop's thread.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._posted: deque[Callable[[], object]] = deque()
        self._rung = False
        self._bell = asyncio.Event()
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._closed = False

    def post(self, function: Callable[[], object]) -> None:
        """Have ``function`` run; from any thread."""
        if self._closed:
            return
        self._posted.append(function)
        if not self._rung:  # one call wakes for all that is posted until it is taken
            self._rung = True
            try:
                self._loop.call_soon_threadsafe(self._bell.set)
            except RuntimeError:  # the loop is closed: nobody is left to do it
                self._closed = True

    def later(self, name: Hashable, delay: float, function: Callable[[], object]) -> None:
        """Have ``function`` run after ``delay`` seconds, in place of a timer of that name."""
        self.forget(name)
        if not self._closed:
            self._timers[name] = self._loop.call_later(max(0.0, delay), self._ring, name, function)

    def waits(self, name: Hashable) -> bool:
        """Whether a timer of that name is running."""
        return name in self._timers

    def forget(self, name: Hashable) -> None:
        """Stop the timer of that name, where there is one."""
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    async def run(self) -> None:
        """Wait until something is posted, and run all that is."""
        await self._bell.wait()
        self._bell.clear()
        self._rung = False  # before taking: what is posted from here on rings again
        while self._posted:
            self._posted.popleft()()

    def close(self) -> None:
        """Drop everything."""
        self._closed = True
        for name in list(self._timers):
            self.forget(name)
        self._posted.clear()

    def _ring(self, name: Hashable, function: Callable[[], object]) -> None:
        self._timers.pop(name, None)
        self._posted.append(function)
        self._bell.set()


class Mail:
    """A mailbox that may not be there (yet): then everything that is posted is dropped.

    The methods are those of `Mailbox`; ``box`` is the mailbox, or None.
    """

    def __init__(self) -> None:
        self.box: Mailbox | None = None

    def post(self, function: Callable[[], object]) -> None:
        """Have ``function`` run; from any thread."""
        box = self.box
        if box is not None:
            box.post(function)

    def later(self, name: Hashable, delay: float, function: Callable[[], object]) -> None:
        """Have ``function`` run after ``delay`` seconds, in place of a timer of that name."""
        if self.box is not None:
            self.box.later(name, delay, function)

    def waits(self, name: Hashable) -> bool:
        """Whether a timer of that name is running."""
        return self.box is not None and self.box.waits(name)

    def forget(self, name: Hashable) -> None:
        """Stop the timer of that name, where there is one."""
        if self.box is not None:
            self.box.forget(name)
