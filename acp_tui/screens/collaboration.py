"""One collaboration as it is now: drawn anew with every Snapshot that the fleet reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from textual.timer import Timer

from acp_core.model import Need, Snapshot, Target
from acp_tui import keys
from acp_tui.actions.collaboration_actions import NO_ACTION
from acp_tui.screens.snapshot_screen import SnapshotScreen
from acp_tui.widgets.documents import PEOPLE, WHY, outcome_tab
from acp_tui.widgets.headline import need_key
from acp_tui.widgets.next_actions import NO_CAUSES
from acp_tui.widgets.pane import FleetSource, PaneData
from acp_tui.widgets.timeline_model import LastSeen, events_seen

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_core.person.attention import LastVisit

FRAME = 1 / 30
"""Seconds between two pictures while changes come in a flood; the first is drawn at once."""


class CollaborationScreen(SnapshotScreen):
    """The present of a collaboration, and what can be done in it."""

    def __init__(self, key: str, target: Target | None = None) -> None:
        """Make it.

        Args:
            key: The collaboration's, as its Snapshots bear it.
            target: What to show first.
        """
        super().__init__(key)
        self._target = target
        self._visit: LastVisit | None = None
        self._gone = False
        self._need = ""  # the key of the need in hand
        self._drawn_at = 0.0
        self._pending: Timer | None = None

    def make_source(self) -> FleetSource:
        """The collaboration itself."""
        return FleetSource(self.app.fleet, self.key)

    def on_mount(self) -> None:
        """Listen to the fleet, show what is known, and look at the clock once a second."""
        self._visit = self.app.attention.last_visit(self.key)
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._draw, init=False)
        self.set_interval(1.0, self._tick)
        self.say_waiting(self.app.opening.reading(self.key))
        if self.app.fleet.whole(self.key) is None:
            self.wait()
        self.app.fleet.look_at(self.key)
        self._draw()

    async def on_unmount(self) -> None:
        """Remember what was seen."""
        if self.snapshot is None:
            return
        try:
            await asyncio.to_thread(self.app.attention.visited, self.snapshot, self.app.now())
        except OSError as error:
            self.app.tell(
                f"Could not save what you have seen: {error.strerror or error}", "warning"
            )
        if self.app.is_running:
            self.app.attention_changed()

    # --- what comes in ---------------------------------------------------------------------

    def _changed(self, batch: Batch) -> None:
        self.navigation.others_changed(batch)
        if self.key in batch.gone:
            self._gone = True
        elif any(snapshot.key == self.key for snapshot in batch.snapshots):
            self._gone = False
        elif (
            self.snapshot is not None
            and batch.snapshots
            and self.key not in batch.loops
            and not any(one.key in self.snapshot.parts for one in batch.snapshots)
        ):
            return  # others changed
        if self.key in batch.loops:
            self.loader.load_loops()
        elif any(one.key == self.key for one in batch.snapshots):
            self.loader.load_loops_soon()  # those of other accounts tell of no change themselves
        if batch.complete and self.snapshot is None and self.key not in self.app.fleet.snapshots:
            words = (
                "No collaboration here, or it was removed. Press Escape to go back to the fleet."
            )
            self.say_waiting(words)
            self.app.opening.end()
        wait = self._drawn_at + FRAME - monotonic()
        if wait <= 0:
            self._draw()
        elif self._pending is None:
            self._pending = self.set_timer(wait, self._draw)

    def _draw(self) -> None:
        """Show the newest Snapshot."""
        self._drawn_at, self._pending = monotonic(), None
        first = self.snapshot is None
        snapshot = self.app.fleet.whole(self.key) or self.snapshot
        if snapshot is None:
            row = self.app.fleet.snapshots.get(self.key)
            if row is not None and row.source.note:
                self.say_waiting(self.app.opening.reading(self.key, row.source.note))
        else:
            asked = self.asking(snapshot)
            needs = tuple(need for _, need in asked)
            data = PaneData(snapshot, needs, self.app.now(), self.app.utc, self._gone)
            current, start = self._place_of_need(needs), self.start_label(snapshot)
            forecast = self.app.fleet.forecast
            self.show_data(data._replace(current=current, start=start, forecast=forecast), asked)
            if first:
                self._begin(snapshot)
            self.ask_what_it_offers()

    def offers_known(self) -> None:
        """Say how it can be started, where acp runs nothing."""
        if self.data is not None:
            self.data = self.data._replace(start=self.start_label(self.data.snapshot))

    def _begin(self, snapshot: Snapshot) -> None:
        """The first Snapshot is there: mark what is new since the last visit, go to what is shown first."""
        self.app.opening.end()
        visit = self._visit
        if visit is not None:
            self.timeline.last_seen = LastSeen(events_seen(snapshot.events, visit), visit.at)
            self.documents.last_seen = visit.versions
        self.call_after_refresh(self.loader.load_loops)  # not while the first picture is drawn
        if self._target is not None:
            self.call_after_refresh(self.navigation.go, self._target)
        elif outcome_tab(snapshot):
            self.call_after_refresh(self.action_pane, "documents")

    def _tick(self) -> None:
        data = self.data
        if (self.app.fleet.whole(self.key) or self.snapshot) is not self.snapshot:
            if self._pending is None:
                self._draw()  # nobody told: a signal leaves out a screen that is not ready for it
        elif data is not None:
            self.data = data._replace(now=self.app.now(), forecast=self.app.fleet.forecast)

    # --- the need in hand ------------------------------------------------------------------

    def _place_of_need(self, needs: Sequence[Need]) -> int:
        """Where the need in hand stands now; the first one where it is gone."""
        return next((place for place, need in enumerate(needs) if need_key(need) == self._need), 0)

    @property
    def place_of_need(self) -> int:
        """Which of the needs the headline shows."""
        return self.data.current if self.data is not None else 0

    def action_next_need(self) -> None:
        """Show the next need; after the last one, that of the next collaboration that has one."""
        data = self.data
        if data is None:
            return
        after = data.current + 1
        other = self.app.fleet_screen.next_in_need(self.key)
        if after >= len(data.needs) and other not in (None, self.key):
            self.app.switch_screen(CollaborationScreen(other))
        elif len(data.needs) < 2:
            self.app.tell("Nothing else needs you." if data.needs else "Nothing needs you.")
        else:
            current = after % len(data.needs)
            self._need = need_key(data.needs[current])
            self.data = data._replace(current=current)
            self.ask_what_it_offers()

    # --- what only the present has ---------------------------------------------------------

    def action_lineage(self, relation: str) -> None:
        """Open what this collaboration continues, or what continues it."""
        self.navigation.open_linked(relation)

    def action_log(self) -> None:
        """Show the log of the participant that is selected, waited for, or to be chosen."""
        self.navigation.open_log()

    def action_replay(self) -> None:
        """Show its past, moment by moment."""
        self.app.open_replay(self.key)

    def show_need(self, whose: Snapshot, need: Need) -> None:
        """Show the problem that the need is of, with its steps."""
        if whose.key == self.key and any(cause.key == need.key for cause in whose.causes):
            self.action_why()
        elif whose.key != self.key:
            self.app.open_collaboration(whose.key)
        else:
            self.app.tell(f"{NO_ACTION}: {keys.called(self.app, 'act.actions')} lists all actions.")

    def action_why(self) -> None:
        """Show why it does not go on."""
        if self.snapshot is not None and self.snapshot.causes:
            self.show_tab(WHY)
        else:
            self.app.tell(NO_CAUSES)

    def action_people(self) -> None:
        """Show who takes part, and what their loops do."""
        self.show_tab(PEOPLE)
