"""When a fleet looks at what it knows, and when collaborations are read.

Which folders are watched, and whom a change in one concerns. Participants' loops are noticed by their
files, and by whether they live: a program that prints much touches the files of its loop all the time, so
they are looked at a few times a second at most, and read only where they say something else than before.
Everything is looked at now and then, although nobody said that something changed.

Collaborations are read once, at first, after a change, at a time of their own, or at leisure. Read once,
in the workers, what does not end is left behind. While a fleet is followed, its own workers
read until it shows that most of what they read leaves rows, and that much is left. Then processes of
their own read (see `acp_core.fleet.readers`), and the fleet recalls. Nobody waits for them: what a
person asks for, and what changes, is read by the workers as ever.
"""

from __future__ import annotations

import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.diagnosis.observer import Observer
from acp_core.files.watch import Report, Watcher
from acp_core.fleet.kept_rows import LateCache
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Lane, Mail, Urgency, Workers
from acp_core.model import Snapshot

if TYPE_CHECKING:
    from acp_core.fleet.readers import Readers

BETWEEN_REPLACEMENTS = 0.25  # s between two replacements of the watcher's list: at least,

FOR_EACH_FOLDER = (
    0.0004  # and for each folder in it: all are watched, and all collaborations checked, anew
)


class WatchList:
    """The folders of all members, and others. For the event loop's thread.

    Args:
        mail: of the fleet.
        others: tells further folders to watch.
    """

    def __init__(self, mail: Mail, others: Callable[[], Iterable[Path]]) -> None:
        self._mail = mail
        self._others = others
        self._watcher: Watcher | None = None
        self._watched: frozenset[Path] = frozenset()
        self._members: dict[Path, list[Member]] = {}
        self._unclaimed: set[Path] = set()  # a change was heard there, and concerned nobody yet
        self._stale = False

    @property
    def note(self) -> str:
        """What the watcher has to say; "" while all is well."""
        return self._watcher.note if self._watcher else ""

    def begin(self, watcher: Watcher | None) -> None:
        """Watch with this from now on, or no longer."""
        self._watcher = watcher
        self._watched, self._stale = frozenset(), True
        self._unclaimed.clear()

    def claim(self, member: Member) -> bool:
        """Let changes in the folders that a member watches now concern it.

        Returns:
            Whether something changed in one of them before it was known whose it is. Then the
            member must be read (again): nobody will say so another time.
        """
        before, member.listed = member.listed, member.watched
        for folder in before - member.listed:
            self._leave(folder, member)
        fresh = member.listed - before
        for folder in fresh:
            self._members.setdefault(folder, []).append(member)
        self._stale = self._stale or before != member.listed
        missed = not fresh.isdisjoint(self._unclaimed)
        self._unclaimed -= fresh
        return missed

    def release(self, member: Member) -> None:
        """Nothing concerns this member any more."""
        for folder in member.listed:
            self._leave(folder, member)
        member.listed, self._stale = frozenset(), True

    def change(self) -> None:
        """The others may be other ones."""
        self._stale = True

    def settle(self) -> None:
        """Watch what is to be watched now, where that is something else than before."""
        if not self._stale or self._watcher is None or self._mail.waits("rewatch"):
            return
        self._stale = False
        wanted = frozenset(self._members).union(self._others())
        if wanted != self._watched:
            self._watched = wanted
            self._watcher.replace(wanted)
            self._mail.later(
                "rewatch", max(BETWEEN_REPLACEMENTS, FOR_EACH_FOLDER * len(wanted)), lambda: None
            )

    def concerned(self, changed: Iterable[Path]) -> Iterator[Member]:
        """The members that watch one of these folders, once for each."""
        for folder in changed:
            members = self._members.get(folder)
            if members is None:
                self._unclaimed.add(folder)
            else:
                yield from members

    def _leave(self, folder: Path, member: Member) -> None:
        members = self._members[folder]
        members.remove(member)
        if not members:
            del self._members[folder]


PACE = 0.25  # seconds between two looks at the loops' state files
PULSE = 1.0  # seconds between two looks whether their processes live


class LoopWatch:
    """Says whose loops changed. All but the looks themselves happens in the event loop's thread.

    Args:
        observer: Looks at the loops.
        lane: In which it does so.
        mail: Has functions run in the event loop's thread, at once or later.
        changed: Is told the names of collaborations whose loops changed, in that thread; none
            where only other folders are to be watched than those that were listed.
    """

    def __init__(
        self,
        observer: Observer,
        lane: Lane,
        mail: Mail,
        changed: Callable[[frozenset[str]], None],
    ) -> None:
        self._observer, self._lane = observer, lane
        self._mail, self._changed = mail, changed
        self._waiting = self._looking = False
        self._names: frozenset[str] = frozenset()
        self.folders: frozenset[Path] = frozenset()

    def begin(self) -> None:
        """Look for the first time, and go on looking."""
        self._waiting = self._looking = False
        self.check_soon()
        self._mail.later("pulse", PULSE, self._feel_pulse)

    def listed(self, names: Iterable[str]) -> frozenset[Path]:
        """The folders to be watched for these collaborations."""
        self._names = frozenset(names)
        self.folders = self._observer.folders(self._names)
        return self.folders

    def heard(self, report: Report) -> None:
        """Something changed in some folders."""
        if not self.folders.isdisjoint(report.changed):
            self.check_soon()

    def check_soon(self) -> None:
        """Look at the loops, now or as soon as that makes sense."""
        if not self._waiting:
            self._waiting = True
            self._mail.later("loops", PACE, self._check)

    def _check(self) -> None:
        if self._looking:  # a look takes long: another one after it
            self._mail.later("loops", PACE, self._check)
            return
        self._waiting, self._looking = False, True
        self._lane.submit(self._observer.refresh, Urgency.CHANGE).add_done_callback(
            lambda done: self._mail.post(lambda: self._checked(done))
        )

    def _checked(self, done: Future[frozenset[str]]) -> None:
        self._looking = False
        if done.cancelled() or done.exception() is not None:
            return
        if done.result() or self._observer.folders(self._names) != self.folders:
            self._changed(done.result())

    def _feel_pulse(self) -> None:
        if self._observer.stopped():
            self.check_soon()
        self._mail.later("pulse", PULSE, self._feel_pulse)


NET = 60.0  # s between two looks at everything, in case that a change passed unseen

LEAST_BETWEEN_LOOKS, FOR_EACH_MEMBER = (
    10.0,
    0.2,
)  # s between two looks at what is known: at least, and for each of them


class RecheckSchedule:
    """When everything is read again, so that a change that nobody signalled is seen too.

    Args:
        whole: seconds between two looks at everything, for new collaborations too. What is
            known already is looked at sooner where it is little.
    """

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self._last_whole = time.monotonic()

    def begin(self) -> None:
        """Everything is looked at now."""
        self._last_whole = time.monotonic()

    def pause(self, members: int) -> float:
        """Seconds until the next look."""
        return min(self._whole, max(LEAST_BETWEEN_LOOKS, FOR_EACH_MEMBER * members))

    def is_whole(self) -> bool:
        """Whether it is time to look at everything, and not only at what is known."""
        due = time.monotonic() >= self._last_whole + self._whole
        if due:
            self.begin()
        return due


class Rechecks:
    """Looks at everything now and then. For the event loop's thread.

    Args:
        schedule: when.
        mail: of the fleet.
        members: of the fleet, by key.
        look: has what changed of some members read.
        find: has what is new found, and looks at the participants' programs.
    """

    def __init__(
        self,
        schedule: RecheckSchedule,
        mail: Mail,
        members: Mapping[str, Member],
        look: Callable[[Iterable[Member]], None],
        find: Callable[[], None],
    ) -> None:
        self._schedule = schedule
        self._mail = mail
        self._members = members
        self._look = look
        self._find = find

    def begin(self) -> None:
        """Everything is looked at now."""
        self._schedule.begin()
        self._later()

    def everything(self) -> None:
        """Look at everything: changes may have passed unseen."""
        self._find()
        self._known()

    def _known(self) -> None:
        self._look(self._members.values())

    def _due(self) -> None:
        if self._schedule.is_whole():
            self.everything()
        else:
            self._known()
        self._later()

    def _later(self) -> None:
        self._mail.later("net", self._schedule.pause(len(self._members)), self._due)


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


PAUSE = 0.1  # s between two looks at what is left
IDLE = 2.0  # s without anything to read after which the processes end

LAST_READ, ENOUGH = 32, 16  # the last ones that were read tell what the next will be like


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
        self._kept: deque[bool] = deque(maxlen=LAST_READ)  # whether those that were read left a row
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
