"""A few threads for slow things: what belongs to one lane runs one after another.

A lane is the order of one collaboration (its refreshes, loads and actions never run at
once) without any thread being blocked while it waits. The threads are daemons: a dead
network mount keeps a thread for ever, but never keeps the program from ending.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

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
