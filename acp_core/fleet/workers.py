"""A few threads for slow things: what belongs to one lane runs one after another.

A lane is the order of one collaboration (its refreshes, loads and actions never run at
once) without any thread being blocked while it waits. The threads are daemons: a dead
network mount keeps a thread for ever, but never keeps the program from ending. What they and
timers want done in the event loop's thread goes through the mailbox, one after another. The outbox
says when changes are told: the first at once, a flood coalesced, always the last state. It is pure: the
time is given (seconds of a clock that only goes forward).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from acp_core.model import Snapshot

T = TypeVar("T")

THREADS = 2  # one reads while the other waits for a disk: more only take Python from each other
SPARE = 14  # more threads at most, started while all others are stuck
STUCK = 1.0  # s after which a job counts as stuck


class Urgency(IntEnum):
    """Which lane goes first: what a person waits for, what changed, what may as well wait."""

    CALL = 0
    CHANGE = 1
    IDLE = 2


class _Job(NamedTuple):
    future: Future[Any]
    function: Callable[[], Any]
    urgency: Urgency


class Lane:
    """Jobs that never run at once; see `Workers.lane`."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._jobs: deque[_Job] = deque()
        self._running = False

    def submit(self, function: Callable[[], T], urgency: Urgency = Urgency.CALL) -> Future[T]:
        """Run ``function`` in a worker after those that were submitted before it.

        The result is not to be waited for from inside a function of the same lane.
        """
        future: Future[T] = Future()
        with self._lock:
            self._jobs.append(_Job(future, function, urgency))
        if not self._workers._offer(self, urgency):
            self._cancel()
        return future

    def hurry(self, urgency: Urgency) -> None:
        """Let what waits here be as urgent as that."""
        self._workers._offer(self, urgency)

    def _run_one(self) -> None:
        with self._lock:
            if self._running or not self._jobs:
                return  # whoever runs it offers it again
            self._running = True
            job = self._jobs.popleft()
        try:
            _run(job)
        finally:
            with self._lock:
                self._running = False
                next_one = min((job.urgency for job in self._jobs), default=None)
            if next_one is not None and not self._workers._offer(self, next_one):
                self._cancel()

    def _cancel(self) -> None:
        with self._lock:
            jobs, self._jobs = self._jobs, deque()
        for job in jobs:
            job.future.cancel()
            job.future.set_running_or_notify_cancel()


class Workers:
    """A few daemon threads and the lanes that they serve."""

    def __init__(self, threads: int = THREADS) -> None:
        self._offered: list[tuple[Urgency, int, Lane]] = []  # a heap
        self._order = itertools.count()
        self._news = threading.Condition()
        self._most = threads
        self._threads = 0
        self._busy: dict[int, float] = {}  # since when each thread runs a job
        self._closed = False

    def lane(self) -> Lane:
        """A new lane."""
        return Lane(self)

    def help(self) -> bool:
        """Start one more thread where jobs wait and all threads seem stuck; True if so.

        To be called every now and then while jobs wait.
        """
        with self._news:
            latest = time.monotonic() - STUCK
            stuck = len(self._busy) == self._threads and all(
                since < latest for since in self._busy.values()
            )
            room = self._threads < self._most + SPARE
            if self._offered and stuck and room and not self._closed:
                self._start()
                return True
            return False

    def close(self) -> None:
        """Let the threads end once they are free; jobs that have not begun are cancelled."""
        with self._news:
            self._closed = True
            waiting, self._offered = self._offered, []
            self._news.notify_all()
        for _, _, lane in waiting:
            lane._cancel()

    def _offer(self, lane: Lane, urgency: Urgency) -> bool:
        with self._news:
            if self._closed:
                return False
            heapq.heappush(self._offered, (urgency, next(self._order), lane))
            free = self._threads - len(self._busy)
            if len(self._offered) > free and self._threads < self._most:
                self._start()
            self._news.notify()
            return True

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="acp-worker", daemon=True).start()

    def _work(self) -> None:
        me = threading.get_ident()
        while True:
            with self._news:
                self._busy.pop(me, None)
                while not self._offered and not self._closed:
                    self._news.wait()
                if self._closed:
                    return
                lane = heapq.heappop(self._offered)[2]
                self._busy[me] = time.monotonic()
            lane._run_one()


def _run(job: _Job) -> None:
    if not job.future.set_running_or_notify_cancel():
        return
    try:
        result = job.function()
    except BaseException as error:  # it belongs to whoever waits for the result
        job.future.set_exception(error)
    else:
        job.future.set_result(result)


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


PACE = 1 / 30  # s between two batches: more cannot be seen
FIRST = 25  # snapshots that make a batch during the first look,
FIRST_WAIT = 0.05  # or the seconds that the first of them waits
PART = 2  # of what the reader knows already: one part in so many makes a batch, once that is more,
LONGEST_WAIT = 0.5  # and is waited for longer: with each batch the whole fleet is arranged anew


@dataclass(frozen=True, slots=True)
class Batch:
    """What changed in a fleet since the batch before.

    ``snapshots`` are new, in the order in which the collaborations were found; ``gone`` are
    the keys of those that are no more; ``loops`` the keys of those whose participants' loops
    changed in any way (see `Fleet.loops`). ``complete`` is False while the first look goes on.
    ``note`` says what a reader should know of how all this was found, such as
    "polling ..."; it holds until another batch says otherwise.
    """

    snapshots: tuple[Snapshot, ...]
    gone: tuple[str, ...] = ()
    complete: bool = True
    note: str = ""
    loops: tuple[str, ...] = ()


class Outbox:
    """Collects what changed until it is due."""

    def __init__(self) -> None:
        self._fresh: dict[str, Snapshot] = {}
        self._gone: dict[str, None] = {}
        self._loops: dict[str, None] = {}
        self._told: set[str] = set()  # the keys that the reader knows
        self._changed = False  # one of those has news
        self._said: tuple[bool, str] = (False, "")
        self._batch_at = self._fresh_at = float("-inf")

    def show(self, key: str, snapshot: Snapshot, now: float) -> None:
        """A new Snapshot, in place of one that was not said yet."""
        if not self._fresh:
            self._fresh_at = now
        self._gone.pop(key, None)
        self._changed = self._changed or key in self._told
        self._fresh[key] = snapshot

    def tell_loops(self, key: str) -> None:
        """Loops of a collaboration changed."""
        self._loops[key] = None

    def drop(self, key: str) -> None:
        """A collaboration is no more."""
        self._fresh.pop(key, None)
        self._loops.pop(key, None)
        if key in self._told:
            self._gone[key] = None

    def due(self, complete: bool, note: str) -> float | None:
        """When the next batch is due, None where there is nothing to say.

        The end of the first look is said at once, even where nothing was found.
        """
        if complete and not self._said[0]:
            return float("-inf")
        if not complete:
            known = len(self._told)
            if len(self._fresh) >= max(FIRST, known // PART):
                return float("-inf")
            grown = 1.0 if self._changed else max(1.0, known / (FIRST * PART))
            wait = min(LONGEST_WAIT, FIRST_WAIT * grown)
            return self._fresh_at + wait if self._fresh else None
        if self._fresh or self._gone or self._loops or note != self._said[1]:
            return self._batch_at + PACE
        return None

    def take(self, complete: bool, note: str, now: float, order: Callable[[str], int]) -> Batch:
        """The batch, with its Snapshots by ``order`` of their keys."""
        snapshots = tuple(self._fresh[key] for key in sorted(self._fresh, key=order))
        loops = tuple(sorted(self._loops, key=order))
        batch = Batch(snapshots, tuple(self._gone), complete, note, loops)
        self._told.difference_update(self._gone)
        self._told.update(self._fresh)
        self._fresh, self._gone, self._loops, self._changed = {}, {}, {}, False
        self._said, self._batch_at = (complete, note), now
        return batch
