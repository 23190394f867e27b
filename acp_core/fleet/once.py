"""Reading some collaborations once, in the workers; what does not end is left behind."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial

from acp_core.fleet.late_cache import LateCache
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Urgency, Workers
from acp_core.model import Snapshot

MANY = 200  # members to be read: fewer are read before another process has begun
SAMPLE = 32  # of them that are read first: do they leave rows, which other processes can make?
SHARE = 4  # one in so many must
_AT_ONCE = 200  # members in one job that only looks whether anything changed


class Once:
    """Reads members, each once.

    Args:
        workers: in which is read.
        clock: the time of day.
        patience: Seconds without any that ended or got on, after which the others are stuck.
        cache: of the fleet.
    """

    def __init__(
        self,
        workers: Workers,
        clock: Callable[[], datetime],
        patience: float,
        cache: LateCache,
    ) -> None:
        self._workers = workers
        self._clock = clock
        self._patience = patience
        self._cache = cache
        self._known: dict[str, Snapshot] = {}
        self._reading: dict[str, Future[Snapshot]] = {}

    def read(
        self, members: Sequence[Member], teaches: bool = False
    ) -> Iterator[tuple[Member, Snapshot]]:
        """Each with its Snapshot; that of one that did not end says so.

        Args:
            members: what to read.
            teaches: Whether members are to know what cases they taught.
        """
        if self._cache.is_of_use():
            for member in members:
                member.lets_go, member.teaches = True, teaches
        self._recall(members)
        left: Sequence[Member] = [each for each in members if each.key not in self._known]
        if len(left) >= MANY and self._cache.is_of_use():
            left = self._elsewhere(left, teaches)
        self._begin(left)
        self._wait(members)
        for member in members:
            snapshot = self._known.get(member.key)
            if snapshot is None:
                future = self._reading[member.key]
                snapshot = future.result() if future.done() else member.unfinished(self._clock())
            yield member, snapshot

    def _recall(self, members: Sequence[Member]) -> None:
        """Those of which an earlier run says enough: many in one job, since each takes next to nothing."""

        def some(chosen: Sequence[Member]) -> dict[str, Snapshot]:
            found = ((member.key, member.recall(self._clock())) for member in chosen)
            return {key: snapshot for key, snapshot in found if snapshot is not None}

        parts = [members[start : start + _AT_ONCE] for start in range(0, len(members), _AT_ONCE)]
        lanes = self._workers.lane
        recalling = [lanes().submit(partial(some, part), Urgency.CHANGE) for part in parts]
        wait(recalling, timeout=self._patience)
        for future in recalling:
            if future.done():
                self._known |= future.result()

    def _begin(self, members: Sequence[Member]) -> None:
        """Have these read by the workers."""
        for member in members:
            read = partial(member.refresh, self._clock())
            self._reading[member.key] = member.lane.submit(read, Urgency.CHANGE)

    def _wait(self, members: Sequence[Member]) -> None:
        pending, last = set(self._reading.values()), time.monotonic()
        while pending and time.monotonic() - last < self._patience:
            done, pending = wait(pending, timeout=1)
            if done or any(member.progress.advances() for member in members):
                last = time.monotonic()
            self._workers.help()

    def _elsewhere(self, members: Sequence[Member], teaches: bool) -> Sequence[Member]:
        """Have these read by other processes, where that is of use; gives those that are left."""
        from acp_core.fleet.readers import PATIENCE, START, Readers, number  # late: few need it

        count, cache = number(), self._cache.get()
        if not count or cache is None:
            return members
        sample = members[:: len(members) // SAMPLE]
        self._begin(sample)
        self._wait(sample)
        if SHARE * sum(member.kept is not None for member in sample) < len(sample):
            return [member for member in members if member.key not in self._reading]
        left = {
            member.key: member
            for member in members
            if member.key not in self._reading and member.protocol
        }
        given: queue.SimpleQueue[tuple[bool, Sequence[Member]]] = queue.SimpleQueue()
        reading = Readers(
            count, 0, teaches, cache, self._clock,
            lambda rows: given.put((True, rows)), lambda others: given.put((False, others)),
        )  # fmt: skip
        reading.offer(left.values())
        while left:
            try:
                are_rows, some = given.get(timeout=1)
            except queue.Empty:
                if reading.silent() < START + PATIENCE:
                    continue
                are_rows, some = False, reading.close()  # even to recall one hangs
            for member in some:
                del left[member.key]
                if are_rows and member.snapshot is not None:
                    self._known[member.key] = member.snapshot
            if not are_rows:
                self._begin(some)
        reading.close()
        known = self._known.keys() | self._reading.keys()
        return [member for member in members if member.key not in known]
