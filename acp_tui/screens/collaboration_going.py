"""Going somewhere from a collaboration: to an event, a document, a panel, or another collaboration."""

from __future__ import annotations

import os
from pathlib import Path

from textual import on

from acp_core.model import Outcome, Snapshot, Target
from acp_tui.screens.collaboration_requests import Requests
from acp_tui.screens.pick import PickScreen
from acp_tui.widgets.causes import EMPTY
from acp_tui.widgets.documents import PEOPLE, STORY, WHY, Documents
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.row_list import Item, RowList
from acp_tui.widgets.tab_strip import NEW
from acp_tui.widgets.timeline import Timeline
from acp_tui.widgets.timeline_view import TimelineView


class Going(Requests):
    """Follows what the panes point to."""

    timeline: Timeline
    documents: Documents
    findings: Findings

    def action_pane(self, pane: str) -> None:
        """Go to a pane."""
        raise NotImplementedError

    def go(self, target: Target, *, focus: bool = True) -> None:
        """Show what something points to."""
        snapshot = self.snapshot
        if snapshot is None:
            return
        if target.document is not None:
            raw = target.line is not None
            if not self.documents.open(target.document, target.line, raw=raw):
                self.app.tell(f"There is no document {target.document} here.")
            elif focus:
                self.action_pane("documents")
        elif target.event is not None:
            self._go_to_event(target.event, focus)
        elif target.finding is not None and 0 <= target.finding < len(snapshot.findings):
            self.findings.go_to(snapshot.findings[target.finding])
            self.action_pane("findings")
        elif target.action is not None:
            self.perform_wanted(target)

    def _go_to_event(self, event: str, focus: bool) -> None:
        if self.timeline.go_to(event):
            if focus:
                self.action_pane("timeline")
        else:
            self.app.tell(f"There is no event {event} in the timeline.")

    @on(TimelineView.Opened)
    def _event_opened(self, message: TimelineView.Opened) -> None:
        """The document that an event speaks of; the focus follows at the second time."""
        event = message.event
        shown = event.document is not None and self.documents.open(event.document, event.line)
        if shown and message.again:
            self.action_pane("documents")

    @on(RowList.Chosen)
    def _item_chosen(self, message: RowList.Chosen) -> None:
        if message.list is self.documents.list and self.documents.active == STORY:
            self._open_other(message.item.key)
        elif message.item.target != Target():
            self.go(message.item.target)

    def _open_other(self, location: str) -> None:
        there = self._find(location)
        if there is None and os.path.isdir(location):
            self.app.open_collaboration(self.app.fleet.add(Path(location)))
        elif there is None:
            self.app.tell(f"It is not there anymore: {location}")
        elif there.key != self.key:
            self.app.open_collaboration(there.key)

    def action_lineage(self, relation: str) -> None:
        """Open what this collaboration continues, or what continues it."""
        links = self.snapshot.lineage if self.snapshot is not None else ()
        link = next((link for link in links if link.relation == relation), None)
        if link is None:
            words = "continues nothing" if relation == "continues" else "is not continued"
            self.app.tell(f"This collaboration {words}.")
        else:
            self._open_other(link.location)

    def action_pick_document(self) -> None:
        """Choose among all documents and panels."""
        items = [
            Item(((tab.text, ""), (f" {NEW}" if tab.new else "", "accent")), key=tab.id)
            for tab in self.documents.all_tabs
        ]
        self.app.push_screen(
            PickScreen("Go to a document or panel", items, self.documents.active), self._picked
        )

    def _picked(self, tab: str | None) -> None:
        if tab is not None:
            self.show_tab(tab)

    def show_tab(self, tab: str) -> None:
        """Show a document, or what else has a tab."""
        if self.documents.activate(tab):
            self.action_pane("documents")

    def action_replay(self) -> None:
        """Show its past, moment by moment."""
        self.app.open_replay(self.key)

    def action_times(self) -> None:
        """Show who did what when, and all figures."""
        self.app.open_times(self.key)

    def action_why(self) -> None:
        """Show why it does not go on."""
        if self.snapshot is not None and self.snapshot.causes:
            self.show_tab(WHY)
        else:
            self.app.tell(EMPTY)

    def action_people(self) -> None:
        """Show who takes part, and what their loops do."""
        self.show_tab(PEOPLE)

    def performed(self, outcome: Outcome | None) -> None:
        """An action ended: go on to what it made, where it made another collaboration."""
        if outcome is not None and outcome.location:
            self._open_other(outcome.location)

    def _find(self, location: str) -> Snapshot | None:
        """Another collaboration of the fleet."""
        snapshots = self.app.fleet.snapshots
        if location in snapshots:
            return snapshots[location]
        return next((s for s in snapshots.values() if s.location == location), None)
