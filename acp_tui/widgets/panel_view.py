"""What a protocol shows beyond the common words, in one of a few shapes.

Typed words narrow the rows of a panel, some of them in one column only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static

from acp_core.cli.signs import TONE
from acp_core.fleet.search import fold
from acp_core.model import Panel, Row
from acp_core.model.format import age, grouped
from acp_tui import keys
from acp_tui.text import fit, safe_line, width
from acp_tui.widgets.lines import Piece, wrap
from acp_tui.widgets.lines import Row as LineRow
from acp_tui.widgets.pane import Typed
from acp_tui.widgets.row_list import GUTTER, Item, RowList
from acp_tui.widgets.timeline_view import tone_style

WIDEST = 32
"""How wide the text of a column without a name is held to be."""

LEAST = 4
"""How wide the text of a first column is at least, however deep its row stands."""

FIRST = 20
"""How wide a first column is left where others must be cut."""

WORDS = 24
"""Up to which width a column holds words rather than sentences."""

SENTENCE = 8
"""How wide a column of sentences is left at least where that keeps words whole."""

READABLE = 16
"""What must be left of a column, where it has as much, so that it can be read."""

NOTHING = "-"
"""What stands in a cell where there is nothing."""

MEASURED = 300
"""How many rows are looked at to know how wide a column must be."""

FOLDED = 40
"""A table of up to so many rows folds long texts below their heading; a longer one cuts them."""

FOLDS = 5
"""In how many rows a text is folded at most; the details of its row hold all of it."""

GAP, NARROW_GAP = "  ", " "
"""What stands between two columns, and where that lets more of them show."""


class PanelView(RowList):
    """Any panel: its rows point to events, document lines, findings and actions."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.PANEL]

    @dataclass
    class Narrowed(Message):
        """Other rows show: those that hold ``words``, ``shown`` of ``total``."""

        words: str
        matching: int
        total: int

    panel: var[Panel | None] = var(None, init=False)
    """What is shown, with its ages as they were read; another panel begins at its top."""
    now: var[datetime | None] = var(None, init=False)
    """The time as of which ages are shown; None: as they were read."""
    called: var[Callable[[str], str]] = var(lambda: str, init=False, always_update=True)
    """What an action is called, by its name; set again where that is another name now."""

    begin_filter: var[Callable[[], None]] = var(lambda: _no_filter, init=False)
    """Lets the user type which rows to show."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words: dict[str, str] = {}  # by the panel's id: each keeps its own filter
        self._drawn: Panel | None = None  # the panel with its ages, as it shows
        self._fitted = 0  # the width that the columns were made for

    @property
    def words(self) -> str:
        """The words that a row must hold to be shown, "" where all rows are."""
        return self._words.get(self.panel.id, "") if self.panel else ""

    def watch_panel(self, before: Panel | None, panel: Panel | None) -> None:
        """Show another panel, or the same one with other rows."""
        if before is not None and panel is not None and before.id != panel.id:
            self.select(None)
            self.scroll_home(animate=False)
        self._draw()

    def watch_now(self) -> None:
        """The time went on."""
        if self.panel is not None and self._aged() != self._drawn:
            self._draw()

    def watch_called(self) -> None:
        """Show what actions are called."""
        self._draw()

    def narrow(self, words: str) -> None:
        """Show only the rows that hold all these words; all of them for ""."""
        if self.panel is not None and words != self.words:
            self._words[self.panel.id] = words
            self._draw()
            self.refresh_bindings()

    def _aged(self) -> Panel:
        assert self.panel is not None
        return self.panel if self.now is None else aged(self.panel, self.now)

    def _draw(self) -> None:
        if self.panel is None:
            return
        panel = self._drawn = self._aged()
        words, rows = self.words, narrowed(panel, self.words)
        self.empty = panel.empty or "Nothing here yet."
        if words and panel.rows:
            self.empty = "No row contains these words."
        self._fitted = self.scrollable_content_region.width
        columns = self._fitted - GUTTER
        self.items = tuple(items(replace(panel, rows=rows), self.called, columns))
        self.post_message(self.Narrowed(words, len(rows), len(panel.rows)))

    def on_resize(self) -> None:
        """Fit the columns to the width that there is now."""
        super().on_resize()
        if self.scrollable_content_region.width != self._fitted:
            self._draw()

    def action_filter(self) -> None:
        """Type words that a row must hold."""
        self.begin_filter()  # no message: the focus must move before the next key is read

    def action_clear(self) -> None:
        """Show all rows again."""
        self.narrow("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key means something now: ``escape`` goes back where there is no filter."""
        return bool(self.words) if action == "clear" else True


def _no_filter() -> None:
    """A view that nobody gave a filter shows all rows."""


def aged(panel: Panel, now: datetime) -> Panel:
    """The panel with its ages as of ``now``; the same one where it tells of none."""
    if not any(row.ages for row in panel.rows):
        return panel
    return replace(panel, rows=tuple(_aged(row, now) for row in panel.rows))


def _aged(row: Row, now: datetime) -> Row:
    ages = {place: age(at, now) for place, at in row.ages}
    cells = tuple(ages.get(place, text) for place, text in enumerate(row.cells))
    return replace(row, cells=cells)


def items(panel: Panel, called: Callable[[str], str] = str, cells: int = 80) -> list[Item]:
    """The rows of a panel in its shape; an unknown shape is a table.

    Args:
        panel: What is shown.
        called: What an action is called, by its name.
        cells: How many cells a row has; the columns of a table share them.
    """
    if not panel.rows:
        return []
    match panel.shape:
        case "board":
            return _board(panel, called)
        case "thread":
            return [_thread(panel, row, number, called) for number, row in enumerate(panel.rows)]
        case _:
            return _table(panel, called, cells)


def _table(panel: Panel, called: Callable[[str], str], cells: int) -> list[Item]:
    """A heading, and a line per row: also for trees, check lists and comparisons."""
    signed = any(_sign(row) for row in panel.rows)
    needed, gap = _widths(panel.columns, panel.rows, signed=signed), GAP
    widths = _shared(panel.columns, needed, cells, gap, panel.spare)
    closer = _shared(panel.columns, needed, cells, NARROW_GAP, panel.spare)
    if _whole(panel.columns, needed, closer) > _whole(panel.columns, needed, widths):
        widths, gap = closer, NARROW_GAP
    named = zip(panel.columns, widths, strict=False)
    names = [fit(name, room) for name, room in named if room]
    heading = ((gap.join(names).rstrip(), "muted"),)
    lines = [Item(heading, heading=True)] if any(panel.columns) else []
    for number, row in enumerate(panel.rows):
        pieces: list[Piece] = _lead(row, signed=signed)
        folded: list[tuple[int, list[str]]] = []  # in which cell of the row, the rest of a text
        seen = (n for n, text in enumerate(row.cells) if text and (n >= len(widths) or widths[n]))
        last_filled = max(seen, default=0)
        whole: set[int] = set()
        for column, text in enumerate(row.cells[: last_filled + 1]):
            if column < len(widths) and not widths[column]:
                continue
            last = column == last_filled
            lead = width("".join(piece for piece, _ in pieces)) if column == 0 else 0
            room = max(LEAST, widths[column] - lead) if column < len(widths) else WIDEST
            style = tone_style(row.tone) if column == 0 else ""
            begin, fits = sum(width(piece) for piece, _ in pieces), width(text) <= room
            if column and len(panel.rows) <= FOLDED and room >= READABLE and not fits:
                text, *rest = _folds(text, room)
                folded.append((begin, rest))
                fits = not rest or not rest[-1].endswith("…")
            elif last:
                fits = begin + width(text) <= cells
            if fits:
                whole.add(column)
            pieces.append((text if last else fit(text, room) + gap, style))
        details = _details(panel, row, called, whole)
        below = tuple(_below(folded))
        key = _key(row, number)
        lines.append(Item(tuple(pieces), details, row.target, key=key, below=below))
    return lines


def _folds(text: str, room: int) -> list[str]:
    """A text in rows of so many cells; the last one is cut where there would be too many."""
    spans = wrap(line := safe_line(text), room)
    rows = [line[start:end] for start, end in spans[: FOLDS - 1]]
    if len(spans) >= FOLDS:
        rows.append(fit(line[spans[FOLDS - 1][0] :], room).rstrip())
    return rows


def _below(folded: Sequence[tuple[int, Sequence[str]]]) -> Iterator[LineRow]:
    """The further rows of a row, in which the texts of several columns go on."""
    for number in range(max((len(rest) for _, rest in folded), default=0)):
        line = ""
        for begin, rest in folded:
            if number < len(rest):
                line += " " * (begin - width(line)) + rest[number]
        yield ((line, ""),)


def _board(panel: Panel, called: Callable[[str], str]) -> list[Item]:
    """A heading per lane (the first cell), and its rows below, in the order of the lanes."""
    lanes: dict[str, list[tuple[int, Row]]] = {}
    for number, row in enumerate(panel.rows):
        lanes.setdefault(row.cells[0] if row.cells else "", []).append((number, row))
    lines = []
    for lane, rows in lanes.items():
        lines.append(Item(((lane, "strong"), (f"  {grouped(len(rows))}", "muted")), heading=True))
        for number, row in rows:
            pieces = [*_lead(row), (GAP.join(row.cells[1:]) or lane, tone_style(row.tone))]
            lines.append(
                Item(tuple(pieces), _details(panel, row, called), row.target, key=_key(row, number))
            )
    return lines


def _thread(panel: Panel, row: Row, number: int, called: Callable[[str], str]) -> Item:
    """Who said what: the first cell stands out, the last is what was said."""
    who, *rest = row.cells or ("",)
    pieces = [*_lead(row), (who + GAP, "strong"), (GAP.join(rest), tone_style(row.tone))]
    return Item(tuple(pieces), _details(panel, row, called), row.target, key=_key(row, number))


def _lead(row: Row, *, signed: bool = False) -> list[Piece]:
    """What stands before the first cell: indentation, a box, or a sign; room for it where others have one."""
    lead: list[Piece] = [("  " * min(row.depth, 20), "")]
    if row.checked is not None:
        lead.append(("[x] ", "success") if row.checked else ("[ ] ", ""))
    elif _sign(row):
        lead.append((_sign(row), tone_style(row.tone)))
    elif signed:
        lead.append(("  ", ""))
    return lead


def _sign(row: Row) -> str:
    """The sign of a row that has no box; "" where it has none."""
    has_one = row.checked is None and tone_style(row.tone) != "muted"
    return f"{TONE[row.tone]} " if has_one else ""


def _details(
    panel: Panel, row: Row, called: Callable[[str], str], whole: Collection[int] = ()
) -> tuple[Piece, ...]:
    """The cells that do not stand ``whole`` in the row, named, and where the row points to."""
    details: list[Piece] = []
    for number, text in enumerate(row.cells):
        if number in whole:
            continue
        name = panel.columns[number] if number < len(panel.columns) else ""
        if text and (len(row.cells) > 1 or width(text) > WIDEST):
            details.append((f"{name}: {text}" if name else text, "muted"))
    target = row.target
    if target.document:
        line = f":{target.line}" if target.line else ""
        details.append((f"→ {target.document}{line}", "primary"))
    elif target.event:
        details.append((f"→ event {target.event}", "primary"))
    elif target.action:
        details.append((f"enter: {called(target.action)}", "accent"))
    return tuple(details)


def _widths(columns: Sequence[str], rows: Sequence[Row], *, signed: bool = False) -> list[int]:
    """How wide each column must be for what is in it."""
    number = max(len(columns), max((len(row.cells) for row in rows[:MEASURED]), default=0))
    widths = [0] * number
    beside = any(any(row.cells[1:]) for row in rows[:MEASURED])
    for row in rows[:MEASURED]:
        titles = beside and not any(
            row.cells[1:]
        )  # it has its whole line: no column is wider for it
        for column, text in enumerate(row.cells if not titles else ()):
            cells = 0 if text == NOTHING else width(text)
            if column == 0:
                cells = max(LEAST, cells) + sum(
                    width(piece) for piece, _ in _lead(row, signed=signed)
                )
            widths[column] = max(widths[column], cells)
    return widths


def _whole(names: Sequence[str], needed: Sequence[int], widths: Sequence[int]) -> tuple[int, int]:
    """How many columns show with all of their headings, and how many with all that is in them."""
    headed = sum(0 < room >= width(name) for name, room in zip(names, widths, strict=False))
    return headed, sum(0 < room >= need for need, room in zip(needed, widths, strict=True))


def _shared(
    names: Sequence[str], needed: list[int], cells: int, gap: str, spare: int = 0
) -> list[int]:
    """The widths that fit into ``cells`` with the gaps.

    Where there is not room for all, columns in which nothing stands are left out (0), then the
    last ``spare`` ones, where not even `READABLE` cells are left for them; then the widest columns are cut; the first one, by which a row is known, last. Where that leaves too
    little of them, the last columns are left out: a heading that is cut says nothing.
    """
    named = [width(name) for name in names] + [0] * (len(needed) - len(names))
    whole = [max(pair) for pair in zip(needed, named, strict=True)]
    if sum(whole) <= cells - len(gap) * (len(whole) - 1):
        return whole
    filled = [wide if need else 0 for wide, need in zip(whole, needed, strict=True)]
    if sum(filled) <= cells - len(gap) * (sum(map(bool, filled)) - 1):
        return filled
    kept = filled[: len(filled) - spare]
    left = cells - sum(kept) - len(gap) * (sum(map(bool, kept)) - 1)
    if spare and left < spare * (READABLE + len(gap)):
        filled = [*kept, *[0] * spare]
        if left >= 0:
            return filled
    return _cut_to(filled, cells, gap)


def _cut_to(widths: list[int], cells: int, gap: str) -> list[int]:
    """The widths cut, and the last columns left out while those before them could not be read.

    A row's details tell what stands in all of them.
    """
    while True:
        columns = [place for place, wide in enumerate(widths) if wide]
        first = min(widths[0], FIRST)
        left = cells - len(gap) * (len(columns) - 1) - first
        capped = [first, *_capped(widths[1:], left)]
        crowded = any(capped[place] < min(widths[place], READABLE) for place in columns[1:])
        if not crowded or len(columns) <= 3:
            return capped
        long = [place for place in columns[1:] if widths[place] > WORDS]
        spared = long if len(long) == 1 else []  # what a row is about
        widths = list(widths)
        widths[[place for place in columns if place not in spared][-1]] = 0


def _capped(widths: list[int], left: int) -> list[int]:
    """The widths with the widest cut to the same width, so that they take ``left`` together.

    Sentences are cut before words are.
    """
    long = [wide for wide in widths if wide > WORDS]
    spare = left - sum(widths) + sum(long)
    if long and spare >= SENTENCE * len(long):
        most = spare // len(long)
        return [wide if wide <= WORDS else min(wide, most) for wide in widths]
    most = 0
    for place, wide in enumerate(sorted(widths)):
        most = left // (len(widths) - place)
        if wide > most:
            break
        left -= wide
    return [min(wide, max(LEAST, most)) for wide in widths]  # what is left out stays so


def _key(row: Row, number: int) -> str:
    target = row.target
    where = target.event or target.document or target.action
    return f"{where} {target.line} {row.cells[:1]}" if where else f"{number}"


def narrowed(panel: Panel, typed: str) -> tuple[Row, ...]:
    """The rows in which every word stands, in whatever case; of a tree also those above them.

    ``column:word`` looks into the column of that name alone (blanks in its name left out).
    """
    words = [_word(panel, word) for word in fold(typed).split()]
    if not words:
        return panel.rows
    matching: dict[int, Row] = {}  # by place
    above: list[int] = []  # the places of the rows that the present one hangs below
    for place, row in enumerate(panel.rows):
        while above and panel.rows[above[-1]].depth >= row.depth:
            above.pop()
        if all(_holds(row, column, word) for column, word in words):
            matching |= {each: panel.rows[each] for each in (*above, place)}
        above.append(place)
    return tuple(matching[place] for place in sorted(matching))


def _word(panel: Panel, word: str) -> tuple[int | None, str]:
    name, colon, rest = word.partition(":")
    names = [fold(column).replace(" ", "") for column in panel.columns]
    return (names.index(name), rest) if colon and name in names else (None, word)


def _holds(row: Row, column: int | None, word: str) -> bool:
    cells = row.cells if column is None else row.cells[column : column + 1]
    return any(word in fold(cell) for cell in cells)


class Count(NamedTuple):
    """How many of a panel's rows hold ``words``."""

    words: str = ""
    matching: int = 0
    total: int = 0


class PanelFilter(Vertical):
    """The line below a panel in which words are typed; then it says how many rows hold them."""

    DEFAULT_CSS = """
    PanelFilter {
        height: auto;
        & Static { height: 1; padding: 0 1; color: $text-muted; display: none; }
        & Typed {
            height: 1; border: none; padding: 0 1; display: none; background: transparent;
        }
        &.-typing Typed { display: block; }
        &.-narrowed Static { display: block; }
        &.-typing Static { display: none; }
    }
    """

    @dataclass
    class Changed(Message):
        """Other words are typed."""

        words: str

    class Left(Message):
        """The line is left: what it narrowed is wanted."""

    count: var[Count] = var(Count(), init=False)
    """What is said while no words are typed; nothing where no words hold."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._typed = Typed(id="panel-typed", compact=True)
        self._status = Static(id="panel-status", markup=False)

    def compose(self) -> ComposeResult:
        yield self._status
        yield self._typed

    def begin(self, panel: Panel | None, words: str) -> None:
        """Let words be typed.

        Args:
            panel: What is narrowed; None for a list without columns.
            words: Those that hold now.
        """
        columns = panel.columns if panel is not None else ()
        names = [column.replace(" ", "").lower() for column in columns if column]
        example = f"  {safe_line(names[min(1, len(names) - 1)])}:WORD" if names else ""
        self._typed.placeholder = f"words to search for{example}"
        self._typed.value = words
        self.add_class("-typing")
        self._typed.focus()

    def watch_count(self, count: Count) -> None:
        """Say how many rows hold the words."""
        words, matching, total = count
        self.set_class(bool(words), "-narrowed")
        self._status.update(
            Content(f"/{safe_line(words)}  {grouped(matching)} of {grouped(total)} rows")
        )

    def end(self) -> None:
        """No words are typed any more."""
        self.remove_class("-typing")

    @property
    def typing(self) -> bool:
        """Whether words are being typed."""
        return self.has_class("-typing")

    @on(Input.Changed)
    def _changed(self, message: Input.Changed) -> None:
        message.stop()
        if self.typing:
            self.post_message(self.Changed(message.value.strip()))

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.post_message(self.Changed(message.value.strip()))
        self.post_message(self.Left())

    @on(Typed.Cancelled)
    def _cancelled(self, message: Typed.Cancelled) -> None:
        message.stop()
        self.post_message(self.Changed(""))
        self.post_message(self.Left())
