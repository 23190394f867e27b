"""An agent's own folder as a collaboration: detection, reading."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from acp_core.model import Action, Card, Cause, DocumentText, Snapshot, Source, SourceState, Status
from acp_core.model.obstacle import Obstacle
from acp_core.model.story import Story
from acp_core.model.text import clean, clean_line
from acp_core.model.tracked import PastLog
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import Case
from acp_core.protocols.wire.conduct.agent import place
from acp_core.protocols.wire.network.libraries import missing
from acp_core.protocols.wire.read import folder as reading
from acp_core.protocols.wire.read.folder import CannotRead, Reading
from acp_core.protocols.wire.view import build
from acp_core.protocols.wire.write import guard

ALIVE = 5.0  # seconds between two looks whether the agent still runs: its end changes no file


def detect(folder: Path | str) -> bool:
    """Whether ``folder`` is that of an agent, or what was recorded of one elsewhere."""
    from acp_core.protocols.wire.read.remote import log

    return reading.is_store(Path(folder)) or log.is_log(Path(folder)) or _is_own(Path(folder))


def _is_own(folder: Path) -> bool:
    """Whether a folder is where an agent of this user has its store, which may be none any more."""
    return folder.absolute().parent == place.root() and (folder / reading.FILE).is_file()


def open_agent(location: str) -> Collaboration:
    """Open the agent whose folder, or key, is ``location``."""
    if "://" in location:
        from acp_core.protocols.wire.read.remote.agent import RemoteAgent

        return RemoteAgent(location)
    from acp_core.protocols.wire.read.remote import log

    if log.is_log(Path(location)) and not reading.is_store(Path(location)):
        from acp_core.protocols.wire.read.remote.agent import RecordedAgent

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
            damaged = (guard.broken(self._root, str(error)),) if error.damage else ()
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
        made = build.snapshot(read, self.key, now, self._recheck(read, now))
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
        from acp_core.protocols.wire.actions import offered

        return offered.actions(self._reading.name, self._reading, now)

    def action(self, name: str, now: datetime) -> Action | None:
        """See `Collaboration.action`."""
        if self._reading is None or missing():
            return None
        from acp_core.protocols.wire.actions import offered

        return offered.action(name, self._reading.name, self._reading, now)

    def cards(self, now: datetime) -> Sequence[Card]:
        """What its tasks wait for, read now; see `Collaboration.cards`."""
        if missing():
            return ()
        from acp_core.protocols.wire.actions.cards import cards

        try:
            return cards(self._source.read())
        except CannotRead:  # nothing can be answered before that is mended
            return ()

    def causes(self, case: Case) -> Sequence[Cause]:
        """See `Collaboration.causes`."""
        from acp_core.protocols.wire.causes import causes

        return tuple(causes(self._reading, case)) if self._reading else ()

    def story(self) -> Story:
        """See `Collaboration.story`."""
        from acp_core.protocols.wire.view.story import story

        return story(self._reading) if self._reading else Story()

    def past_log(self) -> PastLog | None:
        """Its log; see `Collaboration.past_log`."""
        from acp_core.protocols.wire.past.derive import past_log

        return past_log(self._reading) if self._reading else None

    def close(self) -> None:
        """See `Collaboration.close`."""
        self._source.close()

    def _in_the_way(self, read: Reading) -> tuple[Obstacle, ...]:
        """What stands in the way of writes; of one that is done with, nothing is written."""
        if read.reach is None and not read.queues and not any(task.is_open for task in read.tasks):
            return ()
        return guard.obstacles(self._root, "")

    def _recheck(self, read: Reading, now: datetime) -> datetime | None:
        return now + timedelta(seconds=ALIVE) if read.reach else None

    def _without(self, note: str, damaged: tuple[Obstacle, ...], now: datetime) -> Snapshot:
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
