"""What a governed run or an initiative offers to every surface: read, told, and acted on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core import model
from acp_core.model.past import Story, TrackedFile
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.governed.view.reader import Reader

if TYPE_CHECKING:
    from acp_core.protocols.kit.diagnosis import DiagnosisContext


def open_folder(location: str) -> Governed:
    """Open the run or the initiative in the folder ``location``."""
    return Governed(location)


class Governed(Collaboration):
    """One run, or one initiative where the folder holds the configuration of one."""

    protocol = "governed"
    has_fractions = True

    def __init__(self, location: str) -> None:
        self.key = location
        self._reader = Reader(location)

    def refresh(self, now: datetime) -> model.Snapshot:
        return self._reader.refresh(now)

    def watched(self) -> frozenset[Path]:
        return self._reader.watched()

    def load(self, document: str) -> model.DocumentText:
        return self._reader.load(document)

    def tracked_files(self) -> tuple[TrackedFile, ...]:
        return self._reader.tracked_files()

    def raw_event(self, event: str) -> str:
        return self._reader.raw_event(event)

    def causes(self, case: DiagnosisContext) -> Sequence[model.Matter]:
        from acp_core.protocols.governed import matters

        reader = self._reader
        found = tuple(trouble.cause() for trouble in reader.troubles if trouble.group)
        if reader.initiative is not None:
            return (*found, *matters.initiative_causes(reader.initiative, case))
        return (*found, *(matters.run_causes(reader.run, case) if reader.run else ()))

    def story(self) -> Story:
        """Whose turn it was when, of a run or of an initiative."""
        from acp_core.protocols.governed import past  # only reports need it

        reader = self._reader
        if reader.snapshot is None:
            return Story()
        if reader.initiative is not None:
            return past.initiative_story(reader.initiative, reader.snapshot.events)
        return past.run_story(reader.run, reader.snapshot.events) if reader.run else Story()

    def durations(self, participant: str) -> Sequence[float]:
        """How long a role's turns took; see `Collaboration.durations`."""
        from acp_core.protocols.governed.past import durations

        return durations(self.story().turns, participant)

    def actions(self, now: datetime) -> Sequence[model.Action]:
        from acp_core.protocols.governed.acts import common  # only who acts needs it

        of = common.initiative_actions if self._reader.is_initiative() else common.run_actions
        return of(self.key, now)

    def action(self, name: str, now: datetime) -> model.Action | None:
        """One action without the others; see `Collaboration.action`."""
        from acp_core.protocols.governed.acts import common  # only who acts needs it

        of = common.initiative_action if self._reader.is_initiative() else common.run_action
        return of(self.key, name, now)

    def cards(self, now: datetime) -> Sequence[model.Card]:
        """What a human has to decide; see `Collaboration.cards`."""
        from acp_core.protocols.governed.acts import cards  # only who decides needs it

        if self._reader.is_initiative():
            return cards.initiative_cards(self.key)
        snapshot = self._reader.snapshot
        return cards.run_cards(self.key, snapshot.documents if snapshot else ())
