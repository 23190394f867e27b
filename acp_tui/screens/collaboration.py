"""One collaboration: what happened, what was written, what is wrong, and what comes next."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import PurePath
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.command import Provider
from textual.containers import Container
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static

from acp_core.model import Need, Snapshot, Target
from acp_tui import keys
from acp_tui.screens.collaboration_going import Going
from acp_tui.text import MUTED, line
from acp_tui.widgets import findings, next_actions
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.documents import Documents
from acp_tui.widgets.findings import Findings
from acp_tui.widgets.headline import Headline, Keys
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.next_actions import NextActions
from acp_tui.widgets.pane import Pane
from acp_tui.widgets.phase_rail import PhaseRail
from acp_tui.widgets.tab_strip import NEW, Tab, TabStrip
from acp_tui.widgets.timeline import Timeline

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_core.person.attention import Visit

FRAME = 1 / 30
"""Seconds between two pictures while changes come in a flood; the first is drawn at once."""

HINTED = ("act.acknowledge", "act.remedy", "collaboration.before", "collaboration.after")
"""The keys that the headline speaks of."""

PANES = ("timeline", "documents", "findings", "next")


def _places() -> type[Provider]:
    from acp_tui.screens.command_palette import PlacesProvider

    return PlacesProvider


class CollaborationScreen(Going):
    """The panes of one collaboration; each redraws only when its part of the Snapshot changed."""

    CSS_PATH: ClassVar[str | list[str | PurePath]] = "collaboration.tcss"
    AUTO_FOCUS = "TimelineView"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (200, "-ultra")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    COMMANDS: ClassVar[set[Any]] = {_places}
    BINDINGS: ClassVar[list[BindingType]] = [*keys.COLLABORATION, *keys.ACT]

    def __init__(self, key: str, target: Target | None = None) -> None:
        """Make it.

        Args:
            key: The collaboration's, as its Snapshots bear it.
            target: What to show first.
        """
        super().__init__(key)
        self._target = target
        self._needs: tuple[Need, ...] = ()
        self._visit: Visit | None = None
        self._gone = False
        self._pane = "timeline"
        self._drawn_at = 0.0
        self._pending: Timer | None = None
        self._minute = -1

    def compose(self) -> ComposeResult:
        """Headline and rail on top, the panes, the keys."""
        self._fit(*self.app.size)
        yield Headline(id="headline")
        yield PhaseRail(id="rail")
        yield TabStrip(id="pane-bar")
        yield Static(id="waiting")
        with Container(id="panes"):
            with Pane(id="pane-timeline", classes="-shown"):
                yield Timeline(id="timeline")
            with Pane(id="pane-documents"):
                yield Documents(id="documents")
            with Pane(id="pane-findings"):
                yield Findings(id="findings")
            with Pane(id="pane-next"):
                yield NextActions(id="next")
        yield KeyLine()

    def _fit(self, columns: int, rows: int) -> None:
        """Say how much room there is before anything is styled: later, all of it would be again."""
        points = ((columns, self.HORIZONTAL_BREAKPOINTS), (rows, self.VERTICAL_BREAKPOINTS))
        for room, named in points:
            self.add_class(
                next(name for least, name in sorted(named, reverse=True) if room >= least)
            )

    def on_mount(self) -> None:
        """Listen to the fleet, show what is known, and look at the clock once a second."""
        self.timeline = self.query_one(Timeline)
        self.documents = self.query_one(Documents)
        self.documents.fix_key = keys.called(self.app, "act.remedy")
        self.findings = self.query_one(Findings)
        self.next = self.query_one(NextActions)
        self.findings.called = self.next.called = self.documents.panel.called = self.called
        self._visit = self.app.attention.last_visit(self.key)
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._zone_changed, init=False)
        self.set_interval(1.0, self._tick)
        self.say_waiting(self.reading)
        if self.key not in self.app.fleet.snapshots:
            self.wait()
        self._draw()

    async def on_unmount(self) -> None:
        """Remember what was seen."""
        if self.snapshot is None:
            return
        try:
            await asyncio.to_thread(self.app.attention.visited, self.snapshot, self.app.now())
        except OSError as error:
            self.app.tell(f"What you saw cannot be kept: {error.strerror or error}", "warning")
        if self.app.is_running:
            self.app.attention_changed()

    @property
    def reading(self) -> str:
        """What is said while it is read."""
        return f"Reading {self.key} …"

    def say_waiting(self, words: str) -> None:
        """Say what stands there for as long as there is nothing to show."""
        self.query_one("#waiting", Static).update(line(words, MUTED))

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
        self.refresh(layout=over)  # what shows now has its place in the very next picture

    # --- what comes in ---------------------------------------------------------------------

    def _changed(self, batch: Batch) -> None:
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
            self.find_loops()
        if batch.complete and self.snapshot is None and self.key not in self.app.fleet.snapshots:
            words = "There is no collaboration here, or not anymore. Escape goes back to the fleet."
            self.say_waiting(words)
        wait = self._drawn_at + FRAME - monotonic()
        if wait <= 0:
            self._draw()
        elif self._pending is None:
            self._pending = self.set_timer(wait, self._draw)

    def _draw(self) -> None:
        """Show the newest Snapshot: only what changed in it."""
        self._drawn_at, self._pending = monotonic(), None
        snapshot = self.app.fleet.snapshots.get(self.key, self.snapshot)
        if snapshot is not None:
            self.draw_as_of(snapshot, self.needs_of(snapshot), self.app.now())
            self.ask_what_it_offers()

    def draw_as_of(self, snapshot: Snapshot, needs: tuple[Need, ...], now: datetime) -> None:
        """Show a Snapshot as of a time: only what changed since the one before."""
        before, self.snapshot, self._needs = self.snapshot, snapshot, needs
        utc = self.app.utc
        self.wait(over=True)
        headline = self.query_one(Headline)
        headline.keys = Keys(*(self._called(id) for id in HINTED))
        headline.show(snapshot, self._needs, now, utc=utc, gone=self._gone)
        self.query_one(PhaseRail).show(snapshot.phases, now, snapshot.status)
        actors = tuple(person.id for person in snapshot.participants)
        self.timeline.view.utc = utc
        self.timeline.show(snapshot.events, actors, now)
        self.documents.take(snapshot, now, utc, self._find)
        if (
            before is None
            or before.findings is not snapshot.findings
            or before.verdict is not snapshot.verdict
        ):
            self.findings.take(snapshot)
        self.next.take(snapshot, self._needs, now)
        self.want_labels(snapshot, needs)
        if before is None:
            self._begin(snapshot)
        self._entitle()

    def _called(self, id: str) -> str:
        """What the key of a binding is called, also where the person chose another."""
        bound = (*keys.ACT, *keys.COLLABORATION)
        binding = next(each for each in bound if each.id == id)
        key = self.app.settings.keys.get(id, binding.key).partition(",")[0].strip()
        display = binding.key_display if id not in self.app.settings.keys else None
        return self.app.get_key_display(binding.with_key(key, display))

    def _begin(self, snapshot: Snapshot) -> None:
        """The first Snapshot is there: mark what is new since the last visit, go to the target."""
        visit = self._visit
        if visit is not None:
            self.timeline.set_visit(_seen(snapshot, visit), visit.at)
            self.documents.set_visit(dict(visit.versions))
        self.find_loops()
        if self._target is not None:
            self.call_after_refresh(self.go, self._target)

    def _tick(self) -> None:
        snapshot = self.snapshot
        if self.app.fleet.snapshots.get(self.key, snapshot) is not snapshot:
            if self._pending is None:
                self._draw()  # nobody told: a signal leaves out a screen that is not ready for it
            return
        if snapshot is None:
            return
        now = self.app.now()
        self.query_one(Headline).tick(now)
        self.query_one(PhaseRail).tick(now)
        self.timeline.tick(now)
        minute = int(now.timestamp() // 60)
        self.documents.tick(now, minute=minute != self._minute)
        if minute != self._minute:
            self._minute = minute
            self.next.take(snapshot, self._needs, now)

    def renamed(self) -> None:
        """Show what actions are called."""
        if self.snapshot is not None:
            self.findings.take(self.snapshot)
            self.next.take(self.snapshot, self._needs, self.app.now())
            self.documents.panel.renamed()

    def _zone_changed(self) -> None:
        self._draw()

    # --- titles and panes ------------------------------------------------------------------

    @on(Timeline.Told)
    @on(Documents.Switched)
    def _entitle(self) -> None:
        new = any(tab.new for tab in self.documents.strip.tabs)
        titles = {
            "timeline": self.timeline.title,
            "documents": f"{self.documents.title} {NEW}" if new else self.documents.title,
            "findings": findings.title(self.snapshot),
            "next": next_actions.title(self.snapshot, self._needs),
        }
        for name, title in titles.items():
            self.query_one(f"#pane-{name}", Pane).entitle(title)
        tabs = [Tab(name, f"{n} {titles[name]}") for n, name in enumerate(PANES, 1)]
        self.query_one("#pane-bar", TabStrip).show(tabs, self._pane)

    def _focusable(self, pane: str) -> Widget:
        """What takes the keys in a pane."""
        if pane == "documents":
            shown = self.documents.shown
            return shown.shown if isinstance(shown, DocumentView) else shown
        widgets: dict[str, Widget] = {
            "timeline": self.timeline.view,
            "findings": self.findings,
            "next": self.next,
        }
        return widgets[pane]

    def _show_pane(self, pane: str) -> None:
        if pane != self._pane:
            self._pane = pane
            for name in PANES:
                self.query_one(f"#pane-{name}").set_class(name == pane, "-shown")
            self._entitle()

    def action_pane(self, pane: str) -> None:
        """Go to a pane."""
        self._show_pane(pane)
        self._focusable(pane).focus()

    def action_step(self, by: int) -> None:
        """Go to the pane beside."""
        self.action_pane(PANES[(PANES.index(self._pane) + by) % len(PANES)])

    def action_focus_pane(self, by: int) -> None:
        """Go to the next thing that takes keys: panes, and the details of an event."""
        order = [self._focusable(pane) for pane in PANES]
        if self.timeline.details.display:
            order.insert(1, self.timeline.details)
        here = order.index(self.focused) if self.focused in order else 0
        there = order[(here + by) % len(order)]
        if there is self.timeline.details:
            self._show_pane("timeline")
            there.focus()
        else:
            self.action_pane(next(pane for pane in PANES if self._focusable(pane) is there))

    def action_zoom(self) -> None:
        """Give the whole space to this pane, or give it back."""
        self.toggle_class("-zoom")

    def action_tab(self, by: int) -> None:
        """Show the next document, or the one before."""
        self.documents.step(by)
        self.action_pane("documents")

    @on(events.DescendantFocus)
    def _focused(self, event: events.DescendantFocus) -> None:
        pane = next((a for a in event.widget.ancestors_with_self if isinstance(a, Pane)), None)
        if pane is not None and pane.id is not None:
            self._show_pane(pane.id.removeprefix("pane-"))

    @on(TabStrip.Chosen, "#pane-bar")
    def _pane_chosen(self, message: TabStrip.Chosen) -> None:
        self.action_pane(message.tab)

    def action_back(self) -> None:
        """Give the zoomed pane's space back, or go back to where one came from."""
        if self.has_class("-zoom"):
            self.remove_class("-zoom")
        else:
            self.dismiss()


def _seen(snapshot: Snapshot, visit: Visit) -> int | None:
    """How many events were there at a visit; None where the log is another one since."""
    count = visit.event_count
    if count == 0:
        return 0
    if count > len(snapshot.events):
        return None
    return count if snapshot.events[count - 1].id == visit.event_id else None
