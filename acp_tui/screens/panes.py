"""The panes of a collaboration's screen: which is in front, what each gets to show, and how much room.

Two columns: timeline and findings, documents and next. Findings and next are as high as their
rows, timeline and documents take the rest; the timeline is as wide as its summaries, as far as
the documents stay readable. An empty pane is the line of its title. What is slow to get is got in
workers of the screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.widget import Widget

from acp_core.model import Document, Event, Matter, Snapshot
from acp_core.model.text import clean
from acp_tui.actions.availability import Labels, describe
from acp_tui.actions.offered import offered
from acp_tui.widgets import findings, next_actions, timeline
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import PEOPLE
from acp_tui.widgets.pane import NEW, Pane, PaneData, Source, Tab, TabStrip

if TYPE_CHECKING:
    from textual.timer import Timer

    from acp_tui.screens.collaboration import SnapshotScreen

PANES = ("timeline", "documents", "findings", "next")

LEFT = ("timeline", "findings")
"""Those in the column on the left."""


class PaneSwitcher:
    """The panes of a screen, of which a narrow terminal shows one.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen
        self.active = PANES[0]

    def entitle(self) -> None:
        """Say on the frames and tabs how much is in each pane, and what is new."""
        screen, documents = self._screen, self._screen.documents
        new = any(tab.new for tab in documents.strip.tabs)
        titles = {
            "timeline": screen.timeline.title,
            "documents": f"{documents.title} {NEW}" if new else documents.title,
            "findings": findings.title(screen.snapshot),
            "next": next_actions.title(screen.needs, screen.next.above),
        }
        for name, title in titles.items():
            pane = screen.query_one(f"#pane-{name}", Pane)
            empty = pane.has_class("-empty") and " · " not in title
            where = "at the top" if name == "next" and screen.needs else "none"
            pane.heading = f"{title} · {where}" if empty else title
        bar = screen.query_one("#pane-bar", TabStrip)
        bar.tabs = tuple(Tab(name, f"{n} {titles[name]}") for n, name in enumerate(PANES, 1))
        bar.active = self.active

    def bring_to_front(self, pane: str) -> None:
        """Show a pane where only one shows."""
        if pane != self.active:
            self.active = pane
            for name in PANES:
                self._screen.query_one(f"#pane-{name}").set_class(name == pane, "-shown")
            self._screen.query_one("#left").set_class(pane in LEFT, "-shown")
            self._screen.query_one("#right").set_class(pane not in LEFT, "-shown")
            self.entitle()

    def focus(self, pane: str) -> None:
        """Go to a pane."""
        self.bring_to_front(pane)
        self._screen.layout_of_panes.go_to(pane)
        self._focusable(pane).focus()

    def step(self, by: int) -> None:
        """Go to the pane beside."""
        self.focus(PANES[(PANES.index(self.active) + by) % len(PANES)])

    def focus_next(self, by: int) -> None:
        """Go to the next thing that takes keys: panes, and the details of an event."""
        screen = self._screen
        details = screen.timeline.details
        order = [self._focusable(pane) for pane in PANES]
        if details.display:
            order.insert(1, details)
        here = order.index(screen.focused) if screen.focused in order else 0
        there = order[(here + by) % len(order)]
        if there is details:
            self.bring_to_front("timeline")
            there.focus()
        else:
            self.focus(next(pane for pane in PANES if self._focusable(pane) is there))

    def follow_focus(self, widget: Widget) -> None:
        """A widget took the keys: bring its pane to the front."""
        pane = next((a for a in widget.ancestors_with_self if isinstance(a, Pane)), None)
        if pane is not None and pane.id is not None:
            self.bring_to_front(pane.id.removeprefix("pane-"))

    def _focusable(self, pane: str) -> Widget:
        """What takes the keys in a pane."""
        screen = self._screen
        if pane == "documents":
            active = screen.documents.active_view
            return active.active_view if isinstance(active, DocumentView) else active
        widgets: dict[str, Widget] = {
            "timeline": screen.timeline.view,
            "findings": screen.findings,
            "next": screen.next,
        }
        return widgets[pane]


SOON = 0.3
"""Seconds until loops are looked at after a change: not while what changed is drawn."""


class PaneLoader:
    """Hands each pane what it asked for, when it is there.

    Args:
        screen: The collaboration's.
        source: Where texts come from: the present, or a moment of the past.
    """

    def __init__(self, screen: SnapshotScreen, source: Source) -> None:
        self._screen = screen
        self._source = source
        self._labels = Labels(screen.app, self._relabel)
        self._askers: dict[str, str] = {}  # by action: the collaboration whose need it helps
        self._loops_soon: Timer | None = None

    def load_text(self, document: Document) -> None:
        """Get a document's text for the pane of documents."""
        self._start(partial(self._load_text, document), "load")

    async def _load_text(self, document: Document) -> None:
        text = await self._source.text(document)
        if text is not None:
            self._screen.documents.loaded(text)

    def load_source(self, event: Event) -> None:
        """Get an event as its source holds it for the event's details."""
        self._start(partial(self._load_source, event), "source", exclusive=True)

    async def _load_source(self, event: Event) -> None:
        source = await self._source.event(event)
        details = self._screen.query_one(timeline.EventDetails)
        details.source = timeline.Source(event.id, source)

    def load_loops(self) -> None:
        """Get the loops of the participants for the pane of documents."""
        if self._loops_soon is not None:
            self._loops_soon.stop()
            self._loops_soon = None
        self._start(self._load_loops, "loops", exclusive=True)

    def load_loops_soon(self) -> None:
        """As `load_loops`, in a moment, while they show: once for all that happens until then."""
        if self._loops_soon is None and self._screen.documents.active == PEOPLE:
            self._loops_soon = self._screen.set_timer(SOON, self.load_loops)

    async def _load_loops(self) -> None:
        self._screen.documents.loops = await self._source.loops()

    def load_labels(self) -> None:
        """Get what the causes' remedies are called, and which can be done now."""
        self._start(self._load_labels, "labels", exclusive=True)

    async def _load_labels(self) -> None:
        snapshot = self._screen.snapshot
        causes = snapshot.causes if snapshot is not None else ()
        for name in {verdict.act for cause in causes for verdict in cause.verdicts}:
            await describe(snapshot.protocol if snapshot else "", name)
        try:
            actions = await offered(self._screen.app, self._screen.key)
        except Exception:  # somebody else's protocol, or it is gone: descriptions do
            return
        self._screen.documents.labels = {action.name: action.label for action in actions}

    def label(self, action: str) -> str:
        """What an action is called; a sign that it is loading until then."""
        return self._labels.of(self._askers.get(action, self._screen.key), action)

    def want_labels(self, data: PaneData, asked: Sequence[tuple[Snapshot, Matter]] = ()) -> None:
        """See to it that it is known what the actions of needs and findings are called.

        Args:
            data: What the panes show.
            asked: Its needs, each with the collaboration (itself, or a part) whose it is.
        """
        wanted = {need.remedy: whose for whose, need in asked if need.remedy}
        self._askers = {name: whose.key for name, whose in wanted.items()}
        names: list[str | None] = [need.remedy for need in data.needs]
        names += [finding.action for finding in data.snapshot.findings]
        wanted = {name: data.snapshot for name in names if name} | wanted
        self._labels.want_soon((whose, name) for name, whose in wanted.items())

    def _relabel(self) -> None:
        """It is known now what actions are called."""
        screen = self._screen
        for pane in (screen.headline, screen.findings, screen.next, screen.documents.panel):
            pane.called = self.label

    def copy_event(self, event: Event) -> None:
        """Copy an event as JSON."""
        self._start(partial(self._copy_event, event), "copy")

    async def _copy_event(self, event: Event) -> None:
        self.copy(await self._source.event(event), f"event {event.order} as JSON")

    def copy(self, text: str, what: str) -> None:
        """Put a text on the clipboard, and say ``what`` it was."""
        self._screen.app.copy_to_clipboard(clean(text))
        self._screen.app.tell(f"Copied {what}.", timeout=3)

    def _start(
        self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False
    ) -> None:
        self._screen.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)


NARROW = 100
"""With fewer columns one pane shows at a time."""

FRAME = 2

SCROLL_BAR = 1

STEP = 6
"""By how many columns the timeline grows: it must not move with each event."""

SPARE, DETAILS = 1, 8
"""Rows beside those that a pane holds; in the one that was gone to, for all about its selected row."""

LEAST = 3
"""Rows that a pane of findings or next has at least, where it is not empty."""

EVENT = 2
"""Rows that an event of the timeline takes, with a summary that goes on in the next row."""

MANY = 1_000
"""Events that leave no row of the timeline to other panes."""

AROUND = 7
"""Rows of the screen that are no panes: sentence, needs, phases, keys."""

CALM = 2.0
"""Seconds without a change after which a pane gives back the rows that it no longer needs."""


class Sizes(NamedTuple):
    """Cells and rows with frames; a height of 1 is the title alone."""

    timeline: int
    findings: int
    next: int

    def grown(self, before: Sizes) -> Sizes:
        """Each as large as it is now or was before."""
        return Sizes(*map(max, self, before))


def sizes(
    columns: int,
    rows: int,
    needed: int,
    findings: Callable[[int], int],
    next: Callable[[int], int],
    front: str = "",
    events: int = MANY,
) -> Sizes:
    """The sizes of the panes, of which documents get what is left.

    Args:
        columns: Of the screen.
        rows: Of the screen.
        needed: The cells that the timeline's rows need to show all of their summaries.
        findings: How many rows the findings take in so many cells.
        next: The same of what comes next.
        front: The pane that the person went to.
        events: How many the timeline shows; what few of them leave is there for findings.
    """
    least, most = columns * 2 // 5, columns * 11 // 20
    wanted = -(-(needed + FRAME + SCROLL_BAR) // STEP) * STEP
    timeline = max(least, min(wanted, most))
    share = max(LEAST, (rows - AROUND) * 2 // 5 - FRAME)
    left = rows - AROUND - 2 * FRAME - EVENT * events - DETAILS

    def height(pane: str, held: int, most: int) -> int:
        spare = DETAILS if pane == front else SPARE
        return FRAME + min(max(LEAST, held + spare), most) if held else 1

    return Sizes(
        timeline,
        height("findings", findings(timeline - FRAME - SCROLL_BAR), max(share, left)),
        height("next", next(columns - timeline - FRAME - SCROLL_BAR), share),
    )


class PaneLayout:
    """Gives the panes of a screen their sizes, and again where what they hold needs others.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen
        self._sizes: Sizes | None = None
        self._size = (0, 0)
        self._front = ""
        self._shrinking: Timer | None = None

    def go_to(self, pane: str) -> None:
        """Give the pane that a person goes to by its key room for all about its selected row.

        By the mouse nothing moves: the second click of two must hit the same row.
        """
        if pane != self._front:
            self._front = pane
            if self._sizes is not None:
                self.fit(calm=True)

    def fit(self, *, calm: bool = False) -> None:
        """Size the panes by what they hold now.

        The timeline only grows while one looks. Findings and next grow at once, and shrink when
        nothing has changed for a while: panes must not move, nor be drawn again, with every event.

        Args:
            calm: Let them shrink now.
        """
        screen = self._screen
        columns, rows = size = screen.app.size
        screen.timeline.view.wrapped = columns >= NARROW
        if columns < NARROW or screen.has_class("-zoom"):
            self._apply(None)
            return
        needed = screen.timeline.view.needed_width
        held = screen.findings.rows_in, screen.next.rows_in
        events = screen.timeline.view.model.length
        wanted = sizes(columns, rows, needed, *held, self._front, events)
        if self._shrinking is not None:
            self._shrinking.stop()
            self._shrinking = None
        if self._sizes is not None and self._size == size:
            grown = wanted.grown(self._sizes)
            if calm:
                wanted = wanted._replace(timeline=grown.timeline)
            else:
                if grown._replace(timeline=wanted.timeline) != wanted:
                    self._shrinking = screen.set_timer(CALM, partial(self.fit, calm=True))
                wanted = grown
        self._size = (columns, rows)
        self._apply(wanted)

    def _apply(self, sizes: Sizes | None) -> None:
        if sizes == self._sizes:
            return
        self._sizes = sizes
        left = self._screen.query_one("#left")
        if sizes is None:
            left.styles.clear_rule("width")
        else:
            left.styles.width = sizes.timeline
        self._set_height("findings", None if sizes is None else sizes.findings)
        self._set_height("next", None if sizes is None else sizes.next)

    def _set_height(self, name: str, rows: int | None) -> None:
        pane = self._screen.query_one(f"#pane-{name}", Pane)
        pane.set_class(rows == 1, "-empty")
        if rows is None:
            pane.styles.clear_rule("height")
        else:
            pane.styles.height = rows
