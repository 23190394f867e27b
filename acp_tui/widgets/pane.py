"""A pane: a quiet frame with a title, what the panes of a collaboration show, and where they get more.

A screen sets its ``data``; a pane that is bound to it (``data_bind``) compares by ``is`` the
parts that it shows, and draws anew only where one of them, or what the time makes of it, is
another. A `Source` has what a Snapshot leaves out: texts, events as they stand in the file, loops.

Beside panes stand tabs in one row, with a mark on those that have something new (`TabStrip`), and the
lines in which a filter or a search is typed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, Self

from textual import events
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.reactive import reactive, var
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from acp_core.history.forecast import Forecast, Outlook
from acp_core.model import Document, DocumentText, Event, Matter, Snapshot
from acp_core.model.text import clean_line
from acp_tui import keys
from acp_tui.text import MUTED, fit, join, line, width

if TYPE_CHECKING:
    from acp_core.fleet import Fleet
    from acp_tui.widgets.people import Loops


class Pane(Vertical):
    """A frame; which one has the focus shows by its colour, and by its title's weight."""

    DEFAULT_CSS = """
    Pane {
        border: round $foreground 20%;
        border-title-color: $text-muted;
        padding: 0;
        &:focus-within {
            border: round $accent 70%;
            border-title-color: $text-accent;
            border-title-style: bold;
        }
        &.-empty { border: blank; border-top: round $foreground 20%; border-bottom: none; }
        &.-empty:focus-within { border: blank; border-top: round $accent 70%; border-bottom: none; }
        &:ansi { border: round ansi_bright_black; border-title-color: ansi_default; }
        &:ansi:focus-within { border: round $accent; border-title-color: $accent; }
        &.-empty:ansi { border: blank; border-top: round ansi_bright_black; border-bottom: none; }
        &.-empty:ansi:focus-within { border: blank; border-top: round $accent; border-bottom: none; }
    }
    """

    heading: var[str] = var("", init=False)
    """What stands in the frame."""

    def watch_heading(self, heading: str) -> None:
        """Set the title."""
        self._only_title = True
        self.border_title = line(heading)  # a str would be markup
        self._only_title = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again: for another title the line in which it stands, not both sides of each line."""
        if self._only_title and self.styles.border_top[0]:
            regions = (Region(-1, -1, self.outer_size.width, 1),)  # from where the content begins
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    _only_title = False


class PaneData(NamedTuple):
    """A Snapshot, as of when, and how it is shown.

    ``needs`` are those that nobody acknowledged, ``gone`` says that it was read before it went
    away, ``utc`` that times are shown so, and ``past`` that it is as it was then: nothing of it can be
    acted on or acknowledged. ``current`` is the place of the need in hand among them;
    ``forecast`` knows how long things usually take; ``start`` is what the act is called that starts
    it where acp runs nothing ("" else).
    """

    snapshot: Snapshot
    needs: tuple[Matter, ...]
    now: datetime
    utc: bool = False
    gone: bool = False
    past: bool = False
    current: int = 0
    forecast: Forecast = Forecast()
    start: str = ""

    @property
    def need(self) -> Matter | None:
        """The need in hand: the one that the headline shows and that keys act on."""
        return self.needs[min(self.current, len(self.needs) - 1)] if self.needs else None

    @property
    def outlook(self) -> Outlook:
        """How long what lasts now usually takes."""
        return self.forecast.outlook(self.snapshot, self.now)

    @property
    def minute(self) -> int:
        """Which minute it is: what tells ages in minutes changes with it."""
        return int(self.now.timestamp() // 60)

    def moment(self, begun: Iterable[datetime | None]) -> int:
        """What the ages of things change with: each second while one is younger than a minute.

        Args:
            begun: Since when each of them is.
        """
        young = any(at is not None and (self.now - at).total_seconds() < 61 for at in begun)
        return int(self.now.timestamp()) if young else self.minute


class Source(Protocol):
    """What is slow to get; nothing is raised."""

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document, or why it cannot be read; None where it went away."""

    async def event(self, event: Event) -> str:
        """An event as its source holds it, or else its fields as JSON."""

    async def loops(self) -> Loops:
        """The loops of the participants."""


class FleetSource:
    """The present: asks the fleet, off the interface's thread.

    Args:
        fleet: What holds the collaboration open.
        key: The collaboration's.
    """

    def __init__(self, fleet: Fleet, key: str) -> None:
        self._fleet = fleet
        self._key = key

    async def text(self, document: Document) -> DocumentText | None:
        """The text of a document, or why it cannot be read; None where it went away."""
        try:
            text: DocumentText = await self._fleet.call(self._key, lambda c: c.load(document.id))
        except KeyError:
            return None  # it went away meanwhile: the next Snapshot says so
        except Exception as error:  # somebody else's protocol: said, not raised
            return unreadable(document, clean_line(f"Could not read the document: {error!r}"))
        return text

    async def event(self, event: Event) -> str:
        """An event as its source holds it, or else its fields as JSON."""
        try:
            source: str = await self._fleet.call(self._key, lambda c: c.raw_event(event.id))
        except Exception:  # somebody else's protocol: the fields are there anyway
            source = ""
        return source or json.dumps(event._asdict(), ensure_ascii=False, default=str)

    async def loops(self) -> Loops:
        """The loops of the participants; looking at them can wait for a disk."""

        def read() -> Loops:
            return (*self._fleet.loops(self._key), *self._fleet.loops_of_others(self._key))

        return await asyncio.to_thread(read)


def unreadable(document: Document, note: str) -> DocumentText:
    """What shows in place of a text that cannot be had: ``note``, a line."""
    return DocumentText(document.id, document.version, "", note=note)


GAP = "  "
NEW = "●"
LONGEST = 28


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: ``note`` stands after its name (a number, say), ``new`` marks it."""

    id: str
    label: str
    note: str = ""
    new: bool = False

    @property
    def text(self) -> str:
        """What it shows, without the mark."""
        label = fit(self.label, LONGEST).rstrip() if width(self.label) > LONGEST else self.label
        return f"{label} {self.note}" if self.note else label

    @property
    def cells(self) -> int:
        """How wide it is."""
        return width(self.text) + (2 if self.new else 0)


class TabStrip(Widget):
    """One row of tabs; scrolls so that the active one shows."""

    DEFAULT_CSS = """
    TabStrip { height: 1; padding: 0 1; }
    """

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        strip: TabStrip
        tab: str

        @property
        def control(self) -> TabStrip:
            return self.strip

    tabs: reactive[tuple[Tab, ...]] = reactive(())
    """What there is, from left to right."""
    active: reactive[str] = reactive("")
    """The id of the tab that always shows."""

    def render(self) -> Content:
        space = self.content_size.width
        tabs, more_before, more_after = self._visible(space)
        parts: list[Content] = []
        for tab in tabs:
            active = tab.id == self.active
            style = "bold underline $text-accent" if active else MUTED
            mark = (f" {NEW}", "$text-accent") if tab.new else ""
            parts.append(join((tab.text, style), mark))
        before = join(("‹ ", MUTED)) if more_before else Content("")
        after = join((" ›", MUTED)) if more_after else Content("")
        return Content.assemble(before, Content(GAP).join(parts), after)

    def _visible(self, space: int) -> tuple[list[Tab], bool, bool]:
        """The tabs that fit, the active one among them, and whether there are more on the sides."""
        tabs = self.tabs
        active = next((i for i, tab in enumerate(tabs) if tab.id == self.active), 0)

        def taken(start: int, stop: int) -> int:
            cells = sum(tab.cells for tab in tabs[start:stop]) + len(GAP) * (stop - start - 1)
            return cells + 2 * (start > 0) + 2 * (stop < len(tabs))

        start = 0
        while start < active and taken(start, active + 1) > space:
            start += 1
        stop = active + 1
        while stop < len(tabs) and taken(start, stop + 1) <= space:
            stop += 1
        return list(tabs[start:stop]), start > 0, stop < len(tabs)

    def tab_at(self, x: int) -> str | None:
        """The tab in column ``x``; beyond the ends the next one that does not fit."""
        tabs, more_before, more_after = self._visible(self.content_size.width)
        column = 2 if more_before else 0
        if more_before and x < column:
            return self.tabs[self.tabs.index(tabs[0]) - 1].id
        for tab in tabs:
            if column <= x < column + tab.cells:
                return tab.id
            column += tab.cells + len(GAP)
        if more_after and x >= column - len(GAP):
            return self.tabs[self.tabs.index(tabs[-1]) + 1].id
        return None

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        tab = self.tab_at(offset.x) if offset is not None else None
        if tab is not None:
            event.stop()
            self.post_message(self.Chosen(self, tab))


class FilterInput(Input):
    """Where the words are typed; hidden until they are."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.FILTER]

    def __init__(self) -> None:
        super().__init__(placeholder="name, objective, phase or participant", id="filter")
        self.display = False


NAMES = ("from:", "event:", "is:illegal", "is:new")


class FilterSuggester(Suggester):
    """Suggests the rest of the last word of a filter."""

    def __init__(self, known: Callable[[], tuple[Iterable[str], Iterable[str]]]) -> None:
        """Make it; ``known`` gives the participants and the kinds there are."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """The whole value with its last word ended, or None."""
        before, blank, word = value.rpartition(" ")
        if not word:
            return None
        actors, kinds = self._known()
        words = [*NAMES, *(f"from:{name}" for name in actors), *(f"event:{kind}" for kind in kinds)]
        ended = next((each for each in words if each.startswith(word) and each != word), None)
        return None if ended is None or " " in ended else before + blank + ended


class Typed(Input):
    """The line in which a search or a filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.TYPED]

    class Cancelled(Message):
        """The user does not want it after all."""

    def action_cancel(self) -> None:
        """Leave the line without doing anything."""
        self.post_message(self.Cancelled())
