"""A collaboration at one moment, in panes: timeline, documents, findings, and what comes next.

`SnapshotScreen` is that; `CollaborationScreen` shows it as it is now, drawn anew with every Snapshot that
the fleet reads. From here one goes to what the panes point to (an event, a document, another collaboration),
and asks for things of the document that shows: to edit it, to go to a heading, to follow a link, whose text
may lie about where it goes and which is therefore shown before it is opened.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import var
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Static

from acp_core.model import Document, DocumentText, Matter, Snapshot, Target
from acp_tui import keys
from acp_tui.actions.collaboration_actions import NO_ACTION, CollaborationActions
from acp_tui.screens.choosing import PickScreen
from acp_tui.screens.panes import NARROW, PANES, PaneLayout, PaneLoader, PaneSwitcher
from acp_tui.terminal.editor import EditorProblem, edit
from acp_tui.text import MUTED, join, line, plain, safe_line
from acp_tui.widgets.document_pages import TextView
from acp_tui.widgets.document_view import DocumentView, StateTree
from acp_tui.widgets.documents import PEOPLE, STORY, WHY, Documents, outcome_tab
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.headline import FEW, LOW, MOST, Headline, Keys, need_key
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.next_actions import NO_CAUSES, NextActions
from acp_tui.widgets.pane import NEW, FleetSource, Pane, PaneData, Source, TabStrip
from acp_tui.widgets.phase_rail import PhaseRail
from acp_tui.widgets.row_list import Item, RowList
from acp_tui.widgets.timeline import Timeline
from acp_tui.widgets.timeline_model import LastSeen, events_seen
from acp_tui.widgets.timeline_view import TimelineView

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_core.model import Outcome
    from acp_core.person.attention import LastVisit
    from acp_tui.screens.choosing import Offer

HINTED = (
    "act.acknowledge", "act.remedy", "act.next_need", "collaboration.why",
    "act.launch", "collaboration.before", "collaboration.after",
)  # fmt: skip
"""The keys that the headline speaks of, as `Keys` has them."""


def _places() -> type[Provider]:
    from acp_tui.screens.choosing import PlacesProvider

    return PlacesProvider


class SnapshotScreen(CollaborationActions):
    """The panes of one collaboration; each redraws only when its part of the `data` changed."""

    CSS_PATH: ClassVar[str | list[str | PurePath]] = "snapshot_screen.tcss"
    AUTO_FOCUS = "TimelineView"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-normal")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    COMMANDS: ClassVar[set[Any]] = {_places}
    BINDINGS: ClassVar[list[BindingType]] = [*keys.COLLABORATION, *keys.ACT]

    data: var[PaneData | None] = var(None, always_update=True)
    """What the panes show; they are bound to it."""

    def __init__(self, key: str) -> None:
        """Make it.

        Args:
            key: The collaboration's, as its Snapshots bear it.
        """
        super().__init__()
        self.key = key
        self.panes = PaneSwitcher(self)
        self.layout_of_panes = PaneLayout(self)
        self.navigation = Navigation(self)
        self._document_requests = DocumentRequests(self)

    def compose(self) -> ComposeResult:
        """Headline and rail on top, the panes, the keys."""
        self._fit(*self.app.size)
        self._make_panes()
        data = SnapshotScreen.data
        yield self.headline.data_bind(data)
        yield PhaseRail(id="rail").data_bind(data)
        yield TabStrip(id="pane-bar")
        yield Static(id="waiting")
        with Horizontal(id="panes"):
            with Vertical(id="left", classes="-shown"):
                with Pane(id="pane-timeline", classes="-shown"):
                    yield self.timeline.data_bind(data)
                with Pane(id="pane-findings"):
                    yield self.findings.data_bind(data)
            with Vertical(id="right"):
                with Pane(id="pane-documents"):
                    yield self.documents.data_bind(data)
                with Pane(id="pane-next"):
                    yield self.next.data_bind(data)
        yield KeyLine()

    def _make_panes(self) -> None:
        self.headline = Headline(id="headline")
        self.headline.keys = Keys(*(keys.display(self.app, id) for id in HINTED))
        self.timeline = Timeline(id="timeline")
        self.documents = Documents(id="documents")
        self.documents.fix_key = keys.called(self.app, "act.remedy")
        self.documents.find_snapshot = self.navigation.find_whole
        self.findings = Findings(id="findings")
        self.next = NextActions(id="next")
        self.watch(self.headline, "whole", self._stands_above, init=False)
        self.watch(self.headline, "row_of_need", self._need_moved, init=False)
        self.loader = PaneLoader(self, self.make_source())
        for pane in (self.headline, self.findings, self.next, self.documents.panel):
            pane.called = self.loader.label

    @property
    def row_of_need(self) -> int:
        """The row of the screen in which what is needed stands."""
        return self.headline.row_of_need if self.data is not None else 0

    def _need_moved(self) -> None:
        if self.app.has_outcomes:
            self.app.outcomes.place()

    def make_source(self) -> Source:
        """Where texts, events as they were written and loops come from."""
        raise NotImplementedError

    def _fit(self, columns: int, rows: int) -> None:
        """Say how much room there is before anything is styled: later, all of it would be again."""
        points = ((columns, self.HORIZONTAL_BREAKPOINTS), (rows, self.VERTICAL_BREAKPOINTS))
        for room, named in points:
            self.add_class(
                next(name for least, name in sorted(named, reverse=True) if room >= least)
            )

    @property
    def snapshot(self) -> Snapshot | None:
        """What is known of the collaboration, once it was read."""
        return self.data.snapshot if self.data is not None else None

    @property
    def needs(self) -> tuple[Matter, ...]:
        """The open needs that are shown."""
        return self.data.needs if self.data is not None else ()

    def in_hand(self) -> Snapshot | None:
        """The collaboration to act on."""
        return self.snapshot

    def called(self, key: str, action: str) -> str:
        """What an action is called, where it is known; a sign that it is loading until then."""
        return self.loader.label(action) if key == self.key else super().called(key, action)

    def say_waiting(self, words: str | Content) -> None:
        """Say what stands there for as long as there is nothing to show."""
        said = line(words, MUTED) if isinstance(words, str) else words
        self.query_one("#waiting", Static).update(said)

    def wait(self, *, over: bool = False) -> None:
        """Show words in place of the panes, or the panes again: by no class, which styles all anew."""
        words = self.query_one("#waiting")
        if words.display is not over:
            return
        words.display = not over
        for widget in (self.query_one("#panes"), self.query_one("#pane-bar")):
            if over:
                widget.styles.clear_rule("display")
                widget.refresh(layout=True)
            else:
                widget.display = False
        if over:  # what shows now has its place in the very next picture, which is drawn once
            self.refresh(repaint=False, layout=True)
        else:
            self.refresh()

    def show_data(self, data: PaneData, asked: Sequence[tuple[Snapshot, Matter]] = ()) -> None:
        """Have the panes show a Snapshot as of a time.

        Args:
            data: The Snapshot.
            asked: Its needs, each with the collaboration (itself, or a part) whose it is.
        """
        self.wait(over=True)
        self.loader.want_labels(data, asked)
        self.data = data
        self.layout_of_panes.fit()
        self._entitle()

    # --- what panes ask for ----------------------------------------------------------------

    def _stands_above(self, whole: frozenset[str]) -> None:
        """Leave out of what comes next what stands in the headline."""
        if self.next.data is self.data:
            self.next.above = whole
        else:  # its data comes next, and draws it
            self.next.set_reactive(NextActions.above, whole)
        self._entitle()

    @on(Documents.TextWanted)
    def _text_wanted(self, message: Documents.TextWanted) -> None:
        # Reading and parsing it would slow down the picture of what is known already.
        self.call_after_refresh(self.loader.load_text, message.document)

    @on(Timeline.SourceWanted)
    def _source_wanted(self, message: Timeline.SourceWanted) -> None:
        self.loader.load_source(message.event)

    @on(Documents.LabelsWanted)
    def _labels_wanted(self) -> None:
        self.loader.load_labels()

    @on(Timeline.CopyWanted)
    def _event_wanted(self, message: Timeline.CopyWanted) -> None:
        self.loader.copy_event(message.event)

    @on(Findings.CopyWanted)
    @on(StateTree.CopyWanted)
    def _text_copied(self, message: Findings.CopyWanted | StateTree.CopyWanted) -> None:
        self.loader.copy(message.text, message.what)

    @on(DocumentView.PathWanted)
    def _path_wanted(self, message: DocumentView.PathWanted) -> None:
        if message.document.path is not None:
            self.loader.copy(message.document.path, message.document.path)

    @on(DocumentView.EditWanted)
    def _edit_wanted(self, message: DocumentView.EditWanted) -> None:
        self._document_requests.edit(message.document, message.line)

    @on(DocumentView.OutlineWanted)
    def _outline_wanted(self, message: DocumentView.OutlineWanted) -> None:
        self._document_requests.pick_heading(message.text)

    @on(TextView.LinkClicked)
    def _link_clicked(self, message: TextView.LinkClicked) -> None:
        self._document_requests.follow(message.address)

    @on(Findings.FixWanted)
    def _fix_wanted(self, message: Findings.FixWanted) -> None:
        self.app.perform(self.key, message.action, None, dict(message.given))

    # --- going somewhere -------------------------------------------------------------------

    @on(TimelineView.Opened)
    def _event_opened(self, message: TimelineView.Opened) -> None:
        """The document that an event speaks of; the focus follows at the second time."""
        event = message.event
        opened = event.document is not None and self.documents.open(event.document, event.line)
        if opened and message.again:
            self.action_pane("documents")

    @on(RowList.Chosen)
    def _item_chosen(self, message: RowList.Chosen) -> None:
        if message.list is self.documents.list and self.documents.active == STORY:
            self.navigation.open_other(message.item.key)
        elif message.item.target != Target():
            self.navigation.go(message.item.target)

    def performed(self, outcome: Outcome | None) -> None:
        """An action ended: go on to what it made, where it made another collaboration."""
        if outcome is not None and outcome.location:
            self.navigation.open_other(outcome.location)

    def show_tab(self, tab: str) -> None:
        """Show a document, or what else has a tab."""
        if self.documents.activate(tab):
            self.action_pane("documents")

    def action_pick_document(self) -> None:
        """Choose among all documents and panels."""
        self.navigation.pick_tab()

    def action_times(self) -> None:
        """Show who did what when, and all figures."""
        self.app.open_times(self.key)

    # --- panes -----------------------------------------------------------------------------

    @on(Timeline.TitleChanged)
    @on(Documents.Switched)
    def _entitle(self) -> None:
        self.panes.entitle()

    @on(Documents.Switched)
    def _switched(self) -> None:
        if self.documents.active == PEOPLE:  # those of other accounts were not looked at meanwhile
            self.loader.load_loops()

    def action_pane(self, pane: str) -> None:
        """Go to a pane."""
        self.panes.focus(pane)

    def action_step(self, by: int) -> None:
        """Go to the pane beside."""
        self.panes.step(by)

    def action_focus_pane(self, by: int) -> None:
        """Go to the next thing that takes keys: panes, and the details of an event."""
        self.panes.focus_next(by)

    def action_zoom(self) -> None:
        """Give the whole space to this pane, or give it back."""
        self.toggle_class("-zoom")
        self.layout_of_panes.fit()

    def action_tab(self, by: int) -> None:
        """Show the next document, or the one before."""
        self.documents.step(by)
        self.action_pane("documents")

    def on_resize(self) -> None:
        """Size the headline and the panes for the room that there is now."""
        self.headline.most = FEW if self.size.height < LOW else MOST
        if self.data is not None:
            self.layout_of_panes.fit()
            self.panes.entitle()

    @on(events.DescendantFocus)
    def _focused(self, event: events.DescendantFocus) -> None:
        self.panes.follow_focus(event.widget)

    @on(TabStrip.Chosen, "#pane-bar")
    def _pane_chosen(self, message: TabStrip.Chosen) -> None:
        self.action_pane(message.tab)

    def action_back(self) -> None:
        """Give the zoomed pane's space back, or go back to where one came from."""
        if self.has_class("-zoom"):
            self.action_zoom()
        else:
            self.dismiss()


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
        from acp_tui.screens.choosing import Offer

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


if TYPE_CHECKING:
    pass


class DocumentRequests:
    """Does it; whatever leaves the terminal is asked before.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen

    def edit(self, document: Document, line: int) -> None:
        """Open a document in the person's editor, at a line; then read it again."""
        app = self._screen.app
        if document.path is None:
            return
        try:
            edit(app, Path(document.path), line, app.settings.editor)
        except EditorProblem as problem:
            app.tell(str(problem), "error")
        app.fleet.touch(self._screen.key)

    def pick_heading(self, text: DocumentText) -> None:
        """Let the person choose a heading to go to."""
        items = [
            Item(
                (
                    ("  " * (heading.level - 1), ""),
                    (heading.title, ""),
                    (f"  line {heading.line}", "muted"),
                ),
                key=str(heading.line),
            )
            for heading in text.headings
        ]
        here = self._screen.documents.document_view.view.current_line
        above = [h.line for h in text.headings if h.line <= here]
        selected = str(above[-1]) if above else ""
        self._screen.app.push_screen(PickScreen("Contents", items, selected), self._picked)

    def _picked(self, line: str | None) -> None:
        if line is not None:
            self._screen.documents.document_view.go_to(int(line))

    def follow(self, address: str) -> None:
        """Ask before a link leaves the terminal; follow one inside of the collaboration."""
        app = self._screen.app
        if is_web(address):
            app.push_screen(LinkScreen(address), lambda yes: app.open_url(address) if yes else None)
            return
        inside = self._document_at(address)
        if inside is None:
            app.tell(f"Not followed: {address}", "warning")
        else:
            self._screen.documents.open(inside.id)

    def _document_at(self, address: str) -> Document | None:
        """The document that a relative link of the shown one leads to."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        here, snapshot = self._screen.documents.document_view.document, self._screen.snapshot
        if parts.scheme or parts.netloc or not parts.path or here is None or snapshot is None:
            return None
        if here.path is None:
            return snapshot.document(unquote(parts.path))
        wanted = os.path.normpath(os.path.join(os.path.dirname(here.path), unquote(parts.path)))
        paths = ((d, d.path) for d in snapshot.documents)
        return next((d for d, path in paths if path and os.path.normpath(path) == wanted), None)


WEB_SCHEMES = ("http", "https")


def is_web(address: str) -> bool:
    """Whether an address is one of the web, and nothing else that a desktop would open."""
    try:
        parts = urlsplit(address)
        return parts.scheme.lower() in WEB_SCHEMES and bool(parts.hostname)
    except ValueError:
        return False


class LinkScreen(ModalScreen[bool]):
    """Shows the whole address; gives whether it should be opened."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LINK]

    DEFAULT_CSS = """
    LinkScreen {
        align: center middle;
        & #link {
            width: 80; max-width: 90%; height: auto; max-height: 80%;
            border: round $accent; padding: 1 2; background: $surface;
        }
        & Static { height: auto; }
        &:ansi #link { background: ansi_default; }
    }
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def compose(self) -> ComposeResult:
        """The address, where it goes, the keys."""
        host = urlsplit(self._address).hostname or ""
        with Vertical(id="link"):
            yield Static(
                join(
                    ("Open this address in the browser?", "bold"),
                    "\n\n",
                    plain(self._address, "$text-primary"),
                    "\n\n",
                    ("It goes to ", MUTED),
                    (safe_line(host), "bold"),
                )
            )
        yield KeyLine()

    def action_open(self) -> None:
        """Open it."""
        self.dismiss(True)

    def action_copy(self) -> None:
        """Copy it, and leave it."""
        self.app.copy_to_clipboard(safe_line(self._address))
        self.dismiss(False)

    def action_close(self) -> None:
        """Leave it."""
        self.dismiss(False)


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

    def _place_of_need(self, needs: Sequence[Matter]) -> int:
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
        if self.app.has_outcomes:
            self.app.outcomes.end_passing()
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

    def show_need(self, whose: Snapshot, need: Matter) -> None:
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
