"""When collaborations are read again: after a change, at a time of their own, or at leisure."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from acp_core.fleet.first_readings import FirstReadings
from acp_core.fleet.late_cache import LateCache
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member
from acp_core.fleet.watch_list import WatchList
from acp_core.fleet.workers import Urgency, Workers
from acp_core.model import Snapshot

FAR = 60.0  # s ahead that a clock is trusted: it may jump
PATIENCE = 5.0  # s after which a reading that does not end is said to be stuck
HELP = 1.0  # s between two looks for readings that do not end
SOON = 0.5  # s at least until a Snapshot that is overdue again is read again


class Readings:
    """The readings of a fleet's members, each in its own lane of the workers.

    For the event loop's thread.

    Args:
        mail: of the fleet.
        workers: in which is read.
        clock: The time of day.
        members: by key.
        snapshots: what is shown of them, by key.
        watch_list: told which folders a reading made worth watching.
        show: takes a Snapshot that is news.
        cache: of the rows of earlier runs.
    """

    def __init__(
        self,
        mail: Mail,
        workers: Workers,
        clock: Callable[[], datetime],
        members: Mapping[str, Member],
        snapshots: Mapping[str, Snapshot],
        watch_list: WatchList,
        show: Callable[[Member, Snapshot], None],
        cache: LateCache,
    ) -> None:
        self._mail = mail
        self._workers = workers
        self._clock = clock
        self._members = members
        self._snapshots = snapshots
        self._watch_list = watch_list
        self._show = show
        self._cache = cache
        self._first = FirstReadings(
            mail, workers.lane(), clock, cache, self.schedule, self._show_all
        )
        self._numbers = itertools.count()
        self._recalling: dict[int, tuple[float, Sequence[Member]]] = {}  # since when, and which
        self._once_more: set[int] = set()  # of these, whose members are looked at again then

    def begin(self) -> None:
        """Look for readings that do not end, from now on."""
        self._mail.later("stuck", HELP, self._find_stuck)

    def end(self) -> None:
        """Nobody follows the fleet any more."""
        self._first.end()

    def forget(self, member: Member) -> None:
        """It belongs to the fleet no longer."""
        self._mail.forget(("recheck", member.key))
        self._mail.forget(("change", member.key))

    def changed(self, member: Member) -> None:
        """Refresh it: at once, but not more often than can be followed (see `pace`)."""
        now, due = time.monotonic(), member.pace.due()
        if now >= due:
            member.pace.begin(now)
            self.schedule(member, Urgency.CHANGE)
        elif not self._mail.waits(("change", member.key)):
            self._mail.later(("change", member.key), due - now, partial(self.changed, member))

    def appeared(self, members: Sequence[Member], urgency: Urgency) -> None:
        """Read these for the first time.

        Where an earlier run may tell of them, one job looks whether all is as it was: to look costs
        less than a job for each.
        """
        if len(members) > 1 and self._cache.is_of_use():
            self._look_at_all(members, urgency)
        else:
            self._schedule_all(members, urgency)

    def look_again(self, members: Iterable[Member]) -> None:
        """Read again, at leisure, what changed of these without a word.

        One job looks at those that are only known by their rows. Those that a job looks at already
        are looked at after it: it may have come to them before they changed.
        """
        under_way = {each for _, group in self._recalling.values() for each in group}
        self._once_more.update(self._recalling)
        rows: list[Member] = []
        for member in members:
            if member in under_way or self._members.get(member.key) is not member:
                continue
            if member.is_recalled and not member.queued:
                rows.append(member)
            else:
                self.schedule(member, Urgency.IDLE)
        if rows:
            self._look_at_all(rows, Urgency.IDLE)

    def _look_at_all(self, members: Sequence[Member], urgency: Urgency) -> None:
        number = next(self._numbers)
        self._recalling[number] = time.monotonic(), members
        self._workers.lane().submit(partial(self._recall, number, members, urgency), urgency)

    def _schedule_all(self, members: Iterable[Member], urgency: Urgency) -> None:
        known = [each for each in members if self._members.get(each.key) is each]
        if urgency is Urgency.IDLE and self._cache.is_of_use():
            self._first.begin(known)
        else:
            for member in known:
                self.schedule(member, urgency)

    def _recall(self, number: int, members: Sequence[Member], urgency: Urgency) -> None:
        """In a worker: show what is as it was, and have the others read."""
        known: list[Member] = []
        others: list[Member] = []
        for member in members:
            before = member.snapshot
            recalled = member.recall(self._clock())
            if recalled is None:
                others.append(member)
            elif recalled is not before:
                known.append(member)
        self._mail.post(partial(self._recalled, number, known))
        if others:
            self._mail.post(partial(self._schedule_all, others, urgency))

    def _recalled(self, number: int, members: Iterable[Member]) -> None:
        _, looked_at = self._recalling.pop(number, (0.0, ()))
        self._show_all(members)
        if number in self._once_more:
            self._once_more.discard(number)
            self.look_again(looked_at)

    def _show_all(self, members: Iterable[Member]) -> None:
        for member in members:
            self._refreshed(member)

    def schedule(self, member: Member, urgency: Urgency) -> None:
        """Read it when its turn comes."""
        if urgency is not Urgency.IDLE:
            member.away = False  # no other process is waited for
        elif member.away:
            return
        if member.queued:
            if urgency is not Urgency.IDLE:  # else it waits in its place already
                member.lane.hurry(urgency)
        else:
            member.queued = True
            member.lane.submit(partial(self._refresh, member), urgency)

    def _refresh(self, member: Member) -> None:
        """In a worker: read what changed."""
        member.queued = False  # before reading: what changes from here on is read again
        if member.away:
            return
        snapshot = member.refresh(self._clock())
        same = self._snapshots.get(member.key) is snapshot and member.watched == member.listed
        if not same or snapshot.recheck_at is not None:
            self._mail.post(partial(self._refreshed, member))

    def _refreshed(self, member: Member) -> None:
        snapshot = member.snapshot
        if snapshot is None or self._members.get(member.key) is not member:
            return
        if member.watched != member.listed and self._watch_list.claim(member):
            self.schedule(member, Urgency.CHANGE)
        news = self._snapshots.get(member.key) is not snapshot
        if news:
            self._show(member, snapshot)
        self._mail.forget(("recheck", member.key))
        if snapshot.recheck_at is not None:
            self._recheck(member, snapshot.recheck_at)

    def _recheck(self, member: Member, at: datetime) -> None:
        """Read it again at that time of the given clock, which may run apart from the real one."""
        delay = (at - self._clock()).total_seconds()
        due = partial(self.schedule, member, Urgency.CHANGE)
        if delay > FAR:
            again = partial(self._recheck, member, at)
            self._mail.later(("recheck", member.key), FAR, again)
        elif delay > 0:
            self._mail.later(("recheck", member.key), delay + 0.001, due)
        else:  # overdue already: soon, but not for ever at once
            self._mail.later(("recheck", member.key), SOON, due)

    def _find_stuck(self) -> None:
        self._workers.help()
        for number, (since, members) in list(self._recalling.items()):
            if (
                time.monotonic() - since > PATIENCE
            ):  # one of them hangs: the others wait for it no longer
                del self._recalling[number]
                self._once_more.discard(number)
                waiting = (each for each in members if not each.progress.seconds())
                self._schedule_all(waiting, Urgency.IDLE)
        for member in self._members.values():
            shown = self._snapshots.get(member.key)
            late = member.progress.seconds() > PATIENCE
            if late and (shown is None or shown is member.snapshot):
                self._show(member, member.unfinished(self._clock()))
        self._mail.later("stuck", HELP, self._find_stuck)
