"""When a fleet looks at what it knows: which folders are watched, and whom a change in one concerns.

Participants' loops are noticed by their files, and by whether they live: a program that prints much
touches the files of its loop all the time, so they are looked at a few times a second at most, and read
only where they say something else than before. Everything is looked at now and then, although nobody
said that something changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

from acp_core.diagnosis.observer import Observer
from acp_core.files.watch import Report, Watcher
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Lane, Mail, Urgency

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
