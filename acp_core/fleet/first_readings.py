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
from acp_core.fleet.workers import Urgency

if TYPE_CHECKING:
    from acp_core.fleet.readers import Readers

PAUSE = 0.1  # s between two looks at what is left
IDLE = 2.0  # s without anything to read after which the processes end
SAMPLE, ENOUGH = 32, 16  # the last ones that were read tell what the next will be like


class FirstReadings:
    """For the event loop's thread.

    Args:
        mail: of the fleet.
        clock: the time of day.
        cache: of the fleet.
        schedule: has a member read by the workers.
        recalled: takes members that were recalled.
    """

    def __init__(
        self,
        mail: Mail,
        clock: Callable[[], datetime],
        cache: LateCache,
        schedule: Callable[[Member, Urgency], None],
        recalled: Callable[[Sequence[Member]], None],
    ) -> None:
        self._mail = mail
        self._clock = clock
        self._cache = cache
        self._schedule = schedule
        self._recalled = recalled
        self._left: list[Member] = []  # submitted to the workers, and perhaps not read yet
        self._kept: deque[bool] = deque(maxlen=SAMPLE)  # whether those that were read left a row
        self._readers: Readers | None = None
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
        self._left = []
        if readers is not None:
            for member in readers.close():
                member.away = False

    def _look(self) -> None:
        if len(self._left) < MANY or self._off or self._readers or self._mail.waits("first"):
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
            self._start()
        else:
            self._mail.later("first", PAUSE, self._look)

    def _start(self) -> None:
        from acp_core.fleet.readers import NICE, Readers, number  # late: few need it

        count, cache = number(), self._cache.get()
        if not count or cache is None:
            self._off, self._left = True, []
            return
        self._readers = Readers(
            count, NICE, True, cache, self._clock,
            lambda rows: self._mail.post(partial(self._took, rows)),
            lambda others: self._mail.post(partial(self._give_back, others)),
        )  # fmt: skip
        left, self._left = self._left, []
        self._send(left)
        self._mail.later("first", IDLE, self._check)

    def _send(self, members: Sequence[Member]) -> None:
        for member in members:
            member.away = True
        assert self._readers is not None
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
        for member in members:
            member.away = False
        self._recalled(members)

    def _give_back(self, members: Sequence[Member]) -> None:
        for member in members:
            member.away = False
            if member.snapshot is None:
                self._schedule(member, Urgency.IDLE)
