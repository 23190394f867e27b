"""The list of the fleet: draws its own lines, so that a thousand collaborations cost nothing.

The entries come in by `FleetTable.entries`; what the person does goes out as messages. The
selection stays with its collaboration, wherever that moves to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry
from acp_core.fleet.views import Section
from acp_core.history.forecast import NOTHING, Forecast
from acp_core.model import format
from acp_core.person.views import View
from acp_tui import keys, text
from acp_tui.widgets import fleet_lines as lines

ROW, DETAIL, HEADING = range(3)
"""What a line is: an entry's first line, its second, or the heading over a group."""


class FleetTable(ScrollView, can_focus=True):
    """Collaborations by line: one, or two where a human should know why."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LIST]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "fleet--cursor",
        "fleet--hover",
        *(f"fleet--{style}" for style in lines.STYLES),
    }
    DEFAULT_CSS = """
    FleetTable {
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
        & > .fleet--name { text-style: bold; }
        & > .fleet--muted { color: $text-muted; }
        & > .fleet--rule { color: $foreground 30%; }
        & > .fleet--bar { color: $primary; }
        & > .fleet--left { color: $foreground 20%; }
        & > .fleet--accent { color: $text-accent; }
        & > .fleet--good { color: $text-success; }
        & > .fleet--warning { color: $text-warning; }
        & > .fleet--error { color: $text-error; }
        & > .fleet--hover { background: $foreground 6%; }
        & > .fleet--cursor { background: $cursor 50%; }
        &:focus > .fleet--cursor { background: $cursor; }
        &:ansi {
            & > .fleet--muted, & > .fleet--rule, & > .fleet--left {
                color: ansi_default; text-style: dim;
            }
            & > .fleet--hover { text-style: underline; background: transparent; }
            & > .fleet--cursor { text-style: underline; background: transparent; }
            &:focus > .fleet--cursor { text-style: reverse; background: transparent; }
        }
        &:nocolor:focus > .fleet--cursor { text-style: reverse; }
    }
    """

    entries: reactive[tuple[FleetEntry, ...]] = reactive((), layout=False, always_update=False)
    """What to show, in order (see `acp_core.fleet.overview.arrange`)."""
    chosen_columns: reactive[tuple[str, ...]] = reactive((), layout=False, init=False)
    """The columns that the person wants; empty for those that fit."""
    hosts: reactive[bool] = reactive(False, layout=False, init=False)
    """Whether there are collaborations that hosts share."""
    forecast: reactive[Forecast] = reactive(Forecast, layout=False)
    """How long things usually take."""
    selected: reactive[str | None] = reactive(None)
    """The key of the selected collaboration."""
    hovered: reactive[str | None] = reactive(None)

    class Selected(Message):
        """Another collaboration is selected (None: there is none)."""

        def __init__(self, table: FleetTable, key: str | None) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> FleetTable:
            """The table that sent it."""
            return self.table

    class Opened(Message):
        """The person wants to see a collaboration."""

        def __init__(self, table: FleetTable, key: str) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> FleetTable:
            """The table that sent it."""
            return self.table

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        open_key: str = "enter",
        remedy_key: str = "f",
        called: Callable[[str, str], str] = lambda key, action: action,
        id: str | None = None,
    ) -> None:
        """Make it.

        Args:
            clock: The time now (aware), for ages.
            open_key: What the key that opens is called, for the hints.
            remedy_key: What the key that does what a need asks for is called.
            called: What a collaboration calls an action.
            id: The widget's id.
        """
        super().__init__(id=id)
        self._clock = clock
        self._keys = open_key, remedy_key
        self._called = called
        self._lines: list[tuple[int, int]] = []  # what it is, index of the entry
        self._titles: tuple[str, ...] = ()  # of each entry: the heading that it stands under
        self._numbers = Counter[str]()  # title -> how many collaborations stand under it
        self._tops: dict[str, int] = {}  # key -> its first line
        self._indices: dict[str, int] = {}
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(2048)
        self._ages: dict[int, str] = {}  # line -> the age that is drawn there
        self._columns = lines.columns(80)
        self._chosen = False  # the person selected something; until then it is the first

    # what it is told

    def list_sections(self, sections: Sequence[Section]) -> None:
        """Show these entries under these headings."""
        entries = tuple(entry for section in sections for entry in section.entries)
        titles = tuple(section.title for section in sections for _ in section.entries)
        other, self._titles = titles != self._titles, titles
        if entries == self.entries and other:
            self.watch_entries(entries)
        self.entries = entries

    def watch_hosts(self) -> None:
        """Fit the columns anew."""
        self.on_resize()

    def watch_chosen_columns(self) -> None:
        """Fit the columns anew."""
        self.on_resize()

    def watch_entries(self, entries: tuple[FleetEntry, ...]) -> None:
        """Lay the lines out again; the selection, and where it stands on the screen, stay."""
        key = self.selected
        place = self._indices.get(key, 0) if key else 0
        above = self._tops[key] - self.scroll_offset.y if key in self._tops else 0
        self._lay_out(entries)
        self.virtual_size = Size(0, len(self._lines))
        if not self._chosen or key not in self._indices:
            place = min(place, len(entries) - 1) if self._chosen else 0
            self.selected = entries[place].key if entries else None
        elif self.scroll_offset.y:
            self.scroll_to(y=self._tops[key] - above, animate=False, immediate=True)
        self.show(self.selected)
        self.refresh()

    def _lay_out(self, entries: Sequence[FleetEntry]) -> None:
        self._lines, self._tops, self._indices = [], {}, {}
        titles = self._titles if len(self._titles) == len(entries) else ("",) * len(entries)
        self._numbers = Counter(
            title for title, entry in zip(titles, entries, strict=True) if not entry.depth
        )
        several = len(set(titles)) > 1
        for index, entry in enumerate(entries):
            if several and titles[index] and (index == 0 or titles[index] != titles[index - 1]):
                self._lines.append((HEADING, index))
            self._tops[entry.key] = len(self._lines)
            self._indices[entry.key] = index
            self._lines.append((ROW, index))
            if lines.detail(entry):
                self._lines.append((DETAIL, index))

    def watch_selected(self, old: str | None, new: str | None) -> None:
        """Show the selected entry, and say so."""
        self._refresh_entry(old)
        self._refresh_entry(new)
        self.show(new)
        self.post_message(self.Selected(self, new))

    def watch_forecast(self) -> None:
        """Draw every line with what is known now."""
        self._strips.clear()
        self.refresh()

    def watch_hovered(self, old: str | None, new: str | None) -> None:
        """Redraw what the mouse left and what it came to."""
        self._refresh_entry(old)
        self._refresh_entry(new)

    def tick(self) -> None:
        """Redraw the visible lines whose age reads otherwise than it is drawn."""
        top = self.scroll_offset.y
        for line in range(top, min(top + self.size.height, len(self._lines))):
            if line in self._ages and self._ages[line] != self._age(line):
                self.refresh_line(line)

    @property
    def entry(self) -> FleetEntry | None:
        """The selected entry."""
        index = self._indices.get(self.selected) if self.selected else None
        return None if index is None else self.entries[index]

    def choose(self, key: str) -> None:
        """Select an entry; from now on the selection stays with its collaboration."""
        if key in self._indices:
            self._chosen = True
            self.selected = key

    def show(self, key: str | None) -> None:
        """Scroll as little as needed for the entry to be in view, with its group's heading."""
        if key not in self._tops or not self.size.height:
            return
        top = self._tops[key]
        height = self._height(key)
        above = 1 if top and self._lines[top - 1][0] == HEADING else 0
        self.scroll_to_region(
            Region(0, top - above, 1, height + above), animate=False, immediate=True
        )

    # what the person does

    def action_cursor(self, by: int) -> None:
        """Select another entry, so many further down (or up)."""
        if self.entries:
            here = self._indices.get(self.selected or "", 0)
            self.choose(self.entries[max(0, min(len(self.entries) - 1, here + by))].key)

    def action_page(self, by: int) -> None:
        """Select an entry a page further down (or up)."""
        line = self._tops.get(self.selected or "", 0) + by * max(1, self.size.height - 2)
        line = max(0, min(len(self._lines) - 1, line))
        if self._lines:
            self.choose(self.entries[self._lines[line][1]].key)

    def action_first(self) -> None:
        """Select the first entry."""
        self.action_cursor(-len(self.entries))

    def action_last(self) -> None:
        """Select the last entry."""
        self.action_cursor(len(self.entries))

    def on_click(self, event: events.Click) -> None:
        """Select what was clicked; open it where it was selected, or by a double click."""
        key = self._key_at(event.y)
        if key is None:
            return
        event.stop()
        if key == self.selected:
            self.post_message(self.Opened(self, key))
        self.choose(key)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark what the mouse is over."""
        self.hovered = self._key_at(event.y)

    def on_leave(self) -> None:
        """The mouse is gone."""
        self.hovered = None

    def _key_at(self, y: int) -> str | None:
        line = y + self.scroll_offset.y
        if not 0 <= line < len(self._lines) or self._lines[line][0] == HEADING:
            return None
        return self.entries[self._lines[line][1]].key

    # drawing

    def notify_style_update(self) -> None:
        """The theme changed: every line is drawn anew."""
        super().notify_style_update()
        self._strips.clear()

    def renamed(self) -> None:
        """Actions are called otherwise than they were."""
        self._strips.clear()
        self.refresh()

    def on_resize(self) -> None:
        """Fit the columns to the width, and keep the selection in view."""
        width = self.outer_size.width - 1  # a scrollbar may come
        self._columns = lines.columns(width, self.chosen_columns, self.hosts)
        self._strips.clear()
        self.refresh()
        self.show(self.selected)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        line = y + self.scroll_offset.y
        if line >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        what, index = self._lines[line]
        entry = self.entries[index]
        age = self._ages[line] = self._age(line)
        cursor, hover = entry.key == self.selected, entry.key == self.hovered
        title = self._titles[index] if what == HEADING else ""
        number = self._numbers[title] if title else 0
        drawn = (entry.serial, what, age, cursor, hover, self.has_focus, title, number)
        strip = self._strips.get(drawn)
        if strip is None:
            under = "" if what == HEADING else "cursor" if cursor else "hover" if hover else ""
            strip = self._draw(self._pieces(what, index, age, cursor), under)
            self._strips[drawn] = strip
        return strip

    def _pieces(self, what: int, index: int, age: str, cursor: bool) -> lines.Pieces:
        entry = self.entries[index]
        detail = lines.detail(entry) if what == DETAIL else None
        if detail:
            open_key, remedy_key = self._keys
            remedy = f"{remedy_key}: {self._called(detail.key, detail.action or '')}"
            return lines.second(detail, self._columns, cursor, open_key, text.safe_line(remedy))
        if what == HEADING:
            title = self._titles[index]
            return lines.heading(title, self._numbers[title], self.outer_size.width - 1)
        return lines.row(entry, age, self._usual(entry), self._columns, cursor)

    def _draw(self, pieces: lines.Pieces, under: str) -> Strip:
        base = self.get_component_rich_style(f"fleet--{under}") if under else self.rich_style
        ground = Style(bgcolor=base.bgcolor, underline=base.underline)
        styles = {"": base}
        for _, name in pieces:
            if name not in styles:
                style = self.get_component_rich_style(f"fleet--{name}")
                # on a reversed ground colours would become patches
                styles[name] = base + Style(bold=style.bold) if base.reverse else style + ground
        strip = text.strip((words, styles[name]) for words, name in pieces)
        return strip.adjust_cell_length(self.size.width, base)

    def _age(self, line: int) -> str:
        what, index = self._lines[line]
        if what != ROW:
            return ""
        return format.age(overview.since(self.entries[index]), self._clock())

    def _usual(self, entry: FleetEntry) -> tuple[str, str]:
        """How long a wait such as the one of an entry usually lasts, and its style.

        A wait that is longer than three of four were is marked.
        """
        turns, now = entry.snapshot.turns, self._clock()
        outlook = self.forecast.outlook(entry.snapshot, now) if self._columns.usual else NOTHING
        usual = outlook.oldest(turns)
        if usual is None:
            return "-", "muted"
        since = min(turn.since for turn in turns if turn.since is not None)
        if (now - since).total_seconds() > usual.high:
            return f"{format.span(usual.median)} !", "warning"
        return format.span(usual.median), "muted"

    def _height(self, key: str) -> int:
        return 2 if lines.detail(self.entries[self._indices[key]]) else 1

    def _refresh_entry(self, key: str | None) -> None:
        if key in self._tops:
            self.refresh_lines(self._tops[key], self._height(key))


class FleetTitles(Widget):
    """The names of the columns over a `FleetTable`; a click on one sorts by it."""

    DEFAULT_CSS = """
    FleetTitles { height: 1; color: $text-muted; &:ansi { color: ansi_default; text-style: dim; } }
    """

    view: reactive[View] = reactive(View, layout=False)
    """How the table is listed."""
    hosts: reactive[bool] = reactive(False, layout=False)
    """Whether there are collaborations that hosts share."""

    class Sorted(Message):
        """The person clicked on the title of a column, to sort by it."""

        def __init__(self, titles: FleetTitles, sort: str) -> None:
            super().__init__()
            self.titles = titles
            self.sort = sort

        @property
        def control(self) -> FleetTitles:
            """The titles that sent it."""
            return self.titles

    @property
    def columns(self) -> lines.Columns:
        """The columns: the table beside a scrollbar is one cell narrower."""
        return lines.columns(self.size.width - 1, self.view.columns, self.hosts)

    def render_line(self, y: int) -> Strip:
        """Draw it."""
        plain, marked = self.rich_style, self.rich_style + Style(bold=True)
        pieces = [
            (words, marked if style == "sorted" else plain)
            for words, style in lines.titles(self.columns, self.view.sort)
        ]
        return text.strip(pieces).adjust_cell_length(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Sort by the column, or no longer."""
        sort = lines.sort_at(self.columns, event.x)
        if sort is not None:
            event.stop()
            self.post_message(self.Sorted(self, sort))
