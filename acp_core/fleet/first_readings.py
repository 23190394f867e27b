"""The first reading of many collaborations while a fleet is followed: other processes help.

The fleet's own workers read until it shows that most of what they read leaves rows, and that much
is left. Then processes of their own read (see `acp_core.fleet.readers`), and the fleet recalls.
Nobody waits for them: what a person asks for, and what changes, is read by the workers as ever.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from acp_core.fleet.late_cache import LateCache
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member
from acp_core.fleet.once import MANY, SHARE
from acp_core.fleet.workers import Lane, Urgency

if TYPE_CHECKING:
    from acp_core.fleet.readers import Readers

PAUSE = 0.1  # s between two looks at what is left
IDLE = 2.0  # s without anything to read after which the processes end
SAMPLE, ENOUGH = 32, 16  # the last ones that were read tell what the next will be like


class FirstReadings:
    """For the event loop's thread.

    Args:
        mail: of the fleet.
        lane: in which they are started.
        clock: the time of day.
        cache: of the fleet.
        schedule: has a member read by the workers.
        recalled: takes members that were recalled.
    """

    def __init__(
        self,
        mail: Mail,
        lane: Lane,
        clock: Callable[[], datetime],
        cache: LateCache,
        schedule: Callable[[Member, Urgency], None],
        recalled: Callable[[Sequence[Member]], None],
    ) -> None:
        self._mail = mail
        self._lane = lane
        self._clock = clock
        self._cache = cache
        self._schedule = schedule
        self._recalled = recalled
        self._left: list[Member] = []  # submitted to the workers, and perhaps not read yet
        self._kept: deque[bool] = deque(maxlen=SAMPLE)  # whether those that were read left a row
        self._starting = False
        self._readers: Readers | None = None
        self._away: dict[str, Member] = {}  # what they have
        self._busy = 0.0  # when there was something to read last
        self._off = False  # no process helps

    def begin(self, members: Iterable[Member]) -> None:
        """Have these read for the first time."""
        unread: list[Member] = []
        for member in members:
            if member.protocol and member.snapshot is None:
                unread.append(member)
            else:
                self._schedule(member, Urgency.IDLE)
        if self._readers is not None and not self._readers.closed:
            self._send(unread)
            return
        for member in unread:
            self._schedule(member, Urgency.IDLE)
        if not self._off:
            self._left += unread
            self._look()

    def end(self) -> None:
        """Have no process read any more; what is left is left."""
        readers, self._readers = self._readers, None
        if readers is not None:
            readers.close()
        for member in self._away.values():
            member.away = False
        self._left, self._away, self._starting = [], {}, False

    def _look(self) -> None:
        busy = self._starting or self._readers is not None or self._mail.waits("first")
        if len(self._left) < MANY or self._off or busy:
            return
        left: list[Member] = []
        for member in self._left:
            if member.snapshot is None:
                left.append(member)
            else:
                self._kept.append(member.kept is not None)
        self._left = left
        if len(left) < MANY:
            return
        if len(self._kept) >= ENOUGH and SHARE * sum(self._kept) >= len(self._kept):
            self._starting = True
            self._lane.submit(self._start, Urgency.CHANGE)
        else:
            self._mail.later("first", PAUSE, self._look)

    def _start(self) -> None:
        """In a worker: what they need is imported first."""
        from acp_core.fleet.readers import NICE, Readers, number  # late: few need it

        count, cache = number(), self._cache.get()
        readers = None
        if count and cache is not None and self._mail.box is not None:
            readers = Readers(
                count, NICE, True, cache, self._clock,
                lambda rows: self._mail.post(partial(self._took, rows)),
                lambda others: self._mail.post(partial(self._give_back, others)),
            )  # fmt: skip
        self._mail.post(partial(self._started, readers))

    def _started(self, readers: Readers | None) -> None:
        self._starting = False
        left, self._left = self._left, []
        if readers is None:
            self._off = True
            return
        self._readers = readers
        self._send([member for member in left if member.snapshot is None])
        self._mail.later("first", IDLE, self._check)

    def _send(self, members: Sequence[Member]) -> None:
        assert self._readers is not None
        for member in members:
            member.away, self._away[member.key] = True, member
        self._readers.offer(members)
        self._busy = time.monotonic()

    def _check(self) -> None:
        readers = self._readers
        if readers is None:
            return
        from acp_core.fleet.readers import PATIENCE, START

        if readers.left:
            self._busy = time.monotonic()
            if readers.silent() > START + PATIENCE:  # even to recall one hangs
                self._give_back(readers.close())
        self._off = self._off or readers.closed
        if self._off or time.monotonic() - self._busy > IDLE:
            self.end()
        else:
            self._mail.later("first", IDLE, self._check)

    def _took(self, members: Sequence[Member]) -> None:
        self._back(members)
        self._recalled(members)

    def _give_back(self, members: Sequence[Member]) -> None:
        self._back(members)
        for member in members:
            if member.snapshot is None:
                self._schedule(member, Urgency.IDLE)

    def _back(self, members: Iterable[Member]) -> None:
        for member in members:
            member.away = False
            self._away.pop(member.key, None)
