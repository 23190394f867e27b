"""Processes that read finished collaborations for a fleet, so that more than one processor does.

One Python reads with one processor, however many threads it has. Each process is given folders, a
batch at a time, and gives back what the fleet's cache would have kept of them in an earlier run
(see `acp_core.fleet.snapshot_cache`). The fleet recalls that as it does in any later run: it
compares sizes, times and identities itself. What does not come back as a row, the fleet reads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from acp_core.agents import background
from acp_core.fleet.member import Member
from acp_core.fleet.reader import (
    Answer,
    Batch,
    Folder,
    Order,
    read_answer,
    write_batch,
    write_order,
)
from acp_core.fleet.snapshot_cache import SnapshotCache
from acp_core.protocols.processes import READER

_log = logging.getLogger(__name__)

PROCESSES = 4  # at most: more of them make more rows than one fleet takes
BATCH = 25  # collaborations that a process is given at once
AHEAD = 2  # batches that a process has, so that it need not wait for the next one
START, PATIENCE = 15.0, 5.0  # s that it has for its first answer, and for each one after
LINE = 8 << 20  # bytes of an answer at most
ROOM = 16 << 10  # bytes of a batch at most: what it has not read yet must find room in a pipe
SAMPLE = 48  # answers after which it is known what comes of it
SHARE = 0.25  # of the answers that must be rows: else the fleet had better read them itself
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of the control group of this process, in a container
NICE = 3  # of those beside a thread that draws: two of them have what one thread of it would have

Take = Callable[[Sequence[Member]], None]


def processors() -> int:
    """How many this process may use."""
    count = getattr(os, "process_cpu_count", os.cpu_count)() or 1  # the former since Python 3.13
    if hasattr(os, "sched_getaffinity"):
        count = min(count, len(os.sched_getaffinity(0)))
    return max(1, min(count, _quota()))


def _quota() -> int:
    """How many the control group of this process may use, as far as it can see that."""
    with contextlib.suppress(OSError, ValueError), QUOTA.open() as file:
        most, period = file.read().split()
        return max(1, int(most) // int(period))
    return 1 << 16


def number() -> int:
    """How many reading processes there may be; none where this one has no processor to spare."""
    found = processors()
    return min(PROCESSES, found) if found > 1 else 0


class _Useless(Exception):
    """A process ended, does not answer, or answers what it was not asked."""


class _Process:
    """One of them. For one thread."""

    def __init__(self, order: Order) -> None:
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", READER.module],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=background.environment(),
            )
        except OSError as error:
            raise _Useless(str(error)) from None
        assert self._child.stdin is not None and self._child.stdout is not None
        self._given, self._out = self._child.stdin, self._child.stdout
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        os.set_blocking(self._given.fileno(), False)
        self._rest = b""
        self._patience = START
        try:
            self._write(write_order(order))
        except _Useless:
            self.end()
            raise

    def ask(self, line: bytes) -> None:
        """Give it a batch.

        Raises:
            _Useless: it does not take that.
        """
        self._write(line)

    def _write(self, line: bytes) -> None:
        try:
            written = self._given.write(line)
        except OSError as error:
            raise _Useless(str(error)) from None
        if written != len(line):  # it has not read what it was given long ago
            raise _Useless("it takes nothing")

    def answers(self) -> list[Answer]:
        """The next ones, waited for.

        Raises:
            _Useless: there are none.
        """
        while True:
            if not self._poll.poll(self._patience * 1_000):
                raise _Useless("it does not answer")
            data = os.read(self._out.fileno(), 1 << 16)
            if not data:
                raise _Useless("it ended")
            *lines, self._rest = (self._rest + data).split(b"\n")
            if len(self._rest) > LINE:
                raise _Useless("its answer has no end")
            if lines:
                self._patience = PATIENCE
                try:
                    return [read_answer(line) for line in lines]
                except (ValueError, TypeError, RecursionError):
                    raise _Useless("its answer is none") from None

    def kill(self) -> None:
        """End it at once, from any thread; its own one notices that."""
        self._child.kill()

    def end(self) -> None:
        """End it at once, and let go of it."""
        self.kill()
        for each in (self._given, self._out):
            with contextlib.suppress(OSError):
                each.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a dead disk
            self._child.wait(1)


class Readers:
    """Some of these processes, each with a thread that gives it batches.

    Each member that is offered is given back once, as one of ``rows`` or of ``others``.

    Args:
        count: how many processes.
        nice: by how much they run at a lower priority.
        teaches: whether members are to know what cases they taught.
        cache: of the fleet.
        clock: the time of day.
        rows: takes members that were recalled; in a thread of its own, as ``others``.
        others: takes members that the fleet has to read.
    """

    def __init__(
        self,
        count: int,
        nice: int,
        teaches: bool,
        cache: SnapshotCache,
        clock: Callable[[], datetime],
        rows: Take,
        others: Take,
    ) -> None:
        self._order = Order(cache.context, nice, teaches)
        self._cache = cache
        self._clock = clock
        self._rows = rows
        self._others = others
        self._news = threading.Condition()
        self._waiting: deque[Member] = deque()
        self._out: dict[str, Member] = {}  # offered, and not given back
        self._processes: set[_Process] = set()
        self._answered = self._recalled = 0
        self._closed = False
        self._alive = count
        self._last = time.monotonic()
        for _ in range(count):
            threading.Thread(target=self._work, name="acp-reader", daemon=True).start()

    @property
    def closed(self) -> bool:
        """Whether nothing is read any more: it was closed, is of no use, or all processes ended."""
        return self._closed

    @property
    def left(self) -> int:
        """How many are not given back yet."""
        return len(self._out)

    def silent(self) -> float:
        """Seconds since the last one was given back."""
        return time.monotonic() - self._last

    def offer(self, members: Iterable[Member]) -> None:
        """Have these read; where nothing can be read any more, they are given back at once."""
        offered = {member.key: member for member in members}
        with self._news:
            closed = self._closed
            if not closed:
                self._out |= offered
                self._waiting.extend(offered.values())
                self._news.notify_all()
        if closed:
            self._others([*offered.values()])

    def close(self) -> list[Member]:
        """End all processes; the members that are left are given back here."""
        with self._news:
            self._closed = True
            self._waiting.clear()
            left, self._out = [*self._out.values()], {}
            for process in self._processes:
                process.kill()
            self._news.notify_all()
        return left

    # in the threads

    def _work(self) -> None:
        asked: deque[dict[str, Member]] = deque()
        process: _Process | None = None
        try:
            while (batch := self._next(len(asked))) or asked:
                if batch:
                    asked.append(batch)
                process = process or self._begin()
                if batch:
                    process.ask(self._line(batch))
                else:
                    self._took(process.answers(), asked)
        except _Useless as error:
            _log.info("a reading process is of no use: %s", error)
        except Exception:  # a fault here only makes it slower
            _log.warning("a reading process cannot be used", exc_info=True)
        finally:
            self._give_back([member for each in asked for member in each.values()], self._others)
            self._ended(process)

    def _begin(self) -> _Process:
        process = _Process(self._order)
        with self._news:
            self._processes.add(process)
            closed = self._closed
        if closed:
            process.kill()
        return process

    def _ended(self, process: _Process | None) -> None:
        with self._news:
            self._alive -= 1
            last = not self._alive
        if last and (left := self.close()):
            self._others(left)
        if process is not None:
            with self._news:
                self._processes.discard(process)
            process.end()

    def _next(self, asked: int) -> dict[str, Member]:
        """What a process is asked next, of which so many batches are asked.

        Returns:
            Nothing where it has enough for now; with nothing asked, where there never is any more.
        """
        batch: dict[str, Member] = {}
        size = 0
        with self._news:
            while not asked and not self._waiting and not self._closed:
                self._news.wait()
            if self._closed or asked == AHEAD:
                return batch
            while self._waiting and len(batch) < BATCH:
                size += 6 * len(self._waiting[0].key) + 6 * len(self._waiting[0].real) + 100
                if batch and size > ROOM:
                    break
                member = self._waiting.popleft()
                batch[member.key] = member
            return batch

    def _line(self, batch: dict[str, Member]) -> bytes:
        folders = [Folder(each.key, each.protocol, each.real) for each in batch.values()]
        return write_batch(Batch(self._clock(), folders))

    def _took(self, answers: Iterable[Answer], asked: deque[dict[str, Member]]) -> None:
        rows: list[Member] = []
        others: list[Member] = []
        now = self._clock()
        try:
            for answer in answers:
                member = asked[0].pop(answer.key, None) if asked else None
                if member is None:
                    raise _Useless("it answers what it was not asked")
                if not asked[0]:
                    asked.popleft()
                (rows if self._is_row(member, answer, now) else others).append(member)
                self._last = time.monotonic()
        finally:
            self._give_back(rows, self._rows)
            self._give_back(others, self._others)
        with self._news:
            self._answered += len(rows) + len(others)
            self._recalled += len(rows)
            useless = self._answered >= SAMPLE and self._recalled < SHARE * self._answered
        if useless and (left := self.close()):
            self._others(left)

    def _is_row(self, member: Member, answer: Answer, now: datetime) -> bool:
        if answer.entry is None:
            return False
        self._cache.take(member.key, answer.entry)
        if member.recall(now, wait=False) is None:
            return False
        member.cases = answer.cases
        return True

    def _give_back(self, members: Iterable[Member], take: Take) -> None:
        with self._news:
            known = [member for member in members if self._out.pop(member.key, None) is not None]
        if known:
            take(known)
