"""Development cycles as a collaboration: detection, reading, loading."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.files import claims
from acp_core.files.claims import run_folder
from acp_core.files.reading import just_changed, stamp
from acp_core.model import Action, Card, DocumentText, Event, Matter, Snapshot
from acp_core.model.past import PastLog, Story, TrackedFile
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.cycle import matters, schema, state
from acp_core.protocols.cycle.read import progress, scan
from acp_core.protocols.cycle.read.progress import Seen
from acp_core.protocols.cycle.rules.checks import UNSEEN
from acp_core.protocols.cycle.schema import Object, Project
from acp_core.protocols.cycle.view import build, panels
from acp_core.protocols.kit.binding import bind_all, bind_named
from acp_core.protocols.kit.documents import loaded
from acp_core.protocols.kit.findings import UnseenText
from acp_core.protocols.kit.snapshots import steadily, with_parts_of

if TYPE_CHECKING:
    from acp_core.protocols.kit.diagnosis import DiagnosisContext

_LOOK_AGAIN = timedelta(seconds=5)  # where another account conducts
TIMELINE = "timeline.told"  # outside of the cycles' folder: nothing of a cycle is read from there


def detect(folder: Path | str) -> bool:
    """Whether ``folder`` holds a cycle in ``.workflow/.cycle``; see `scan.is_cycle`."""
    base = scan.home(Path(folder))
    if base is None:
        return False
    try:
        with os.scandir(base) as entries:
            return any(scan.is_cycle(entry) for entry in entries)
    except OSError:
        return False


def open_cycles(location: str) -> Cycles:
    """Open the cycles of the project in the folder ``location``."""
    return Cycles(location)


class Cycles(Collaboration):
    """The cycles of one project; the one that goes on, else the latest, is shown in full."""

    protocol = "cycle"

    def __init__(self, location: str) -> None:
        self.key = os.path.abspath(location)
        self._root = Path(self.key)
        self._last: Snapshot | None = None
        self._signature: object = None
        self._doubt: frozenset[str] = frozenset()  # files that had just changed when they were read
        self._project: Project | None = None
        self._good: dict[str, Object] = {}
        self._seen: dict[str, Seen] = {}
        self._unseen = UnseenText(UNSEEN)

    def refresh(self, now: datetime) -> Snapshot:
        """Read the folder again; see `Collaboration.refresh`."""
        files, wanted = scan.listed(self._root), scan.wanted(self._root)
        conducts = claims.seen(self._root, claims.CONDUCT)
        signature = files, wanted, matters.of_disk(self._root), conducts
        last = self._last
        due = last is not None and last.recheck_at is not None and last.recheck_at <= now
        doubt = self._doubt
        self._doubt = frozenset(f.name for f in files if just_changed(f.changed.timestamp()))
        if last is not None and signature == self._signature and not due and not doubt:
            return last
        before = _without(self._project, doubt)
        known = [files]

        def read() -> Project:
            there = known.pop() if known else scan.listed(self._root)
            return scan.scan(self._root, there, now, self._good, before, wanted)

        # the state, and what is written with it
        together = [
            f.path for f in files if f.path.parent.name in (schema.HOME[-1], "coordination")
        ]
        project = steadily(read, lambda: [stamp(each) for each in together])
        self._good = {each.record.file.name: each.value for each in project.cycles if each.value}
        project = self._remembered(project)
        self._project, self._signature = project, signature
        cycle = project.selected
        found = matters.of_cycle(self._root, cycle) if cycle else matters.of_disk(self._root)
        others = self._others() if conducts.held else ()
        again = recheck(project)
        if others:  # no file changes when it is killed
            again = min(again or now + _LOOK_AGAIN, now + _LOOK_AGAIN)
        made = build.snapshot(project, self.key, again, (*found, *others))
        made = self._unseen.added(made, self.tracked_files())
        self._last = with_parts_of(last, made) if last and doubt else made
        return self._last

    def _others(self) -> tuple[Matter, ...]:
        """Another account's orchestrator, beside which no second one is started."""
        from acp_core.protocols.cycle.conduct import process  # only beside an orchestrator

        other = process.conductor(self.key).other()
        return (process.obstacle(other),) if other else ()

    def _remembered(self, project: Project) -> Project:
        """The reading, with what is seen against the earlier ones."""
        seen = {
            each.id: progress.remember(each, self._seen.get(each.id)) for each in project.cycles
        }
        self._seen |= seen
        violations = {id: each.violations for id, each in seen.items() if each.violations}
        gone = seen[project.selected.id].gone if project.selected else ()
        return replace(project, violations=violations, gone=gone)

    def actions(self, now: datetime) -> Sequence[Action]:
        """What a person can do to the cycle that is shown; see `Collaboration.actions`."""
        from acp_core.protocols.cycle.acts.table import OFFERED  # only who acts needs it

        return bind_all(OFFERED, self._open(now), now)

    def action(self, name: str, now: datetime) -> Action | None:
        """One action without the others; see `Collaboration.action`."""
        from acp_core.protocols.cycle.acts.table import OFFERED  # only who acts needs it

        return bind_named(OFFERED, name, self._open(now), now)

    def cards(self, now: datetime) -> Sequence[Card]:
        """What a person has to decide in the cycle that is shown; see `Collaboration.cards`."""
        from acp_core.protocols.cycle.acts.cards import cycle_cards  # only who decides needs it

        snapshot = self.refresh(now)
        return cycle_cards(self._project.selected if self._project else None, snapshot.documents)

    def _open(self, now: datetime) -> scan.OpenProject:
        """The project as it stands now, for its actions."""
        self.refresh(now)
        assert self._project is not None  # it was just read
        return scan.OpenProject(self.key, self._root, self._project)

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """Why the cycle that is shown does not go on; see `Collaboration.causes`."""
        cycle = self._project.selected if self._project else None
        if cycle is None:
            return ()
        return tuple(matters.causes(cycle, self._root, case))

    def story(self) -> Story:
        """The agents' runs, and what can be counted; see `Collaboration.story`."""
        cycle = self._project.selected if self._project else None
        if cycle is None or self._last is None:
            return Story()
        return build.story(cycle, self._last.events)

    def durations(self, participant: str) -> Sequence[float]:
        """How long an agent's runs took; see `Collaboration.durations`."""
        return build.durations(self.story().turns, participant)

    def watched(self) -> frozenset[Path]:
        """The folders of the cycles; before there are any, those in which they would appear."""
        folders = {self._root}
        base = scan.home(self._root)
        if base:
            folders |= {base.parent, base}
        if (claimed := run_folder(self._root)).is_dir():
            folders.add(claimed)
        cycle = self._project.selected if self._project else None
        if cycle:
            folders.update(file.path.parent for file in cycle.files)
            top = self._root / cycle.progress
            if top.is_dir() and not top.is_symlink():
                folders |= {top, *(top / n for n in schema.AGENTS if (top / n).is_dir())}
        return frozenset(folders)

    def load(self, document: str) -> DocumentText:
        """The text of a document; see `Collaboration.load`."""
        known = self._last.document(document) if self._last else None
        if known is None:
            raise KeyError(document)
        if known.path is not None:
            return loaded(known, Path(known.path))
        cycle = self._project.selected if self._project else None
        for each in panels.compared(cycle) if cycle else ():
            if each.id == document:
                return panels.changes(known, each)
        return loaded(known, None)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """The state and the shown cycle's own files; see `Collaboration.tracked_files`."""
        cycle = self._project.selected if self._project else None
        if cycle is None:
            return ()
        files = (cycle.record.file, *cycle.files)
        return tuple(
            TrackedFile(
                file.name,
                str(file.path),
                file.name.endswith((".log", ".ndjson")),
                clean_line(file.name),
            )
            for file in files
            if not file.link
        )

    def past_log(self) -> PastLog | None:
        """The merged timeline, which stands in no single file; see `Collaboration.past_log`."""
        events = self._last.events if self._last else ()
        lines = [f"{each.id}\n".encode() for each in events]
        ends = tuple(itertools.accumulate(len(line) for line in lines))
        return PastLog(TIMELINE, b"".join(lines), ends, tuple(map(_written_by, events)))


def _written_by(event: Event) -> float | None:
    """When an event had been written, in seconds: a time of whole seconds stands for all of one."""
    if event.at is None:
        return None
    return event.at.timestamp() + (0.0 if event.at.microsecond else 0.999_999)


def _without(project: Project | None, doubt: frozenset[str]) -> Project | None:
    """The last reading without the cycles of which a file had just changed then."""
    if project is None or not doubt:
        return project
    sure = (each for each in project.cycles if not any(file.name in doubt for file in each.files))
    return replace(project, cycles=tuple(sure))


def recheck(project: Project) -> datetime | None:
    """When to look again although nothing changes: a torn file, or a cycle that may stall."""
    times = [
        cycle.record.file.changed + timedelta(seconds=schema.TORN_SECONDS)
        for cycle in project.cycles
        if scan.young(cycle.record, project.now)
    ]
    stall = state.recheck(project.selected) if project.selected else None
    if stall:
        times.append(stall)
    return min((at for at in times if at > project.now), default=None)
