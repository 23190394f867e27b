"""Going from a collaboration to what its panes point to: an event, a document, another one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model import Snapshot, Target
from acp_tui.screens.pane_switcher import PANES
from acp_tui.screens.pick import PickScreen
from acp_tui.widgets.row_list import Item
from acp_tui.widgets.tab_strip import NEW

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_tui.screens.command_palette import Offer
    from acp_tui.screens.snapshot_screen import SnapshotScreen


class Navigation:
    """Shows what a target names, on the screen or on another one.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen
        self._awaited: set[str] = set()  # keys of others of which more than a row shows

    def go(self, target: Target, *, focus: bool = True) -> None:
        """Show what something points to.

        Args:
            target: A document, an event, a finding or an action.
            focus: Whether the pane that shows it takes the keys.
        """
        screen, snapshot = self._screen, self._screen.snapshot
        if snapshot is None:
            return
        if target.document is not None:
            raw = target.line is not None
            if not screen.documents.open(target.document, target.line, raw=raw):
                screen.app.tell(f"There is no document {target.document} here.")
            elif focus:
                screen.action_pane("documents")
        elif target.event is not None:
            self._go_to_event(target.event, focus)
        elif target.finding is not None and 0 <= target.finding < len(snapshot.findings):
            screen.findings.go_to(snapshot.findings[target.finding])
            screen.action_pane("findings")
        elif target.action is not None:
            screen.perform_wanted(target)

    def _go_to_event(self, event: str, focus: bool) -> None:
        if not self._screen.timeline.go_to(event):
            self._screen.app.tell(f"There is no event {event} in the timeline.")
        elif focus:
            self._screen.action_pane("timeline")

    def open_other(self, location: str) -> None:
        """Show another collaboration, which the fleet may not know yet."""
        app, there = self._screen.app, self.find_snapshot(location)
        if there is None and os.path.isdir(location):
            app.open_collaboration(app.fleet.add(Path(location)))
        elif there is None:
            app.tell(f"Not found: {location}")
        elif there.key != self._screen.key:
            app.open_collaboration(there.key)

    def find_snapshot(self, location: str) -> Snapshot | None:
        """What is known of another collaboration, by its key or location."""
        snapshots = self._screen.app.fleet.snapshots
        if location in snapshots:
            return snapshots[location]
        return next((s for s in snapshots.values() if s.location == location), None)

    def find_whole(self, location: str) -> Snapshot | None:
        """As `find_snapshot`, with all its details; None until they are read."""
        there = self.find_snapshot(location)
        whole = None if there is None else self._screen.app.fleet.whole(there.key)
        if there is not None and whole is None:
            self._awaited.add(there.key)
        return whole

    def others_changed(self, batch: Batch) -> None:
        """Show what `find_whole` could not give before, now that it is there."""
        arrived = self._awaited.intersection(each.key for each in batch.snapshots)
        if arrived:
            self._awaited -= arrived
            self._screen.documents.draw_story()

    def open_linked(self, relation: str) -> None:
        """Open what this collaboration ``continues``, or what it is ``continued_by``."""
        snapshot = self._screen.snapshot
        links = snapshot.lineage if snapshot is not None else ()
        link = next((link for link in links if link.relation == relation), None)
        if link is None:
            words = "continues no other" if relation == "continues" else "has no continuation"
            self._screen.app.tell(f"This collaboration {words}.")
        else:
            self.open_other(link.location)

    def pick_tab(self) -> None:
        """Let the person choose among all documents and panels."""
        documents = self._screen.documents
        items = [
            Item(((tab.text, ""), (f" {NEW}" if tab.new else "", "accent")), key=tab.id)
            for tab in documents.all_tabs
        ]
        title = "Go to a document or panel"
        self._screen.app.push_screen(PickScreen(title, items, documents.active), self._picked)

    def _picked(self, tab: str | None) -> None:
        if tab is not None:
            self._screen.show_tab(tab)

    def places(self) -> Iterable[Offer]:
        """Documents and panels first, then the panes, for the command palette."""
        from acp_tui.screens.command_palette import Offer

        screen = self._screen
        for tab in screen.documents.all_tabs:
            kind, _, path = tab.id.partition(" ")
            about = path if kind == "document" else ""
            yield Offer(f"Go to {tab.label}", about, partial(screen.show_tab, tab.id))
        for pane in PANES:
            yield Offer(f"Pane: {pane}", "", partial(screen.action_pane, pane))
        yield Offer("Zoom this pane", "Use the whole screen", screen.action_zoom)

    def open_log(self) -> None:
        """Show the log of the participant that is selected, waited for, or to be chosen."""
        screen, snapshot = self._screen, self._screen.snapshot
        if snapshot is None or not snapshot.participants:
            screen.app.tell("No participants yet.")
            return
        people = [person.id for person in snapshot.participants]
        waited = [turn.participant for turn in snapshot.turns]
        selected = screen.documents.selected_participant
        if selected in people:
            self._open_participant(selected)
        elif len(waited) == 1:
            self._open_participant(waited[0])
        else:
            items = [
                Item(((id, ""), ("  waited for" if id in waited else "", "accent")), key=id)
                for id in people
            ]
            picking = PickScreen("Whose log?", items, next(iter(waited), ""))
            screen.app.push_screen(picking, self._open_participant)

    def _open_participant(self, id: str | None) -> None:
        if id is not None:
            self._screen.app.open_participant(self._screen.key, id)
