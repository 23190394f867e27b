"""Agent workspaces as a collaboration: detection, reading, loading."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.files import claims
from acp_core.files.claims import run_folder
from acp_core.files.reading import Stamp, just_changed, stamp
from acp_core.files.transaction import JOURNAL
from acp_core.model import Action, Card, DocumentText, Matter, Snapshot
from acp_core.model.past import Story, TrackedFile
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.documents import loaded
from acp_core.protocols.kit.findings import UnseenText
from acp_core.protocols.kit.snapshots import steadily, with_parts_of
from acp_core.protocols.workspaces import matters, schema, state, view
from acp_core.protocols.workspaces.past import tracked_files
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.rules import UNSEEN
from acp_core.protocols.workspaces.schema import Run

if TYPE_CHECKING:
    from acp_core.protocols.kit.diagnosis import DiagnosisContext

_LOOK_AGAIN = timedelta(seconds=5)  # where another account has agents at work
_TOGETHER = ("manifest.json", "triage.json", "conflicts.json", JOURNAL)


def open_workspaces(location: str) -> Workspaces:
    """Open the run in the folder ``location``."""
    return Workspaces(location)


class Workspaces(Collaboration):
    """One run of sub-agents."""

    protocol = "workspaces"

    def __init__(self, location: str) -> None:
        self.key = os.path.abspath(location)
        self._root = Path(self.key)
        self._last: Snapshot | None = None
        self._signature: object = None
        self._doubt = False  # a file had just changed when it was read
        self._run: Run | None = None
        self._unseen = UnseenText(UNSEEN)

    def refresh(self, now: datetime) -> Snapshot:
        """Read the folder again; see `Collaboration.refresh`."""
        files = scan.listed(self._root)
        claimed = tuple(claims.listed(self._root, "loops"))
        signature = files, scan.folders(self._root), matters.disk_problem(self._root), claimed
        last = self._last
        due = last is not None and last.recheck_at is not None and last.recheck_at <= now
        doubt, self._doubt = self._doubt, any(just_changed(f.changed.timestamp()) for f in files)
        if last is not None and signature == self._signature and not due and not doubt:
            return last
        known = [files]

        def read() -> tuple[Run, tuple[Matter, ...]]:
            run = scan.scan(self._root, known.pop() if known else scan.listed(self._root), now)
            return run, tuple(matters.obstacles(run))

        run, found = steadily(read, self._written)
        self._run, self._signature = run, signature
        others = self._others(run) if any(each.held for each in claimed) else ()
        again = recheck(run)
        if others:  # no file changes when one is killed
            again = min(again or now + _LOOK_AGAIN, now + _LOOK_AGAIN)
        made = view.snapshot(run, self.key, again, (*found, *others))
        made = self._unseen.added(made, self.tracked_files())
        self._last = with_parts_of(last, made) if last and doubt else made
        return self._last

    def _written(self) -> list[Stamp | None]:
        """The stamps of what acp writes as one."""
        coord = scan.workspaces_of(self._root) / schema.COORD
        return [stamp(coord / name) for name in _TOGETHER]

    def _others(self, run: Run) -> tuple[Matter, ...]:
        """Whoever else has agents at work: nobody dispatches beside them."""
        from acp_core.protocols.workspaces.conduct.advance import (
            watched_by_others,  # only beside programs
        )

        return tuple(watched_by_others(self.key, [agent.name for agent in run.agents]))

    def watched(self) -> frozenset[Path]:
        """The folders of the run, scratch folders included: writes there are signs of work."""
        base = scan.workspaces_of(self._root)
        coord = base / schema.COORD
        ours = [coord, *(coord / name for name in ("prompts", "returns", "draft"))]
        ours.append(run_folder(self._root) / "loops")
        ours += [self._root / name for name in ("integration", "returns", "prompts")]
        folders = {self._root, base, *(each for each in ours if each.is_dir())}
        folders.update(file.path.parent for file in (self._run.files if self._run else ()))
        folders.update(a.folder for a in (self._run.agents if self._run else ()) if a.folder)
        return frozenset(folders)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        """What a recording keeps; see `Collaboration.tracked_files`."""
        return tracked_files(self._run) if self._run else ()

    def actions(self, now: datetime) -> Sequence[Action]:
        """What a person can do now; see `Collaboration.actions`."""
        from acp_core.protocols.workspaces.acts.binding import actions  # only who acts needs it

        return actions(self.key, now)

    def action(self, name: str, now: datetime) -> Action | None:
        """One action without the others; see `Collaboration.action`."""
        from acp_core.protocols.workspaces.acts.binding import action  # only who acts needs it

        return action(self.key, name, now)

    def cards(self, now: datetime) -> Sequence[Card]:
        """What a person has to decide in the run; see `Collaboration.cards`."""
        from acp_core.protocols.workspaces.acts.cards import run_cards  # only who decides

        return run_cards(self.key, self.refresh(now).documents, now)

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        """Why the run does not go on; see `Collaboration.causes`."""
        return tuple(matters.causes(self._run, case)) if self._run else ()

    def story(self) -> Story:
        """Who worked how long; see `Collaboration.story`."""
        from acp_core.protocols.workspaces.view import story  # only reports need it

        return story(self._run) if self._run else Story()

    def load(self, document: str) -> DocumentText:
        """The text of a document; see `Collaboration.load`."""
        known = self._last.document(document) if self._last else None
        if known is None:
            raise KeyError(document)
        return loaded(known, Path(known.path) if known.path else None)


def recheck(run: Run) -> datetime | None:
    """When to look again although nothing changes: a torn file, or an agent that may stall."""
    times: list[datetime] = []
    for agent in run.agents:
        if state.unfinished(agent, run) and agent.status:
            times.append(agent.status.file.changed + timedelta(seconds=schema.TORN_SECONDS))
        elif state.of_agent(agent, run) in ("dispatched", "working") and agent.active:
            times.append(agent.active + timedelta(seconds=state.stall_seconds(agent)))
    for record in run.coordination:
        if record.value is None and state.is_young(record, run):
            times.append(record.file.changed + timedelta(seconds=schema.TORN_SECONDS))
    return min((at for at in times if at > run.now), default=None)
