"""What people read in a collaboration: a tab per document, and for what else there is to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import var
from textual.widgets import ContentSwitcher

from acp_core.model import Document, DocumentText, Panel, Snapshot, Status
from acp_core.model.format import names_in
from acp_tui.widgets import next_actions, people, phase_rail
from acp_tui.widgets.document_view import DocumentView, Reading
from acp_tui.widgets.pane import PaneData, Tab, TabStrip
from acp_tui.widgets.panel_view import Count, PanelFilter, PanelView
from acp_tui.widgets.row_list import Item, RowList

if TYPE_CHECKING:
    from acp_core.history.past import DocumentChange

TABS = 60
"""How many documents get a tab; all are found in the list that ``d`` opens."""

WHY, GATES, PEOPLE, PHASES, STORY = "why", "gates", "people", "phases", "story"

Find = Callable[[str], Snapshot | None]


@dataclass(slots=True)
class _Memory:
    """What is remembered of a document while the screen is open."""

    text: DocumentText | None = None
    seen: str | None = None  # its text when it was last seen
    asked: str | None = None  # the version that was asked for last
    came: str | None = None  # the version that had been asked for when the text came


class Documents(Vertical):
    """The tabs, and below them what the active one shows."""

    DEFAULT_CSS = """
    Documents {
        & ContentSwitcher { height: 1fr; }
        & DocumentView { height: 1fr; }
    }
    """

    @dataclass
    class TextWanted(Message):
        """A document is looked at, and its text is not known: `loaded` takes it."""

        document: Document

    class LabelsWanted(Message):
        """Causes are looked at: what their remedies are called is to be told by `labels`."""

    class Switched(Message):
        """Another tab is active."""

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    loops: var[people.Loops] = var(())
    """Which loops the participants have."""
    labels: var[Mapping[str, str] | None] = var(None)
    """What the actions are called that can be done now, by name; None: not known yet."""
    change: var[DocumentChange | None] = var(None, init=False)
    """In the past: the document that changed at the step; changes are marked in no other one."""
    last_seen: var[Mapping[str, str] | None] = var(None, init=False)
    """Which version of each document was there at the last visit; None: this is the first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.strip = TabStrip(id="document-tabs")
        self.document_view = DocumentView(id="show-document")
        self.list = RowList(wrapped=True, id="show-list")
        self.panel = PanelView(id="show-panel")
        self.panel.begin_filter = self._begin_filter
        self.panel_filter = PanelFilter(id="panel-filter")
        self.active = ""
        self._picked = False  # whether a person, or what they followed, chose the tab
        self.fix_key = "f"  # what the key is called that does what a cause asks for
        self.find_snapshot: Find = lambda key: None
        """Knows other collaborations by their location."""
        self._labels_for: object = None  # the causes for which they were asked
        self._memories: dict[str, _Memory] = {}
        self._versions: dict[str, str] | None = None  # of documents at the last visit
        self._current = True  # whether a person looks at this screen

    def compose(self) -> ComposeResult:
        yield self.strip
        with ContentSwitcher(initial="show-document"):
            yield self.document_view
            yield self.list
            yield self.panel
        yield self.panel_filter

    # --- what is shown ---------------------------------------------------------------------

    def watch_data(self, before: PaneData | None, data: PaneData | None) -> None:
        """Show a Snapshot as of a time: what the active tab shows, where that is another thing."""
        if data is None:
            return
        same = before is not None and before.snapshot is data.snapshot and before.utc == data.utc
        if before is None or not same:
            self._replace(before, data)
        else:
            self._tick(data, minute=before.minute != data.minute)

    def _replace(self, before: PaneData | None, data: PaneData) -> None:
        snapshot = data.snapshot
        if not self._has(self.active) or (not self._picked and self._is_empty(self.active)):
            self.active = self._first()
        if (
            before is None
            or before.utc != data.utc
            or _parts(before.snapshot, self.active) != _parts(snapshot, self.active)
        ):
            self._draw()
        self._draw_tabs()

    def watch_loops(self) -> None:
        """Show the loops where participants show."""
        if self.active == PEOPLE:
            self._draw()

    def watch_labels(self) -> None:
        """Call the remedies so where they show."""
        if self.active == WHY:
            self._draw()

    def watch_last_seen(self, versions: Mapping[str, str] | None) -> None:
        """Mark what is new since the last visit."""
        self._versions = None if versions is None else dict(versions)
        self._draw_tabs()

    def watch_change(self) -> None:
        """Mark what changed at another step."""
        self._draw()
        self._draw_tabs()

    def _tick(self, data: PaneData, *, minute: bool) -> None:
        """The time went on; ``minute``: another one began."""
        if self._document is not None:
            self.document_view.now = data.now
        elif self.active_view is self.panel:
            self.panel.now = data.now
        elif (minute and self.active in (PHASES, STORY, WHY)) or self.active == PEOPLE:
            self._draw()

    def draw_story(self) -> None:
        """Draw the chain of collaborations anew: more is known of another one."""
        if self.active == STORY:
            self._draw()

    def activate(self, tab: str) -> bool:
        """Show a tab; returns whether there is one of that name."""
        if not self._has(tab):
            return False
        self._picked = True
        if tab != self.active:
            self._leave()
            self.panel_filter.end()
            self.active = tab
            self._draw()
            self._draw_tabs()
            self.post_message(self.Switched())
        return True

    def step(self, by: int) -> None:
        """Show the next, or the previous, tab."""
        tabs = [tab.id for tab in self._tabs()]
        if tabs:
            here = tabs.index(self.active) if self.active in tabs else 0
            self.activate(tabs[(here + by) % len(tabs)])

    def open(self, document: str, line: int | None = None, *, raw: bool = False) -> bool:
        """Show a document, at a line where given; returns whether there is such a document."""
        if self._snapshot is None or self._snapshot.document(document) is None:
            return False
        self.activate(f"document {document}")
        if line is not None:
            self.document_view.go_to(line, raw=raw)
        return True

    def loaded(self, text: DocumentText) -> None:
        """Take the text of a document."""
        memory = self._memories.setdefault(text.id, _Memory())
        memory.text, memory.came = text, memory.asked
        if self._document is not None and self._document.id == text.id:
            if memory.seen is None:
                memory.seen = text.text
            self._draw()
            self._draw_tabs()

    def leave(self) -> None:
        """The screen is left: what showed was seen."""
        self._leave()

    @property
    def active_view(self) -> DocumentView | RowList:
        """What the active tab shows."""
        if self._document is not None:
            return self.document_view
        return self.panel if self.active.startswith("panel ") else self.list

    @property
    def selected_participant(self) -> str:
        """The id of the participant that is selected; "" where none is."""
        selected = self.list.selected if self.active == PEOPLE else None
        return selected.key if selected is not None else ""

    @property
    def _snapshot(self) -> Snapshot | None:
        return self.data.snapshot if self.data is not None else None

    @property
    def title(self) -> str:
        """What the whole is called: a protocol's own panels are more than documents."""
        return (
            "Overview" if self._snapshot is not None and _leading(self._snapshot) else "Documents"
        )

    @property
    def all_tabs(self) -> list[Tab]:
        """Every tab there could be, also for documents beyond `TABS`."""
        return self._tabs(limit=None)

    def _leave(self) -> None:
        document = self._document
        if document is not None:
            memory = self._memories.get(document.id)
            if memory is not None and memory.text is not None:
                memory.seen = memory.text.text

    @property
    def _document(self) -> Document | None:
        if self._snapshot is None or not self.active.startswith("document "):
            return None
        return self._snapshot.document(self.active.removeprefix("document "))

    # --- drawing ---------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Give the names of participants the room that there is now."""
        if self.active == PEOPLE:
            self._draw()

    def _draw(self) -> None:
        data = self.data
        if data is None or not self.is_mounted:
            return
        snapshot, now, utc = data.snapshot, data.now, data.utc
        document = self._document
        if document is not None:
            self._draw_document(document, now)
        elif self.active.startswith("panel "):
            name = self.active.removeprefix("panel ")
            panel = next((panel for panel in snapshot.panels if panel.id == name), None)
            if panel is not None:
                self.panel.now, self.panel.panel = now, panel
        elif self.active == WHY:
            if self._labels_for is not snapshot.causes:
                self._labels_for = snapshot.causes
                self.post_message(self.LabelsWanted())
            names = tuple(names_in(snapshot))
            rows = next_actions.cause_items(
                snapshot.causes, now, utc, self.labels, self.fix_key, names, self.panel.called
            )
            self._list(rows, next_actions.NO_CAUSES)
        elif self.active == GATES:
            self._list(next_actions.gate_items(snapshot.gates), next_actions.NO_GATES)
        elif self.active == PHASES:
            rows = phase_rail.phase_items(snapshot.phases, now, utc)
            self._list(rows, "This protocol has no phases.")
        elif self.active == STORY:
            self._list(phase_rail.items(snapshot, self.find_snapshot, now, utc))
        else:
            rows = people.items(snapshot, self.loops, now, utc, self.size.width)
            self._list(rows, people.EMPTY)
        self.query_one(ContentSwitcher).current = self.active_view.id
        self.panel_filter.display = self.active_view is self.panel

    def _list(self, rows: Sequence[Item], empty: str = "") -> None:
        self.list.empty, self.list.items = empty, tuple(rows)

    def _draw_document(self, document: Document, now: datetime) -> None:
        memory = self._memories.setdefault(document.id, _Memory())
        current = memory.text is not None and memory.text.version == document.version
        if not current and document.state == "present" and memory.asked != document.version:
            memory.asked = document.version
            self.post_message(self.TextWanted(document))
        if self._versions is not None:
            self._versions[document.id] = document.version
        self.document_view.now = now
        self.document_view.past = self.data is not None and self.data.past
        self.document_view.reading = self._reading(document, memory)

    def _reading(self, document: Document, memory: _Memory) -> Reading:
        if self.data is None or not self.data.past:
            return Reading(document, memory.text, memory.seen)
        change = self.change
        if change is None or change.document != document.id or memory.came != document.version:
            return Reading(document, memory.text)
        return Reading(document, memory.text, change.before, "in this step", first_change=True)

    def _first(self) -> str:
        """The tab to begin with: what came out, else the first that shows something."""
        outcome = outcome_tab(self._snapshot) if self._snapshot is not None else ""
        shown = (tab.id for tab in self._tabs() if not self._is_empty(tab.id))
        return outcome or next(shown, PEOPLE)

    def _is_empty(self, tab: str) -> bool:
        """Whether a tab is a panel without rows."""
        panels = self._snapshot.panels if self._snapshot else ()
        return any(tab == f"panel {panel.id}" and not panel.rows for panel in panels)

    def _draw_tabs(self) -> None:
        self.strip.tabs, self.strip.active = tuple(self._tabs()), self.active

    def _tabs(self, limit: int | None = TABS) -> list[Tab]:
        snapshot = self._snapshot
        if snapshot is None:
            return []
        documents = [d for d in snapshot.documents if d.group != "state"][:limit]
        states = [d for d in snapshot.documents if d.group == "state"][:limit]
        document_tabs = [self._tab(document) for document in documents]
        leads = _leading(snapshot)
        shown = [_panel_tab(panel) for panel in snapshot.panels[:limit]]
        panels = shown if leads else []
        # what a protocol has of its own shows best how it stands; else its documents do
        tabs = [*(panels or document_tabs)]
        if snapshot.causes:
            tabs.append(Tab(WHY, "Why", str(len(snapshot.causes))))
        if snapshot.gates:
            tabs.append(Tab(GATES, "Gates", next_actions.tally(snapshot.gates)))
        tabs += [] if leads else shown
        tabs.append(Tab(PEOPLE, "Participants"))
        if snapshot.phases:
            tabs.append(Tab(PHASES, "Phases"))
        if snapshot.lineage:
            tabs.append(Tab(STORY, "Story"))
        if panels:
            tabs += document_tabs
        return tabs + [self._tab(document) for document in states]

    def _tab(self, document: Document) -> Tab:
        return Tab(f"document {document.id}", document.title, new=self._is_new(document))

    def _is_new(self, document: Document) -> bool:
        """Whether a document changed since the last visit, or since it was looked at."""
        if self.active == f"document {document.id}":
            return False
        if self.data is not None and self.data.past:
            return self.change is not None and self.change.document == document.id
        memory = self._memories.get(document.id)
        if memory is not None and memory.text is not None:
            return memory.text.version != document.version
        if self._versions is None:
            return False
        return self._versions.get(document.id) != document.version

    def _has(self, tab: str) -> bool:
        return any(tab == known.id for known in self._tabs(limit=None))

    # --- messages --------------------------------------------------------------------------

    @on(TabStrip.Chosen)
    def _chosen(self, message: TabStrip.Chosen) -> None:
        message.stop()
        self.activate(message.tab)

    def _begin_filter(self) -> None:
        if self.panel.panel is not None:
            self.panel_filter.begin(self.panel.panel, self.panel.words)

    @on(PanelView.Narrowed)
    def _narrowed(self, message: PanelView.Narrowed) -> None:
        message.stop()
        self.panel_filter.count = Count(message.words, message.matching, message.total)

    @on(PanelFilter.Changed)
    def _filter_changed(self, message: PanelFilter.Changed) -> None:
        message.stop()
        self.panel.narrow(message.words)

    @on(PanelFilter.Left)
    def _filter_left(self, message: PanelFilter.Left) -> None:
        message.stop()
        self.panel_filter.end()
        self.panel.focus()

    @on(DocumentView.Seen)
    def _seen(self, message: DocumentView.Seen) -> None:
        message.stop()
        self._leave()
        self._draw()


def outcome_tab(snapshot: Snapshot) -> str:
    """The tab that says what came out of a completed collaboration; "" where there is none."""
    if snapshot.status is not Status.COMPLETED:
        return ""
    for name in snapshot.outcome:
        panel, document = snapshot.panel(name), snapshot.document(name)
        if panel is not None and panel.rows:
            return f"panel {name}"
        if document is not None and document.state == "present":
            return f"document {name}"
    return ""


def _leading(snapshot: Snapshot) -> bool:
    """Whether a protocol's own panels show best how it stands: what only adds to documents does not."""
    return any(not panel.disagreement for panel in snapshot.panels)


def _panel_tab(panel: Panel) -> Tab:
    """A panel's tab; of points that were raised it says how many are open."""
    is_open = sum(row.checked is False for row in panel.rows) if panel.disagreement else 0
    return Tab(f"panel {panel.id}", panel.title, f"{is_open} open" if is_open else "")


def _parts(snapshot: Snapshot, tab: str) -> tuple[int, ...]:
    """What a tab shows of a Snapshot, to be compared: the same objects have the same numbers."""
    if tab.startswith("document "):
        return (id(snapshot.document(tab.removeprefix("document "))),)
    if tab.startswith("panel "):
        return (id(snapshot.panels),)
    parts: dict[str, tuple[object, ...]] = {
        WHY: (snapshot.causes,),
        GATES: (snapshot.gates,),
        PHASES: (snapshot.phases,),
        STORY: (snapshot.lineage,),
    }
    default = (snapshot.participants, snapshot.turns, snapshot.next_actions)
    return tuple(id(part) for part in parts.get(tab, default))
