"""Agents as collaborations: in a folder of their own, elsewhere, and as they were recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from acp_core.files.reading import Unreadable
from acp_core.model import Action, Card, DocumentText, Matter, Snapshot, Source, SourceState, Status
from acp_core.model.errors import Refused
from acp_core.model.past import PastLog, Story, TrackedFile
from acp_core.model.text import clean, clean_line
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import DiagnosisContext
from acp_core.protocols.wire import matters, past, view
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.links import missing
from acp_core.protocols.wire.read import folder as reading
from acp_core.protocols.wire.read import following
from acp_core.protocols.wire.read import known as read_known
from acp_core.protocols.wire.read.folder import CannotRead, Reach, Reading
from acp_core.protocols.wire.schema.basics import time_of

ALIVE = 5.0  # seconds between two looks whether the agent still runs: its end changes no file


def detect(folder: Path | str) -> bool:
    """Whether ``folder`` is that of an agent, or what was recorded of one elsewhere."""
    from acp_core.protocols.wire.read import known

    return reading.is_store(Path(folder)) or known.is_log(Path(folder)) or _is_own(Path(folder))


def _is_own(folder: Path) -> bool:
    """Whether a folder is where an agent of this user has its store, which may be none any more."""
    return (
        folder.absolute().parent == agent_directory.agents_root()
        and (folder / reading.FILE).is_file()
    )


def open_agent(location: str) -> Collaboration:
    """Open the agent whose folder, or key, is ``location``."""
    if "://" in location:
        return RemoteAgent(location)
    from acp_core.protocols.wire.read import known as read_known

    if read_known.is_log(Path(location)) and not reading.is_store(Path(location)):
        return RecordedAgent(os.path.abspath(location))
    return AgentFolder(location)


class AgentFolder(Collaboration):
    """An agent of this user, seen through its own store; it need not run."""

    protocol = "wire"

    def __init__(self, location: str) -> None:
        self.key = os.path.abspath(location)
        self._root = Path(self.key)
        self._source = reading.Source(self._root)
        self._reading: Reading | None = None
        self._good: Snapshot | None = None
        self._last: Snapshot | None = None

    def refresh(self, now: datetime) -> Snapshot:
        """Read the store again; see `Collaboration.refresh`."""
        try:
            read = self._source.read()
        except CannotRead as error:
            damaged = (matters.broken(self._root, str(error)),) if error.damage else ()
            self._last = self._without(clean_line(str(error)), damaged, now)
            return self._last
        last = self._last
        obstacles = self._in_the_way(read)
        same = last is self._good and read is self._reading
        if last is not None and same and last.obstacles == obstacles:
            if last.recheck_at is None or last.recheck_at > now:
                return last
            self._last = self._good = replace(last, as_of=now, recheck_at=self._recheck(read, now))
            return self._last
        self._reading = read
        made = view.snapshot(read, self.key, now, self._recheck(read, now))
        self._last = self._good = replace(made, obstacles=obstacles)
        return self._last

    def watched(self) -> frozenset[Path]:
        """Its folder: every commit writes a file there."""
        return frozenset({self._root})

    def load(self, document: str) -> DocumentText:
        """An agent has no documents; see `Collaboration.load`."""
        raise KeyError(document)

    def raw_event(self, event: str) -> str:
        """See `Collaboration.raw_event`."""
        return clean(self._source.raw(int(event))) if event.isdecimal() else ""

    def actions(self, now: datetime) -> Sequence[Action]:
        """See `Collaboration.actions`."""
        if self._reading is None or missing():
            return ()
        from acp_core.protocols.wire.acts import offered

        return offered.actions(self._reading.name, self._reading, now)

    def action(self, name: str, now: datetime) -> Action | None:
        """See `Collaboration.action`."""
        if self._reading is None or missing():
            return None
        from acp_core.protocols.wire.acts import offered

        return offered.action(name, self._reading.name, self._reading, now)

    def cards(self, now: datetime) -> Sequence[Card]:
        """What its tasks wait for, read now; see `Collaboration.cards`."""
        if missing():
            return ()
        try:
            return matters.cards(self._source.read())
        except CannotRead:  # nothing can be answered before that is mended
            return ()

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """See `Collaboration.causes`."""
        return tuple(matters.causes(self._reading, case)) if self._reading else ()

    def story(self) -> Story:
        """See `Collaboration.story`."""
        return view.story(self._reading) if self._reading else Story()

    def past_log(self) -> PastLog | None:
        """Its log; see `Collaboration.past_log`."""
        from acp_core.protocols.wire.past import past_log

        return past_log(self._reading) if self._reading else None

    def close(self) -> None:
        """See `Collaboration.close`."""
        self._source.close()

    def _in_the_way(self, read: Reading) -> tuple[Matter, ...]:
        """What stands in the way of writes; of one that is done with, nothing is written."""
        if read.reach is None and not read.queues and not any(task.is_open for task in read.tasks):
            return ()
        return matters.obstacles(self._root, "")

    def _recheck(self, read: Reading, now: datetime) -> datetime | None:
        return now + timedelta(seconds=ALIVE) if read.reach else None

    def _without(self, note: str, damaged: tuple[Matter, ...], now: datetime) -> Snapshot:
        if self._last is not None and self._last.source.note == note:
            return self._last
        if self._good is not None:
            source = Source(SourceState.STALE, note)
            return replace(self._good, source=source, recheck_at=None, obstacles=damaged)
        return Snapshot(
            key=self.key,
            protocol=self.protocol,
            dialect="",
            name=clean_line(unquote(self._root.name)) or "/",
            objective="",
            location=clean_line(self.key, 4096),
            as_of=now,
            headline=note,
            status=Status.UNKNOWN,
            phase="",
            source=Source(SourceState.UNREACHABLE, note),
            obstacles=damaged,
        )


PATIENCE = 4.0  # seconds for which who looks once waits for an answer

HEARD = timedelta(minutes=1)  # for which what was heard last tells how it stands


class RemoteAgent(Collaboration):
    """An agent that is reached over the network; it may be anybody's, and may be away."""

    protocol = "wire"

    def __init__(self, key: str) -> None:
        self._address = agent_directory.parse_address(key)
        self.key = self._address.key
        self._following = following.follow(self._address)
        self._changed: Callable[[], None] | None = None
        self._asked = False
        self._reading: Reading | None = None
        self._last: Snapshot | None = None
        self._told: Snapshot | None = None  # by a bridge
        self._away = ""

    def refresh(self, now: datetime) -> Snapshot:
        """What is known by now; see `Collaboration.refresh`. Who looks once waits for an answer."""
        if self._changed is None and not self._asked:
            self._following.settle(PATIENCE)
        self._asked = True
        read = self._following.reading()
        if self._last is None or read is not self._reading:
            self._last = self._bridged(read, now) or view.snapshot(read, self.key, now, None)
            self._reading = read
        return self._last

    def _bridged(self, read: Reading, now: datetime) -> Snapshot | None:
        """The folder of which it tells, where it is a bridge."""
        elsewhere = self._following.elsewhere
        told = elsewhere.snapshot if elsewhere else None
        if elsewhere is None or told is None:
            return None
        away = read.away or elsewhere.trouble
        last, before = self._last, self._reading
        if last is not None and told is self._told and before is not None and away == self._away:
            return last
        self._told, self._away = told, away
        source = Source(SourceState.STALE, away) if away else told.source
        return replace(told, as_of=now, source=source, limits=elsewhere.limits)

    def watched(self) -> frozenset[Path]:
        """No folder: changes come through `subscribe`."""
        return frozenset()

    def subscribe(self, changed: Callable[[], None]) -> None:
        """See `Collaboration.subscribe`."""
        self._changed = changed
        self._following.listen(changed)

    def load(self, document: str) -> DocumentText:
        """A document of a bridge's folder; an agent has none. See `Collaboration.load`."""
        elsewhere = self._following.elsewhere
        if elsewhere is None:
            raise KeyError(document)
        return elsewhere.load(self._following.ask, document)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """The file that all it says is taken down in; of a folder elsewhere, none."""
        if self._following.elsewhere is not None:
            return ()
        path = Path(self._following.folder) / read_known.FILE
        return (TrackedFile(read_known.FILE, str(path), log=True),)

    def raw_event(self, event: str) -> str:
        """See `Collaboration.raw_event`."""
        if self._following.elsewhere is not None:
            return self._following.elsewhere.raw(self._following.ask, event)
        return clean(self._following.raw(int(event))) if event.isdecimal() else ""

    def actions(self, now: datetime) -> Sequence[Action]:
        """See `Collaboration.actions`. Who asks at once waits for the first answer."""
        if missing():
            return ()
        self._following.settle(PATIENCE)
        if self._following.elsewhere is not None:
            return self._following.elsewhere.actions(self._following.ask)
        from acp_core.protocols.wire.acts import offered

        return offered.actions(self.key, self._shown_reading(), now)

    def action(self, name: str, now: datetime) -> Action | None:
        """See `Collaboration.action`. What a bridge allows comes all at once."""
        if missing():
            return None
        self._following.settle(PATIENCE)
        if (elsewhere := self._following.elsewhere) is not None:
            found = super().action(name, now)
            if found is None and self._following.reading().reach is not None:
                raise Refused(elsewhere.refusal(name))
            return found
        from acp_core.protocols.wire.acts import offered

        return offered.action(name, self.key, self._shown_reading(), now)

    def cards(self, now: datetime) -> Sequence[Card]:
        """What its tasks wait for, as known by now; a bridge tells none. See `Collaboration.cards`."""
        if missing() or self._following.elsewhere is not None:
            return ()
        return matters.cards(self._following.reading())

    def _shown_reading(self) -> Reading:
        """What the latest Snapshot was made of, so that offers fit what is said with it.

        Where the agent could not be asked then, what is known by now.
        """
        now, shown = self._following.reading(), self._reading
        return shown if shown is not None and shown.reach == now.reach else now

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """See `Collaboration.causes`."""
        if self._told is not None:
            away = self._reading is not None and self._reading.reach is None
            found = matters.unreachable(self._reading, case) if self._reading and away else ()
            return (*found, *self._told.causes)
        return tuple(matters.causes(self._reading, case)) if self._reading else ()

    def story(self) -> Story:
        """See `Collaboration.story`; of a folder elsewhere, nothing is told."""
        if self._reading is None or self._following.elsewhere is not None:
            return Story()
        return view.story(self._reading)

    def close(self) -> None:
        """See `Collaboration.close`."""
        if self._changed is not None:
            self._following.deafen(self._changed)
            self._changed = None
        following.leave(self._following)


class RecordedAgent(Collaboration):
    """What was heard of an agent elsewhere, read from the file that it was taken down in."""

    protocol = "wire"

    def __init__(self, folder: str) -> None:
        self.key = folder
        self._folder = Path(folder)
        self._reader = read_known.Reader(self._folder)
        self._reading: Reading | None = None
        self._shown: Reading | None = None  # the same, as of the moment
        self._over = False  # nothing was heard for so long that how it stands is not known
        self._last: Snapshot | None = None

    def refresh(self, now: datetime) -> Snapshot:
        """Read on; see `Collaboration.refresh`."""
        try:
            if self._reader.read() or self._reading is None:
                known = self._reader.known
                reach = None if known.away else Reach(self._reader.key, None)
                self._reading = known.reading(self._reader.key.partition("://")[2], reach)
                self._last = None
        except Unreadable as error:
            note = f"{read_known.FILE}: {error.reason}"
            if self._last is not None:
                source = Source(SourceState.STALE, clean_line(note))
                return replace(self._last, source=source)
        reading = self._reading or Reading(self._folder.name, None, {}, remote=True)
        if self._reader.own and (self._last is None or self._last.as_of != now):
            reading = self._reading = past.state_then(self._reader.known, self._reader.key, now)
            self._last = None
        heard = time_of(self._reader.known.latest)
        until = heard + HEARD if heard else None
        over = not self._reader.own and until is not None and until <= now
        if self._last is None or over != self._over:
            self._over, self._shown = over, past.state_ended(reading, heard) if over else reading
            recheck = None if over or self._reader.own else until
            self._last = view.snapshot(self._shown, self.key, now, recheck)
        return self._last

    def watched(self) -> frozenset[Path]:
        """The folder in which the file stands."""
        return frozenset({self._folder})

    def load(self, document: str) -> DocumentText:
        """An agent has no documents; see `Collaboration.load`."""
        raise KeyError(document)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """The file."""
        return (TrackedFile(read_known.FILE, str(self._folder / read_known.FILE), log=True),)

    def raw_event(self, event: str) -> str:
        """See `Collaboration.raw_event`."""
        return clean(self._reader.known.raw(int(event))) if event.isdecimal() else ""

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """See `Collaboration.causes`."""
        if self._shown is None or self._shown.then:
            return ()
        return tuple(matters.causes(self._shown, case))

    def story(self) -> Story:
        """See `Collaboration.story`."""
        return view.story(self._reading) if self._reading else Story()
