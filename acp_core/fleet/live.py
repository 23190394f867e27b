"""All collaborations under some paths: found, opened, watched and read, as a stream of changes.

The way of data is one circle: the watcher says that something changed, the collaborations
that care are refreshed in worker threads, their new Snapshots come out as a `Batch`. Protocols that
serve one collaboration to others are handed it watched (`watch`). How long things take is learned
from what was read, in the workers and at leisure (`Forecasting`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from acp_core.diagnosis.observer import Loops, Observer
from acp_core.files.journal import without_collector
from acp_core.files.watch import Report, Watcher
from acp_core.fleet.discovery import (
    Calls,
    Discoverer,
    Listings,
    RunningDiscoverer,
    Unread,
    find_running,
    sorted_out,
)
from acp_core.fleet.kept_rows import KeptRows
from acp_core.fleet.member import Member, NoCollaboration
from acp_core.fleet.readings import (
    NET,
    PATIENCE,
    LoopWatch,
    Once,
    Readings,
    Rechecks,
    RecheckSchedule,
    WatchList,
)
from acp_core.fleet.workers import Batch, Lane, Mail, Mailbox, Outbox, Urgency, Workers
from acp_core.history.forecast import Forecast, cases_of
from acp_core.model import Action, Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Collaboration, Watched
from acp_core.protocols.discovery import FOLDERS, Changes, DiscoveredCollaboration, Explorer
from acp_core.protocols.locations import RUNNING, SearchRoot, is_link

if TYPE_CHECKING:
    from acp_core.history.durations import Durations
    from acp_core.history.recorder import Recorder

__all__ = ["Batch", "Fleet", "NoCollaboration"]

_log = logging.getLogger(__name__)

EACH = 0.0002  # s for each collaboration: what was read is put in order and drawn before
REST = 2.0  # s after a change until it is learned from: by then most floods are over


def late_durations(keep: bool) -> Durations:
    """A memory of how long things took, imported when it is wanted: what was read is shown before."""
    from acp_core.history.durations import Durations

    return Durations(keep=keep)


class Forecasting:
    """Keeps `forecast` up to date while a fleet is followed.

    Each collaboration is learned from in its own lane, once after each change. The methods are
    for the event loop's thread; `forecast` may be read from anywhere.

    Args:
        mail: of the fleet.
        lane: in which what was learned is put together and kept.
        members: by key.
        make: makes the memory; called in the lane, for it may read a file.
    """

    def __init__(
        self,
        mail: Mail,
        lane: Lane,
        members: Mapping[str, Member],
        make: Callable[[], Durations],
    ) -> None:
        self.forecast = Forecast()
        self._mail = mail
        self._lane = lane
        self._members = members
        self._make = make
        self._durations: Durations | None = None
        self._changed: set[str] = set()
        self._begun = self._ready = False
        self._learning = 0  # collaborations that are being learned from
        self._concluding = False

    @property
    def is_up_to_date(self) -> bool:
        """Whether `forecast` knows all that can be learned from what was read."""
        return self._ready and not (self._changed or self._learning or self._concluding)

    def begin(self) -> None:
        """Everything was read: begin to learn from it."""
        if not self._begun:
            self._begun = True
            self._changed.update(self._members)
            pause = EACH * len(self._members)
            self._mail.later(
                "forecast", pause, partial(self._lane.submit, self._open, Urgency.IDLE)
            )

    def changed(self, key: str) -> None:
        """There is a new Snapshot of a collaboration."""
        self._changed.add(key)
        self._learn_soon()

    def _learn_soon(self) -> None:
        if self._ready and not self._learning and not self._mail.waits("forecast"):
            self._mail.later("forecast", REST, self._learn)

    def _learn(self) -> None:
        keys, self._changed = self._changed, set()
        for key in keys:
            if key in self._members:
                self._learning += 1
                member = self._members[key]
                learning = member.lane.submit(partial(self._learn_from, member), Urgency.IDLE)
                learning.add_done_callback(lambda _: self._mail.post(self._learned))

    def _learned(self) -> None:
        self._learning -= 1
        if not self._learning:
            self._concluding = True
            concluding = self._lane.submit(self._conclude, Urgency.IDLE)
            concluding.add_done_callback(lambda _: self._mail.post(self._concluded))
            if self._changed:
                self._learn_soon()

    def _concluded(self) -> None:
        self._concluding = False

    def _opened(self) -> None:
        self._ready = True
        self._learn_soon()

    # in the workers

    def _open(self) -> None:
        self._durations = self._make()
        self.forecast = self._durations.forecast()
        self._durations.read_recordings()
        self._mail.post(self._opened)

    def _learn_from(self, member: Member) -> None:
        if self._durations is not None and member.snapshot is not None:
            learn_from(self._durations, member, member.snapshot)

    def _conclude(self) -> None:
        if self._durations is not None and self._durations.save():
            self.forecast = self._durations.forecast()


def learn_from(durations: Durations, member: Member, snapshot: Snapshot) -> None:
    """Learn from one collaboration where something in it is new; in its lane."""
    try:
        if durations.wants(snapshot):
            known = member.cases  # where it was read by another process, or let go
            durations.learn(snapshot, cases_of(*member.past()) if known is None else known)
            member.cases = None
    except Exception:  # a fault in a protocol's code must not end the fleet
        _log.info("nothing was learned of %s", member.key, exc_info=True)


def learn_once(members: Iterable[Member], make: Callable[[], Durations]) -> Forecast:
    """What is known after some collaborations were read once; slow."""
    durations = make()
    durations.read_recordings()
    for member in members:
        if member.snapshot is not None and durations.wants(member.snapshot):
            member.lane.submit(
                partial(learn_from, durations, member, member.snapshot), Urgency.CHANGE
            ).result()
    durations.save()
    return durations.forecast()


T = TypeVar("T")


class Fleet:
    """The collaborations under ``paths``.

    Everything slow happens in a few worker threads; what is done with one collaboration
    never happens at once. Use `changes` for a live view, or `read` for a single look.

    Args:
        paths: Where to look (see `acp_core.protocols.locations`). They may overlap, and need not exist.
        clock: The time of day, for what depends on it.
        discover: False: the paths themselves are collaborations; one that is none becomes a
            Snapshot that is unreachable and says why.
        poll: As for `acp_core.files.watch.Watcher`.
        observer: Knows participants' loops, for what keeps collaborations from going on.
        recorder: Keeps what is read; closed with the fleet.
        rows: Who looks at Snapshots needs a row's facts only, or asks `whole` before: what ended
            long ago need not be read, then, nor held.
    """

    def __init__(
        self,
        paths: Sequence[SearchRoot],
        *,
        clock: Callable[[], datetime] = utc_now,
        discover: bool = True,
        poll: bool | None = None,
        observer: Observer | None = None,
        recorder: Recorder | None = None,
        rows: bool = False,
    ) -> None:
        self._running = RUNNING in paths
        paths = [path for path in paths if path != RUNNING]
        folders = (Path(os.path.abspath(path)) for path in paths if not is_link(path))
        self._paths = tuple(dict.fromkeys(folders))
        self._links, lists = sorted_out(str(path) for path in paths if is_link(path))
        self._clock = clock
        self._discover = discover
        self._poll = poll
        self._workers = Workers()
        self._observer = observer or Observer()
        self._recorder = recorder
        self._order = itertools.count()
        self._members: dict[str, Member] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._problems: dict[str, str] = {}
        self._cut = False
        # Below: while `changes` runs, and by the event loop's thread only.
        self._mail = Mail()
        self._watch_list = WatchList(self._mail, self._others)
        roots = self._paths if discover else ()
        self._rows = KeptRows(
            roots, self._observer, self._members, self._mail, self._workers, clock, recorder, rows
        )
        self._readings = Readings(
            self._mail, self._workers, clock, self._members, self._snapshots, self._watch_list,
            self._show, self._rows.cache,
        )  # fmt: skip
        self._rechecks = Rechecks(
            RecheckSchedule(self._observer.patience.scaled(NET)), self._mail, self._members,
            self._readings.look_again, self._find_anew,
        )  # fmt: skip
        self._loop_watch = LoopWatch(
            self._observer, self._workers.lane(), self._mail, self._loops_changed
        )
        self._discoverer = Discoverer(
            self._paths, self._workers.lane(), self._mail, self._appear, self._explored
        )
        self._running_discoverer = RunningDiscoverer(
            self._workers.lane(), self._mail, self._appear, self._watch_list.change
        )
        self._durations = partial(late_durations, recorder is None or recorder.bounds.on)
        self.forecasting = Forecasting(
            self._mail, self._workers.lane(), self._members, self._durations
        )
        calls = Calls(self._appear, self._vanish, self._readings.changed, self._show_at, self._made)
        self._listings = Listings(lists, self._mail, clock, self._members, calls)
        self._outbox = Outbox()
        self._looking = False  # the first look for collaborations goes on
        self._complete = False  # and every collaboration that it found was read
        self._listening: Sequence[Path] = ()

    @property
    def snapshots(self) -> Mapping[str, Snapshot]:
        """The latest Snapshots by key, a live view."""
        return MappingProxyType(self._snapshots)

    @property
    def problems(self) -> Mapping[str, str]:
        """Given paths that could not be looked into, each with the reason."""
        return MappingProxyType(self._problems)

    @property
    def unlisted(self) -> Mapping[str, Unread]:
        """Lists that could not be read, by their links."""
        return MappingProxyType(self._listings.problems)

    @property
    def note(self) -> str:
        """See `Batch.note`."""
        said = [self._watch_list.note, self._observer.note]
        if self._recorder and self._recorder.problem:
            said.append(f"not recorded: {clean_line(self._recorder.problem)}")
        if self._cut:
            said.append(f"searched only {FOLDERS} folders")
        said.extend(self._listings.notes)
        said.extend(f"{clean_line(path)}: {why}" for path, why in self._problems.items())
        return "; ".join(filter(None, said))

    def loops(self, key: str) -> Loops:
        """The loops of a collaboration's participants, running or not, as last seen."""
        return self._observer.loops(key)

    def loops_of_others(self, key: str) -> Loops:
        """Loops and conductors of other accounts, as their claims show; this waits for a disk."""
        from acp_core.agents.registry import seen_of_others  # late: only a collaboration needs it

        return tuple(seen_of_others(key))

    @property
    def forecast(self) -> Forecast:
        """How long things usually take, as far as that is learned by now."""
        return self.forecasting.forecast

    # one look

    def read(self, *, teaches: bool = False) -> tuple[Snapshot, ...]:
        """Find and read everything once, without watching. Slow; not inside an event loop.

        ``teaches`` says that `learn` comes afterwards.
        """
        self._observer.refresh()
        if self._discover:
            explorer = Explorer(self._paths)
            members = [self._member(found.key, found) for found in explorer.explore()]
            self._learn_problems(explorer)
        else:
            members = [self._member(str(path), None) for path in self._paths]
        members += [self._member(key, None) for key in self._links]
        if self._running:
            members += [self._member(key, None) for key in find_running()[0]]
        self._listings.read()
        members += self._listings.folders()
        members = list(dict.fromkeys(members))
        with without_collector():  # what is read stays
            once = Once(self._workers, self._clock, PATIENCE, self._rows.cache)
            self._snapshots |= {each.key: read for each, read in once.read(members, teaches)}
        self._rows.cache.save()
        if self._recorder is not None:
            self._recorder.flush()
        rows = (self._snapshots[key] for key in self._listings)
        return (*(self._snapshots[member.key] for member in members), *rows)

    def learn(self) -> Forecast:
        """How long things usually take, after a `read`; slow."""
        return learn_once(self._members.values(), self._durations)

    def call_sync(self, key: str, function: Callable[[Collaboration], T]) -> T:
        """As `call`, waiting in this thread; not from inside ``function`` or an event loop.

        Raises:
            KeyError: there is no such collaboration in the fleet.
            NoCollaboration: the place was given and holds none.
            Exception: whatever ``function`` raises.
        """
        member = self._listings.member(key)
        return member.lane.submit(lambda: function(member.opened()), Urgency.CALL).result()

    # the live view

    async def call(self, key: str, function: Callable[[Collaboration], T]) -> T:
        """Run ``function`` with the collaboration in a worker thread, apart from its refreshes.

        Raises:
            KeyError: there is no such collaboration in the fleet.
            NoCollaboration: the place was given and holds none.
            Exception: whatever ``function`` raises.
        """
        member = self._listings.member(key)
        future = member.lane.submit(lambda: function(member.opened()), Urgency.CALL)
        return await asyncio.wrap_future(future)

    def touch(self, key: str) -> None:
        """Ask for a refresh now, although nothing is known to have changed. From any thread."""
        self._mail.post(partial(self._touched, key))

    def whole(self, key: str) -> Snapshot | None:
        """The latest Snapshot with all its details; None where there is none (yet).

        What is only known as a row is read, and comes as a change. For the event loop's thread.
        """
        return self._rows.whole(self._snapshots.get(key), key, self._readings.schedule)

    def look_at(self, key: str) -> None:
        """Read a collaboration whole of which only a list tells. For the event loop's thread."""
        if key in self._listings:
            member = self._members[key] = self._listings.give(key)
            self._watch_list.claim(member)
            self._readings.schedule(member, Urgency.CALL)
            self._mail.post(lambda: None)

    def add(self, path: SearchRoot) -> str:
        """Take in the collaboration in ``path``, or behind a link; returns its key.

        For the event loop's thread. It stays even where the path holds none (yet).
        """
        key = str(path) if is_link(path) else os.path.abspath(path)
        self._appear([(key, None)])
        self._mail.post(lambda: None)
        return key

    async def changes(self) -> AsyncIterator[Batch]:
        """Find, open, watch and read, for ever; cancel to stop.

        Batches come at most about 30 times a second: the first change at once, a flood
        coalesced, and always the last state. The first look ends with a complete batch, be
        it an empty one.

        Raises:
            RuntimeError: another reader already follows the changes of this fleet.
        """
        if self._mail.box is not None:
            raise RuntimeError("another reader already follows the changes of this fleet")
        self._mail.box = mailbox = Mailbox()
        watcher = Watcher(
            lambda report: mailbox.post(partial(self._heard, report)), poll=self._poll
        )
        self._watch_list.begin(watcher)
        try:
            self._begin()
            while True:
                await mailbox.run()
                self._watch_list.settle()
                batch = self._take()
                if batch is not None:
                    yield batch
        finally:
            mailbox.close()
            watcher.close(patience=0)
            self._listings.end()
            self._readings.end()
            self._mail.box = None
            self._watch_list.begin(None)

    async def close(self) -> None:
        """Let go of everything; the fleet is of no use any more."""
        closing = [
            asyncio.wrap_future(member.lane.submit(member.close))
            for member in (*self._members.values(), *self._listings.asked)
        ]
        if closing:
            await asyncio.wait(closing, timeout=1)
        self._workers.close()
        await asyncio.to_thread(self._rows.cache.save)
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.close)

    # finding

    def _begin(self) -> None:
        self._outbox = Outbox()
        self._complete, self._looking = False, self._discover
        self._snapshots.clear()
        for member in self._members.values():
            member.snapshot = None
            self._watch_list.claim(member)
            self._readings.schedule(member, Urgency.IDLE)
        if self._discover:
            self._discoverer.begin(self._discovered)
        else:
            self._appear((str(path), None) for path in self._paths)
        self._appear((key, None) for key in self._links)
        if self._running:
            self._running_discoverer.discover()
        self._listings.begin()
        self._rechecks.begin()
        self._readings.begin()
        self._loop_watch.begin()
        self._mail.post(lambda: None)  # a first turn, even where there is nothing

    def _explored(self, explorer: Explorer, changes: Changes, listening: Sequence[Path]) -> None:
        self._learn_problems(explorer)
        if listening != self._listening:
            self._listening = listening
            self._watch_list.change()
        self._vanish(changes.vanished)
        self._appear((found.key, found) for found in changes.appeared)
        self._looking = False

    def _discovered(self) -> list[str]:
        return [key for key, member in list(self._members.items()) if member.discovered]

    def _learn_problems(self, explorer: Explorer) -> None:
        self._cut = explorer.cut
        known, roots = explorer.problems, map(str, explorer.roots)
        self._problems = {root: clean_line(known[root]) for root in roots if root in known}

    def _appear(self, found: Iterable[tuple[str, DiscoveredCollaboration | None]]) -> None:
        new = [self._member(key, one) for key, one in found if key not in self._members]
        for member in new:
            self._watch_list.claim(member)
        self._readings.appeared(new, Urgency.IDLE if self._looking else Urgency.CHANGE)

    def _member(self, key: str, found: DiscoveredCollaboration | None) -> Member:
        if key not in self._members:
            self._members[key] = self._made(key, found)
        return self._members[key]

    def _made(self, key: str, found: DiscoveredCollaboration | None = None) -> Member:
        live = self._mail.box is not None
        return Member(
            key, found, next(self._order), self._workers.lane(), self._observer, self._recorder,
            partial(self.touch, key) if live else None, self._rows.cache,
        )  # fmt: skip

    def _vanish(self, keys: Iterable[str]) -> None:
        for key in keys:
            if self._listings.drop(key):
                self._snapshots.pop(key, None)
                self._outbox.drop(key)
            member = self._members.pop(key, None)
            if member is not None:
                self._watch_list.release(member)
                self._readings.forget(member)
                self._snapshots.pop(key, None)
                self._outbox.drop(key)
                member.lane.submit(member.close, Urgency.IDLE)

    # watching

    def _others(self) -> Iterator[Path]:
        yield from self._listening
        yield from self._running_discoverer.folders
        yield from self._loop_watch.listed(member.real for member in self._members.values())

    def _heard(self, report: Report) -> None:
        if report.rearmed:
            self._rechecks.everything()
            return
        self._loop_watch.heard(report)
        if self._running and not self._running_discoverer.folders.isdisjoint(report.changed):
            self._running_discoverer.discover_soon()
        for member in self._watch_list.concerned(report.changed):
            self._readings.changed(member)
        if self._discover:
            self._discoverer.noticed(report.entries)

    def _find_anew(self) -> None:
        self._loop_watch.check_soon()
        if self._discover:
            self._discoverer.again(None, Urgency.IDLE)
        if self._running:
            self._running_discoverer.discover()

    def _loops_changed(self, names: frozenset[str]) -> None:
        self._watch_list.change()
        for member in self._members.values():
            if member.real in names:
                self._outbox.tell_loops(member.key)
                self._readings.changed(member)

    # saying

    def _touched(self, key: str) -> None:
        if key in self._members:
            self._readings.changed(self._members[key])

    def _show(self, member: Member, snapshot: Snapshot) -> None:
        self.forecasting.changed(member.key)
        self._show_at(member.key, snapshot)

    def _show_at(self, key: str, snapshot: Snapshot) -> None:
        self._snapshots[key] = snapshot
        self._outbox.show(key, snapshot, time.monotonic())

    def _take(self) -> Batch | None:
        """What is to be said now; where it is too early for that, a timer is set."""
        self._complete = self._complete or (
            not self._looking
            and self._listings.complete
            and all(key in self._snapshots for key in self._members)
        )
        if self._complete:
            self.forecasting.begin()
            self._rows.begin()
        now, note = time.monotonic(), self.note
        due = self._outbox.due(self._complete, note)
        if due is None:
            return None
        if now < due:
            self._mail.later("batch", due - now, lambda: None)
            return None
        return self._outbox.take(self._complete, note, now, self._listings.order)


def watch(folder: str) -> Watched:
    """The collaboration in a folder (an absolute path), watched while its changes are followed."""
    return WatchedFolder(folder)


class WatchedFolder:
    """A fleet of one; see `acp_core.protocols.contract.Watched`."""

    def __init__(self, folder: str) -> None:
        self._key = folder
        self._fleet = Fleet([Path(folder)], discover=False)

    @property
    def snapshot(self) -> Snapshot | None:
        """See `Watched.snapshot`."""
        return self._fleet.snapshots.get(self._key)

    def changes(self) -> AsyncIterator[Batch]:
        """See `Watched.changes`."""
        return self._fleet.changes()

    async def call(self, work: Callable[[Collaboration], T]) -> T:
        """See `Watched.call`."""
        return await self._fleet.call(self._key, work)

    def actions(self, opened: Collaboration) -> Sequence[Action]:
        """See `Watched.actions`; what the person here notes for themselves is nobody else's."""
        from acp_core.diagnosis import actions  # late: it loads everything that can be done

        found = actions.actions(opened, self._fleet.snapshots[self._key])
        return tuple(each for each in found if not each.personal)

    def action(self, opened: Collaboration, name: str) -> Action | None:
        """See `Watched.action`."""
        from acp_core.diagnosis import actions  # late, as above

        found = actions.action(opened, self._fleet.snapshots[self._key], name)
        return None if found is None or found.personal else found

    def knows(self, opened: Collaboration, name: str) -> bool:
        """See `Watched.knows`."""
        from acp_core.loops.acts.names import NAMES

        try:
            return name in NAMES or self.action(opened, name) is not None
        except Refused:
            return True

    async def close(self) -> None:
        """See `Watched.close`."""
        await self._fleet.close()
