"""A collaboration at one moment, in panes: timeline, documents, findings, and what comes next.

Both the present (`CollaborationScreen`) and any moment of the past (`ReplayScreen`) are shown so.
They differ in where a Snapshot comes from; each is a `SnapshotScreen`, and neither is the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from acp_core.model import Need, Snapshot, Target
from acp_tui import keys
from acp_tui.actions.collaboration_actions import CollaborationActions
from acp_tui.screens.collaboration_navigation import Navigation
from acp_tui.screens.collaboration_source import Source
from acp_tui.screens.document_requests import DocumentRequests
from acp_tui.screens.pane_layout import NARROW, PaneLayout
from acp_tui.screens.pane_loader import PaneLoader
from acp_tui.screens.pane_switcher import PaneSwitcher
from acp_tui.text import MUTED, line
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import PEOPLE, STORY, Documents
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.headline import Headline
from acp_tui.widgets.headline_rows import FEW, LOW, MOST, Keys
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.next_actions import NextActions
from acp_tui.widgets.pane import Pane
from acp_tui.widgets.pane_data import PaneData
from acp_tui.widgets.phase_rail import PhaseRail
from acp_tui.widgets.row_list import RowList
from acp_tui.widgets.state_tree import StateTree
from acp_tui.widgets.tab_strip import TabStrip
from acp_tui.widgets.text_view import TextView
from acp_tui.widgets.timeline import Timeline
from acp_tui.widgets.timeline_view import TimelineView

if TYPE_CHECKING:
    from acp_core.model import Outcome

HINTED = (
    "act.acknowledge", "act.remedy", "act.next_need", "collaboration.why",
    "act.launch", "collaboration.before", "collaboration.after",
)  # fmt: skip
"""The keys that the headline speaks of, as `Keys` has them."""


def _places() -> type[Provider]:
    from acp_tui.screens.command_palette import PlacesProvider

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
        self.loader = PaneLoader(self, self.make_source())
        for pane in (self.headline, self.findings, self.next, self.documents.panel):
            pane.called = self.loader.label

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
    def needs(self) -> tuple[Need, ...]:
        """The open needs that are shown."""
        return self.data.needs if self.data is not None else ()

    def in_hand(self) -> Snapshot | None:
        """The collaboration to act on."""
        return self.snapshot

    def called(self, key: str, action: str) -> str:
        """What an action is called, where it is known; the words of its name until then."""
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

    def show_data(self, data: PaneData, asked: Sequence[tuple[Snapshot, Need]] = ()) -> None:
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
