"""A collaboration's history: the same panes as of any step, and a scrubber that says where one is.

`PastSource` reads its moments, and the texts of the one that shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from acp_core.history import moments
from acp_core.history import past as history_past
from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment
from acp_core.history.past import Past, Then
from acp_core.history.store import BadRecording
from acp_core.model import Document, DocumentText, Event, format
from acp_core.model.text import clean_line
from acp_core.protocols.locations import find
from acp_tui import keys
from acp_tui.screens.choosing import PickScreen
from acp_tui.screens.collaboration import SnapshotScreen
from acp_tui.text import Part, join, line, width
from acp_tui.widgets.pane import PaneData, TabStrip, unreadable
from acp_tui.widgets.phase_rail import PhaseRail
from acp_tui.widgets.row_list import Item

if TYPE_CHECKING:
    from acp_core.fleet import Batch
    from acp_tui.widgets.people import Loops

_SIGNS = {
    EVENT: ("▪", "$text-primary"),
    DOCUMENT: ("▫", "$text-muted"),
    FINDINGS: ("!", "$text-warning"),
}
_RANK = {FINDINGS: 3, EVENT: 2, DOCUMENT: 1}
_BEHIND, _AHEAD = ("━", "$text-accent"), ("─", "$text-muted")
TITLE = " REPLAY "


class Position(NamedTuple):
    """Where one is: the ``place`` among all ``moments``, and what is said of it.

    ``words`` tell the step, ``aside`` how it is replayed; ``mark`` is the place that was marked,
    if any.
    """

    moments: Sequence[Moment] = ()
    place: int = 0
    words: str = ""
    aside: str = ""
    mark: int | None = None


class Scrubber(Widget):
    """Two lines; a click on the lower one goes there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"scrubber--bar"}
    DEFAULT_CSS = """
    Scrubber {
        height: 2;
        background: $surface;
        & > .scrubber--bar { background: $warning; color: auto; text-style: bold; }
        &:ansi { background: ansi_default; }
        &:ansi > .scrubber--bar {
            background: ansi_yellow; color: ansi_black; text-style: bold reverse;
        }
    }
    """

    @dataclass
    class Sought(Message):
        """The person wants to go to the moment at this place."""

        place: int

    position: reactive[Position] = reactive(Position())
    """What it shows."""

    def render(self) -> Content:
        """The words, and below them the steps, as wide as the screen."""
        cells = max(10, self.content_size.width)
        return join(self._title(cells), "\n", *self._track(cells))

    def _title(self, cells: int) -> Content:
        """The bar: what was said last gives way first."""
        aside = f"  {self.position.aside} " if self.position.aside else ""
        room = cells - width(TITLE) - width(aside)
        words = line(self.position.words).truncate(max(0, room), ellipsis=True)
        gap = " " * max(0, room - width(words.plain))
        bar = Content(f"{TITLE}{words.plain}{gap}{aside}").truncate(cells)
        return bar.stylize(self.get_visual_style("scrubber--bar"))

    def _track(self, cells: int) -> list[Part]:
        moments, place, mark = self.position.moments, self.position.place, self.position.mark
        if not moments:
            return []
        kinds = [""] * cells
        for number, moment in enumerate(moments):
            cell = self._cell(number, cells)
            if _RANK.get(moment.kind, 0) >= _RANK.get(kinds[cell], 0):
                kinds[cell] = moment.kind
        here = self._cell(place, cells)
        marked = self._cell(mark, cells) if mark is not None else -1
        parts: list[Part] = []
        for cell, kind in enumerate(kinds):
            if cell == here:
                parts.append(("◆", "bold $text-accent"))
            elif cell == marked:
                parts.append(("◇", "bold $text-accent"))
            else:
                between = _BEHIND if cell < here else _AHEAD
                parts.append(_SIGNS.get(kind, ("·", "$text-muted")) if kind else between)
        return parts

    def _cell(self, place: int, cells: int) -> int:
        count = len(self.position.moments)
        return 0 if count < 2 else place * (cells - 1) // (count - 1)

    def on_click(self, event: events.Click) -> None:
        """Go to where the lower line was clicked."""
        count = len(self.position.moments)
        if event.y != 1 or count < 2:
            return
        cells = max(10, self.content_size.width)
        cell = min(max(0, event.x), cells - 1)
        place = round(cell * (count - 1) / max(1, cells - 1))
        self.post_message(self.Sought(place))


PACES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Moments a second at which it is played."""

AHEAD = 8
"""How many moments before the shown one are read in advance while somebody goes back."""

AGAIN = 1.0
"""Seconds after a change until the past is read again, which then has more moments."""

_PRESENT = frozenset(
    {"halt", "actions", "remedy", "acknowledge", "archive", "validate", "launch", "stop", "log",
     "why", "people", "lineage", "replay", "next_need"}
)  # fmt: skip


class ReplayScreen(SnapshotScreen):
    """A moment of a collaboration's past. Nothing can be done here."""

    CSS_PATH: ClassVar[str | list[str | PurePath]] = ["snapshot_screen.tcss", "replay.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [*keys.REPLAY]

    def __init__(self, key: str) -> None:
        """Make it.

        Args:
            key: The collaboration's.
        """
        super().__init__(key)
        self._source = PastSource(key)
        self._wanted = -1
        self._then: Then | None = None
        self._drawn = -1  # the place that was drawn last
        self._mark: int | None = None
        self._pace = 1
        self._tab = ""  # of the document that is looked at, also where it is not there yet
        self._playing: Timer | None = None
        self._stale: Timer | None = None

    @property
    def _past(self) -> Past | None:
        return self._source.past

    @property
    def _place(self) -> int:
        return self._source.place

    def make_source(self) -> PastSource:
        """The past, at the moment that shows."""
        return self._source

    def compose(self) -> ComposeResult:
        """The scrubber below the rail of phases."""
        for widget in super().compose():
            yield widget
            if isinstance(widget, PhaseRail):
                yield Scrubber(id="scrubber")

    def on_mount(self) -> None:
        """Read the past, and begin at its end."""
        self.scrubber = self.query_one(Scrubber)
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._draw, init=False)
        self.say_waiting(f"Reading the history of {self.key} …")
        self.wait()
        self._read()

    async def on_unmount(self) -> None:
        """Let go of the recording."""
        await self._source.close()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be done in the past."""
        return False if action in _PRESENT else super().check_action(action, parameters)

    # --- reading ---------------------------------------------------------------------------

    @work(group="past", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        """Find out which moments there are; stay at the one that is shown."""
        before = self._past.moments[self._place] if self._past and self._place >= 0 else None
        at_end = self._past is None or self._place == len(self._past.moments) - 1
        try:
            some = await self._source.read(self.app.now())
        except BadRecording as error:
            self.say_waiting(str(error))
            return
        past = self._past
        if past is None or not some:
            self.say_waiting("No history of this collaboration is known.")
            return
        place = len(past.moments) - 1
        if not at_end and before in past.moments:
            place = past.moments.index(before)
        self._source.place = -1
        self._go(place)

    def _changed(self, batch: Batch) -> None:
        """It is still going on: there will be more moments."""
        self.navigation.others_changed(batch)
        changed = any(snapshot.key == self.key for snapshot in batch.snapshots)
        if changed and self._past is not None and self._stale is None:
            self._stale = self.set_timer(AGAIN, self._read_again)

    def _read_again(self) -> None:
        self._stale = None
        self._read()

    # --- going -----------------------------------------------------------------------------

    def _go(self, place: int) -> None:
        """Show the moment at a place."""
        if self._past is not None:
            self._wanted = min(max(0, place), len(self._past.moments) - 1)
            if self._wanted != self._place:
                self._show_moment()

    @work(group="moment", exclusive=True, exit_on_error=False)
    async def _show_moment(self) -> None:
        place, before = self._wanted, self._place
        held = self._past.held(place) if self._past is not None else None
        try:
            then = held or await self._source.ask(lambda past: past.at(place))
        except (BadRecording, OSError) as error:
            self.app.tell(f"Could not show this step: {clean_line(str(error))}", "error")
            return
        if place != self._wanted or self._past is None:
            return
        if place < before:
            self._read_ahead(place - AHEAD)
        self._source.place, self._then = place, then
        self._draw()

    @work(group="ahead", exit_on_error=False)
    async def _read_ahead(self, place: int) -> None:
        """Going back, what lies further back is read before somebody waits for it."""
        if place > 0 and self._past is not None and self._past.held(place) is None:
            await self._source.ask(lambda past: past.at(place))

    def _draw(self) -> None:
        then, past = self._then, self._past
        if then is None or past is None:
            return
        self.show_data(
            PaneData(then.snapshot, then.snapshot.needs, then.moment.time, self.app.utc, past=True)
        )
        self._tab = self._tab or self.documents.active
        if self._drawn != self._place:
            self._drawn = self._place
            self._follow(past)
        if self.documents.active != self._tab:  # it was not there at the moment before
            self.documents.activate(self._tab)
        words, aside = self._words(then, past), self._details(past)
        self.scrubber.position = Position(past.moments, self._place, words, aside, self._mark)

    def _words(self, then: Then, past: Past) -> str:
        at = format.exact(then.moment.time, self.app.utc)
        what = clean_line(then.moment.what, 200)
        return f"step {format.grouped(self._place + 1)} of {format.grouped(len(past.moments))} · {at} · {what}"

    def _details(self, past: Past) -> str:
        """How it is replayed, and how well the time is known."""
        unsure = self._then is not None and not self._then.moment.exact
        said = (
            f"▶ {PACES[self._pace]:g}/s" if self._playing is not None else "",
            f"◇ marked {self._mark + 1}" if self._mark is not None else "",
            "" if past.recorded else "nothing was recorded",
            "time not verified" if past.recorded and unsure else "",
        )
        return " · ".join(filter(None, said))

    # --- the document that changed ---------------------------------------------------------

    def _follow(self, past: Past) -> None:
        """Where a document is open, open the one that changed at this step, with what changed."""
        self.documents.change = None
        changed = history_past.changed_document(past, self._place)
        if changed is None:
            return
        if self._tab.startswith("document "):
            self._tab = f"document {changed}"
        self._mark_change(changed, self._place)

    @work(group="change", exclusive=True, exit_on_error=False)
    async def _mark_change(self, document: str, place: int) -> None:
        try:
            change = await self._source.ask(
                lambda past: history_past.change_of(past, place, document)
            )
        except (BadRecording, OSError, KeyError):
            return  # what it was before is not known: nothing is marked
        if place == self._place:
            self.documents.change = change

    # --- keys ------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Go to the next moment, or the one before."""
        self._stop()
        self._go((self._wanted if self._wanted >= 0 else self._place) + by)

    def action_end(self, direction: int) -> None:
        """Go to the beginning, or to the end."""
        self._stop()
        if self._past is not None:
            self._go(len(self._past.moments) - 1 if direction > 0 else 0)

    def action_jump(self, kind: str, direction: int) -> None:
        """Go to the next event, finding, stall or phase, or to the one before."""
        self._stop()
        past = self._past
        if past is None:
            return
        if kind == "phase":
            place = moments.next_place(past.phase_changes(), self._place, direction)
        else:
            place = moments.next_place(
                moments.places_of_kind(past.moments, kind), self._place, direction
            )
        if place is None:
            names = {"findings": "change of findings", "stall": "unusually long wait"}
            which = "later" if direction > 0 else "earlier"
            self.app.tell(f"No {which} {names.get(kind, kind)}.")
        else:
            self._go(place)

    def action_play(self) -> None:
        """Go on by itself, or stay."""
        if self._playing is not None:
            self._stop()
        elif self._past is not None:
            if self._place == len(self._past.moments) - 1:
                self._go(0)
            self._play()
        self._draw()

    def _play(self) -> None:
        self._playing = self.set_interval(1 / PACES[self._pace], self._play_on)

    def _play_on(self) -> None:
        if self._past is None or self._wanted >= len(self._past.moments) - 1:
            self._stop()
            self._draw()
        elif self._wanted == self._place:  # else it is still being read
            self._go(self._place + 1)

    def _stop(self) -> None:
        if self._playing is not None:
            self._playing.stop()
            self._playing = None

    def action_pace(self, by: int) -> None:
        """Play faster, or slower."""
        self._pace = min(max(0, self._pace + by), len(PACES) - 1)
        if self._playing is not None:
            self._stop()
            self._play()
        self._draw()

    @on(TabStrip.Chosen, "#document-tabs")
    def _tab_chosen(self, message: TabStrip.Chosen) -> None:
        self._tab = message.tab

    def action_tab(self, by: int) -> None:
        """Show the next document, or the one before, and stay with it."""
        super().action_tab(by)
        self._tab = self.documents.active

    def show_tab(self, tab: str) -> None:
        """Show a document, and stay with it."""
        super().show_tab(tab)
        self._tab = self.documents.active

    @on(Scrubber.Sought)
    def _sought(self, message: Scrubber.Sought) -> None:
        self._stop()
        self._go(message.place)

    def action_pick(self) -> None:
        """Choose among all moments."""
        if self._past is None:
            return
        items = [_item(place, each, self.app.utc) for place, each in enumerate(self._past.moments)]
        self.app.push_screen(PickScreen("Go to a step", items, str(self._place)), self._chosen)

    def _chosen(self, place: str | None) -> None:
        if place is not None:
            self._stop()
            self._go(int(place))

    def action_mark(self) -> None:
        """Compare from here, or no longer."""
        self._mark = None if self._mark == self._place else self._place
        self._draw()

    def action_compare(self) -> None:
        """What became of the shown document between the mark and here."""
        past, document = self._past, self._shown_document()
        if past is None:
            return
        if document is None:
            self.app.tell("Open a document first: Compare shows how it changed.")
            return
        from acp_tui.screens.reading import CompareScreen

        self._stop()
        self.app.push_screen(CompareScreen(self._source.ask, document, self._mark, self._place))

    def _shown_document(self) -> str | None:
        active = self.documents.active
        return active.removeprefix("document ") if active.startswith("document ") else None


def _item(place: int, moment: Moment, utc: bool) -> Item:
    at = format.zoned(moment.time, utc)
    return Item(
        ((f"{at:%d %b %H:%M:%S} ", "muted"), (clean_line(moment.what, 200), "")), key=str(place)
    )


T = TypeVar("T")


class PastSource:
    """Reads in worker threads; a past is used from one of them at a time.

    Args:
        key: The collaboration's.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._lock = asyncio.Lock()
        self.past: Past | None = None
        self.place = -1
        """Which moment shows."""

    async def read(self, now: datetime) -> bool:
        """Find out which moments there are by now; returns whether there are any.

        Raises:
            BadRecording: its recording cannot be read.
        """

        def read() -> Past | None:
            there = find(self._key)
            return Past(there, now) if there else None

        past = await asyncio.to_thread(read)
        if past is None or not past.moments:
            return False
        async with self._lock:
            before, self.past = self.past, past
            if before is not None:
                await asyncio.to_thread(before.close)
        return True

    async def close(self) -> None:
        """Let go of the recording."""
        async with self._lock:
            if self.past is not None:
                await asyncio.to_thread(self.past.close)

    async def ask(self, function: Callable[[Past], T]) -> T:
        """Call a function with the past, in a worker thread.

        Raises:
            KeyError: nothing of its past was read.
            Exception: whatever ``function`` raises.
        """
        async with self._lock:
            if self.past is None:
                raise KeyError(self._key)
            return await asyncio.to_thread(function, self.past)

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document at this moment; None where another one shows by now."""
        place = self.place
        try:
            text = await self.ask(lambda past: past.text(place, document.id))
        except KeyError:
            return None
        except (BadRecording, OSError) as error:
            text = unreadable(document, clean_line(f"Could not read the collaboration: {error}"))
        if document.state == "not recorded":
            text = unreadable(document, "not recorded")
        return text if place == self.place else None

    async def event(self, event: Event) -> str:
        """An event as its source held it."""
        place = self.place
        return await self.ask(lambda past: past.raw_event(place, event.id))

    async def loops(self) -> Loops:
        """None: what loops did then stands in the recording, not in their files."""
        return ()
