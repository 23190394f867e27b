"""The list of the fleet: draws its own lines, so that a thousand collaborations cost nothing.

The entries come in by `FleetTable.entries`; what the person does goes out as messages. The
selection stays with its collaboration, wherever that moves to. A line is made as pieces of text, each
with the name of its style (`row`); `COLUMNS` is the table of its columns, whose widths are made by `columns`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, NamedTuple

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

from acp_core.cli import signs
from acp_core.cli.output import fit_name
from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry, Group, Section, pause
from acp_core.history.forecast import NOTHING, Forecast
from acp_core.model import Severity, Snapshot, SourceState, Status, format
from acp_core.model.format import names_in, need_case, sentence_case
from acp_core.person.views import View
from acp_tui import keys, text

Pieces = list[tuple[str, str]]
"""Texts with the names of their styles ("" is the ordinary one)."""

STYLES = (
    "name", "muted", "rule", "bar", "left", "accent", "good", "warning", "error",
)  # fmt: skip
"""The names of the styles."""

_SEVERITY = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "muted"}

_DETAIL = {
    "need": "",
    "source": "warning",
    "pause": "warning",
    "notice": "warning",
    "doubt": "muted",
}


MARGIN = 5  # cursor, sign, how it was read, unread, blank

GAP = 2

NAME = 14  # cells that chosen columns leave to the name

WIDE = 149  # cells of a line from which on it says what a collaboration is about

_WIDE_NAME = 30  # cells that the name keeps there

_KEPT = 24  # cells of the name that no column takes: a wider terminal never cuts such a name

_WITH_HOSTS = 80  # cells of a line from which on hosts are shown without being asked for


class Line(NamedTuple):
    """An entry, how long it has waited, and how long such a wait usually lasts, with its style."""

    entry: FleetEntry
    age: str
    usual: tuple[str, str]

    @property
    def quiet(self) -> str:
        """The style of a text: what is over is muted."""
        return "muted" if self.entry.archived or self.entry.group.over else ""


class Column(NamedTuple):
    """A column of the fleet, in `COLUMNS` by its title, which is also the name by which it is chosen.

    Attributes:
        draw: what stands in so many cells of a line.
        keeps: the lowest gives way first where there is no room for all that were chosen.
        sizes: from which width of a line on it takes how many cells. What takes no certain number
            shares what the others leave.
        chosen: what it takes where it is chosen and would not be shown.
        sort: the order in which a click on the title puts the fleet.
    """

    draw: Callable[[Line, int], Pieces]
    keeps: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    chosen: int = 0
    sort: str | None = None

    def size(self, width: int) -> int:
        """The cells that it takes in a line of this width."""
        return max((cells for least, cells in self.sizes if least <= max(0, width)), default=0)


def _cell(words: str, cells: int, style: str = "muted") -> Pieces:
    return [(text.fit(words, cells), style)]


def _name(line: Line, cells: int) -> Pieces:
    entry = line.entry
    indent = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    name = fit_name(text.safe_line(entry.name), cells - len(indent))
    return _cell(indent + name, cells, line.quiet or "name")


def _protocol(line: Line, cells: int) -> Pieces:
    snapshot = line.entry.snapshot
    dialect = f"{snapshot.protocol} {snapshot.dialect}".strip()
    return _cell(dialect if text.width(dialect) <= cells else snapshot.protocol, cells)


def _phase(line: Line, cells: int) -> Pieces:
    snapshot = line.entry.snapshot
    again = f" r{snapshot.round}" if (snapshot.round or 1) > 1 else ""
    progress = bar(snapshot.progress, _BARS[cells], line.quiet or "bar")
    label = overview.phase_of(snapshot).replace("_", " ") + again
    return [*progress, *_cell(label, cells - _BARS[cells] - 1, line.quiet)]


_BARS = {20: 4, 27: 8, 29: 10}
"""How much of the cells of a phase its bar takes."""


def _findings(line: Line, cells: int) -> Pieces:
    findings, worst = overview.findings(line.entry.snapshot, cells - 2)
    if worst is None:
        return _cell(findings, cells)
    return _cell(f"{signs.SEVERITY[worst]} {findings}", cells, _SEVERITY[worst])


COLUMNS: Mapping[str, Column] = {
    "collaboration": Column(_name, sort="name"),
    "protocol": Column(_protocol, 8, ((108, 10), (WIDE, 11)), 10, "protocol"),
    "phase": Column(_phase, 10, ((0, 20), (99, 27), (WIDE, 29))),
    "waiting for": Column(
        lambda line, cells: _cell(overview.waiting_for(line.entry.snapshot), cells, line.quiet), 7
    ),
    "host": Column(
        lambda line, cells: _cell(", ".join(line.entry.snapshot.hosts), cells), 5, chosen=10
    ),
    "since": Column(lambda line, cells: _cell(line.age, cells), 9, ((0, 5),), sort="waiting"),
    "usually": Column(lambda line, cells: _cell(line.usual[0], cells, line.usual[1]), 6, ((118, 7),), 7),
    "findings": Column(_findings, 4, ((0, 8), (99, 12), (WIDE, 13))),
    "cost": Column(
        lambda line, cells: _cell(cost.words if (cost := line.entry.snapshot.cost) else "", cells),
        3, chosen=11,
    ),
    "state": Column(lambda line, cells: _cell(_headline(line.entry.snapshot), cells), 2),
    "about": Column(lambda line, cells: _cell(_about(line.entry), cells), 1),
}  # fmt: skip
"""The columns in their order. Those beside the name are chosen by `acp_core.person.views.COLUMNS`."""


class Widths(dict[str, int]):
    """How many cells each column takes, by its title; 0: it is not shown."""

    @property
    def name(self) -> int:
        """The cells of the name."""
        return self["collaboration"]

    @property
    def text(self) -> int:
        """The width of everything from the name on: that of a second line."""
        shown = list(filter(None, self.values()))
        return sum(shown) + GAP * (len(shown) - 1)


def columns(width: int, chosen: Sequence[str] = (), hosts: bool = False) -> Widths:
    """Which columns fit into ``width`` cells, and how wide each is.

    It depends on these alone: what else is written never moves a column.

    Args:
        width: Cells of a line.
        chosen: Which columns are wanted, by their titles; empty for those that fit.
        hosts: Whether there are collaborations that hosts share.
    """
    if not chosen:
        return _fitting(width, hosts and width >= _WITH_HOSTS)
    wanted = set(chosen)
    widths = _widths(width, width, wanted)
    for name in sorted(COLUMNS, key=lambda title: COLUMNS[title].keeps):
        if wanted and widths.name < NAME:
            wanted.discard(name)
            widths = _widths(width, width, wanted)
    return widths


def _fitting(width: int, hosts: bool) -> Widths:
    """The most columns that leave the name its cells."""
    steps = {least for column in COLUMNS.values() for least, _ in column.sizes}
    widths = _widths(0, width, None, hosts)
    for step in sorted(steps):
        if step <= width:
            wider = _widths(step, width, None, hosts)
            if wider.name >= min(_KEPT, widths.name):
                widths = wider
    return widths


def _widths(step: int, width: int, wanted: set[str] | None, hosts: bool = False) -> Widths:
    """The widths in a line of ``width`` where columns are as large as in one of ``step``."""
    fixed = {name: each.size(step) for name, each in COLUMNS.items() if each.sizes or each.chosen}
    waits, states, about = width >= 72, False, width >= WIDE
    if wanted is not None:
        waits, states, about = (name in wanted for name in ("waiting for", "state", "about"))
        for title, size in fixed.items():
            fixed[title] = (size or COLUMNS[title].chosen) if title in wanted else 0
    elif hosts:
        fixed["host"] = COLUMNS["host"].chosen
    taken = sum(size + GAP for size in fixed.values() if size)
    rest = max(0, width - MARGIN - 1 - taken - GAP)
    name, waiting, long = _wide(rest, waits) if states or about else (*_narrow(rest, waits), 0)
    headline = 0 if not states else (long - GAP) // 2 if about else long
    shared = {
        "collaboration": name,
        "waiting for": waiting,
        "state": headline,
        "about": max(0, long - headline - (GAP if headline else 0)) if about else 0,
    }
    return Widths((title, (fixed | shared)[title]) for title in COLUMNS)


def _narrow(rest: int, waits: bool) -> tuple[int, int]:
    """The widths of name and ``waiting for``."""
    waiting = min(40, rest * 2 // 5) if waits else 0
    return (rest - waiting if waiting else rest + GAP), waiting


def _wide(rest: int, waits: bool) -> tuple[int, int, int]:
    """The widths of name, ``waiting for``, and what is left for long texts."""
    name = min(60, max(rest // 3, min(_WIDE_NAME, rest // 2)))
    waiting = min(30, rest // 4) if waits else 0
    return name, waiting, max(0, rest - name - waiting - (GAP if waiting else 0))


class Detail(NamedTuple):
    """The second line of an entry: why somebody should look at it, and the action that helps.

    ``key`` is the collaboration in which it helps: the entry's own, or a part's.
    """

    kind: str
    text: str
    action: str | None = None
    key: str = ""


def detail_line(entry: FleetEntry) -> Detail | None:
    """What stands under an entry: its first need, how it was read, a pause, a notice, or a doubt."""
    snapshot = entry.snapshot
    if entry.archived or (entry.needs and entry.depth):  # a part's need stands under its whole
        return None
    if entry.needs:
        first, more = entry.needs[0], len(entry.needs) - 1
        sentence = need_case(first, snapshot) + (
            f" (and {format.grouped(more)} more)" if more else ""
        )
        return Detail("need", sentence, first.remedy, entry.asker or entry.key)
    if snapshot.source.state is not SourceState.LIVE:
        note = f": {snapshot.source.note}" if snapshot.source.note else ""
        return Detail("source", snapshot.source.state.value.capitalize() + note)
    paused = pause(snapshot)
    if paused is not None:
        return Detail("pause", sentence_case(paused.sentence, names_in(snapshot)))
    if snapshot.notices:
        return Detail("notice", sentence_case(snapshot.notices[0].sentence, names_in(snapshot)))
    if snapshot.doubt and not entry.group.over:
        return Detail("doubt", f"Uncertain: {snapshot.doubt}")
    return None


def title(entry: FleetEntry) -> str:
    """The heading under which an entry stands."""
    return "archived" if entry.archived else entry.group.title


ARCHIVED, TURN, WANTED, UNREAD = "▪", "◆", "●", "•"

LEGEND = (
    (TURN, "waits for you"),
    (WANTED, "needs you"),
    (signs.STATUS[Status.ACTIVE], "live"),
    (signs.STATUS[Status.COMPLETED], "completed"),
    (signs.STATUS[Status.BLOCKED], "blocked"),
    (signs.STATUS[Status.UNKNOWN], "unknown"),
    (signs.SOURCE[SourceState.STALE], "not read lately"),
    (ARCHIVED, "archived"),
    (UNREAD, "new since your last visit"),
)
"""What the signs before a name mean."""


def sign(entry: FleetEntry) -> tuple[str, str]:
    """The sign of an entry and its style (see `LEGEND`)."""
    snapshot = entry.snapshot
    if entry.archived:
        return ARCHIVED, "muted"
    if snapshot.status is Status.BLOCKED:
        return signs.STATUS[Status.BLOCKED], "error" if entry.needs else "muted"
    if entry.group is Group.NEEDS and (entry.needs or not entry.depth):
        human = {p.id for p in snapshot.participants if p.kind == "human"}
        turn = any(turn.participant in human for turn in snapshot.turns)
        return (TURN, "accent") if turn else (WANTED, "error")
    return signs.STATUS[snapshot.status], "good" if snapshot.status is Status.COMPLETED else "muted"


def row(
    entry: FleetEntry, age: str, usual: tuple[str, str], widths: Widths, cursor: bool
) -> Pieces:
    """The first line of an entry.

    Args:
        entry: What it is about.
        age: How long it has waited.
        usual: How long such a wait usually lasts, and the name of its style.
        widths: Of the columns.
        cursor: Whether the entry is selected.
    """
    line = Line(entry, age, usual)
    mark, colour = sign(entry)
    pieces: Pieces = [
        ("▌" if cursor else " ", "accent"),
        (mark, colour),
        (signs.SOURCE[entry.snapshot.source.state] or " ", "warning"),
        (UNREAD if entry.unread else " ", "accent"),
        (" ", ""),
    ]
    for title, cells in widths.items():
        if cells:
            pieces += [*COLUMNS[title].draw(line, cells), (" " * GAP, "")]
    return pieces


def _headline(snapshot: Snapshot) -> str:
    return sentence_case(snapshot.headline, names_in(snapshot))


def _about(entry: FleetEntry) -> str:
    """What came out of it, and what it is about: what no other column says."""
    snapshot = entry.snapshot
    outcome = _headline(snapshot) if entry.group.over else ""
    return " · ".join(filter(None, (outcome.rstrip("."), snapshot.objective)))


def bar(progress: float | None, cells: int, style: str) -> Pieces:
    """How far it is, and a blank. Thin: blocks under each other would run into one."""
    drawn = format.bar(progress, cells)
    full = drawn.count(format.FULL)
    rest = ("─" if progress is not None else format.UNKNOWN) * (cells - full)
    return [("━" * full, style), (rest, "left"), (" ", "")]


def second(detail: Detail, widths: Widths, cursor: bool, open_key: str, remedy: str) -> Pieces:
    """The second line of an entry: why, and the key that helps.

    Args:
        detail: What it says.
        widths: Of the columns.
        cursor: Whether the entry is selected.
        open_key: What the key that opens is called.
        remedy: The key that does what a need asks for, and what that is called.
    """
    hint = ""
    if detail.kind == "need":
        hint = f"→ {remedy if detail.action else f'{open_key}: open'}"
    space = widths.text - 2 - (text.width(hint) + 2 if hint else 0)
    words = text.safe_line(detail.text)
    if text.width(words) > space:
        words = text.fit(words, space)
    return [
        ("▌" if cursor else " ", "accent"),
        (" " * (MARGIN + 1), ""),
        (words, _DETAIL[detail.kind]),
        ("  ", ""),
        (hint, "accent"),
    ]


def heading(title: str, held: int, width: int) -> Pieces:
    """The line over a group of so many collaborations."""
    name = f"{title} {format.grouped(held)} "
    return [("  ", ""), (name, "muted"), ("─" * max(0, width - len(name) - 3), "rule")]


def titles(widths: Widths, sort: str = "") -> Pieces:
    """The names of the columns, each where the column stands; ``sort`` is marked."""
    pieces: Pieces = [(" " * MARGIN, "")]
    for title, width in widths.items():
        if width:
            style = "sorted" if sort == COLUMNS[title].sort else "muted"
            words = f"{title} ↓" if style == "sorted" else title
            pieces.append((text.fit(words, width) + " " * GAP, style))
    return pieces


def sort_at(widths: Widths, x: int) -> str | None:
    """The order that a click on the titles asks for; None where the column has none."""
    left = MARGIN
    for title, width in widths.items():
        if width:
            if left <= x < left + width:
                return COLUMNS[title].sort
            left += width + GAP
    return None


ROW, DETAIL, HEADING = range(3)
"""What a line is: an entry's first line, its second, or the heading over a group."""


class FleetTable(ScrollView, can_focus=True):
    """Collaborations by line: one, or two where a human should know why."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LIST]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "fleet--cursor",
        "fleet--hover",
        *(f"fleet--{style}" for style in STYLES),
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

    @dataclass
    class Selected(Message):
        """Another collaboration is selected (None: there is none)."""

        key: str | None

    @dataclass
    class Opened(Message):
        """The person wants to see a collaboration."""

        key: str

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
        self._columns = columns(80)
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
            if detail_line(entry):
                self._lines.append((DETAIL, index))

    def watch_selected(self, old: str | None, new: str | None) -> None:
        """Show the selected entry, and say so."""
        self._refresh_entry(old)
        self._refresh_entry(new)
        self.show(new)
        self.post_message(self.Selected(new))

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
            self.post_message(self.Opened(key))
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
        self._columns = columns(width, self.chosen_columns, self.hosts)
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

    def _pieces(self, what: int, index: int, age: str, cursor: bool) -> Pieces:
        entry = self.entries[index]
        detail = detail_line(entry) if what == DETAIL else None
        if detail:
            open_key, remedy_key = self._keys
            remedy = f"{remedy_key}: {self._called(detail.key, detail.action or '')}"
            return second(detail, self._columns, cursor, open_key, text.safe_line(remedy))
        if what == HEADING:
            title = self._titles[index]
            return heading(title, self._numbers[title], self.outer_size.width - 1)
        return row(entry, age, self._usual(entry), self._columns, cursor)

    def _draw(self, pieces: Pieces, under: str) -> Strip:
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
        return format.age(overview.standing_since(self.entries[index]), self._clock())

    def _usual(self, entry: FleetEntry) -> tuple[str, str]:
        """How long a wait such as the one of an entry usually lasts, and its style.

        A wait that is longer than three of four were is marked.
        """
        turns, now = entry.snapshot.turns, self._clock()
        outlook = (
            self.forecast.outlook(entry.snapshot, now) if self._columns["usually"] else NOTHING
        )
        usual = outlook.oldest(turns)
        if usual is None:
            return "-", "muted"
        since = min(turn.since for turn in turns if turn.since is not None)
        if (now - since).total_seconds() > usual.high:
            return f"{format.span(usual.median)} !", "warning"
        return format.span(usual.median), "muted"

    def _height(self, key: str) -> int:
        return 2 if detail_line(self.entries[self._indices[key]]) else 1

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

    @dataclass
    class Sorted(Message):
        """The person clicked on the title of a column, to sort by it."""

        sort: str

    @property
    def columns(self) -> Widths:
        """The columns: the table beside a scrollbar is one cell narrower."""
        return columns(self.size.width - 1, self.view.columns, self.hosts)

    def render_line(self, y: int) -> Strip:
        """Draw it."""
        plain, marked = self.rich_style, self.rich_style + Style(bold=True)
        pieces = [
            (words, marked if style == "sorted" else plain)
            for words, style in titles(self.columns, self.view.sort)
        ]
        return text.strip(pieces).adjust_cell_length(self.size.width, self.rich_style)

    def on_click(self, event: events.Click) -> None:
        """Sort by the column, or no longer."""
        sort = sort_at(self.columns, event.x)
        if sort is not None:
            event.stop()
            self.post_message(self.Sorted(sort))
