"""A list of things to choose from, a row each; the selected one shows everything about itself."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from acp_core.model import Target
from acp_tui import keys
from acp_tui.text import end_of, fit, safe_line, width
from acp_tui.widgets.lines import Lines, Piece, Row, cut, wrap

CURSOR = "❯ "
GUTTER = 2
DETAIL_ROWS = 12
"""How many rows one paragraph of the details takes at most."""
UNPLACED = 120
"""Cells that a list is arranged for before it has a place: arranged for none, it would fill the screen."""
NARROWEST = 12
"""Cells that a row has at least, in however narrow a list."""
WRAPPED_UP_TO = 500
"""Lists with more items show each of them in one row."""
ROWS_KEPT = 1024
"""Of how many items is kept how they are wrapped: most are in the next list again."""


NOWHERE = Target()


@dataclass(frozen=True, slots=True)
class Item:
    """A thing in the list.

    ``pieces`` always show; ``details`` (each a text and a style) only while it is
    selected, and ``full`` above them where the pieces did not fit. ``indent`` is where further
    rows of its text begin; ``below`` are further rows that are made already. A ``heading`` cannot be
    selected; one that is a ``path`` takes one row. ``key`` finds it again in a newer list.
    """

    pieces: Row
    details: tuple[Piece, ...] = ()
    target: Target = NOWHERE
    indent: int = 2
    heading: bool = False
    path: bool = False
    key: str = ""
    full: str = ""
    below: tuple[Row, ...] = ()


class RowList(Lines):
    """Draws items; says which is chosen, and does nothing itself."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LIST, *keys.CHOOSE]

    @dataclass
    class Chosen(Message):
        """The user wants to go where an item points to."""

        list: RowList
        item: Item

        @property
        def control(self) -> RowList:
            return self.list

    class Selected(Message):
        """Another item is selected."""

    items: var[tuple[Item, ...]] = var((), init=False)
    """What there is to choose from; the selected one stays selected where it is still there."""
    empty: var[str] = var("", init=False)
    """What to say while there is nothing."""

    def __init__(self, *, wrapped: bool = False, empty: str = "", id: str | None = None) -> None:
        """Make an empty list.

        Args:
            wrapped: Show all of an item's text, in several rows where it is long.
            empty: What to say while there is nothing.
        """
        super().__init__(id=id)
        self.set_reactive(RowList.empty, empty)
        self.cursor: int | None = None
        self._wrapped = wrapped
        self._starts = array("l")  # the first row of each item without details; empty: one each
        self._details: tuple[Row, ...] = ()
        self._width = 0
        self._unseen = False  # selected while there was no room yet to scroll in

    # --- what is shown ---------------------------------------------------------------------

    def watch_items(self, before: tuple[Item, ...], items: tuple[Item, ...]) -> None:
        """Show other items."""
        if self.cursor is not None:
            selected = before[self.cursor]
            again = (i for i, item in enumerate(items) if _same(item, selected))
            self.cursor = next(again, self._selectable(max(0, min(self.cursor, len(items) - 1))))
        self._arrange()

    def watch_empty(self) -> None:
        """Say something else while there is nothing."""
        if not self.items:
            self._arrange()

    @property
    def selected(self) -> Item | None:
        """The selected item."""
        return None if self.cursor is None else self.items[self.cursor]

    def select(self, index: int | None) -> None:
        """Select an item, and scroll to it; one that is no longer there stays unselected."""
        if index is not None and index >= len(self.items):
            return
        if index != self.cursor:
            self.post_message(self.Selected())
        self.cursor = index
        self._arrange()
        self._unseen = index is not None and not self.scrollable_content_region.height
        if index is not None and not self._unseen:
            first = self._row_of(index)
            self.jump(first + self._height(index) + len(self._details) - 1, context=0)
            # a heading above the first item must show, too
            above = 1 if index and self.items[index - 1].heading else 0
            self.jump(first - above, context=0)

    @property
    def _room(self) -> int:
        """Cells of a row, whether or not a scroll bar leaves any of them."""
        if not self.outer_size.width:
            return UNPLACED
        return max(NARROWEST, self.scrollable_content_region.width)

    def _arrange(self) -> None:
        self._width = self._room
        self._starts = array("l")
        several = self._wrapped or any(item.below for item in self.items)
        if several and len(self.items) <= WRAPPED_UP_TO:
            row = 0
            for item in self.items:
                self._starts.append(row)
                row += len(self._rows_of(item))
            self._starts.append(row)
        chosen = self.selected
        self._details = () if chosen is None else tuple(self._detail_rows(chosen))
        empty = len(wrap(self.empty, self._width - 2)) if self.empty else 0
        self.set_extent(self._row_of(len(self.items)) if self.items else empty)

    def _height(self, index: int) -> int:
        return self._starts[index + 1] - self._starts[index] if self._starts else 1

    def _row_of(self, index: int) -> int:
        """The first row of an item; of all rows together one after the last."""
        row = self._starts[index] if self._starts else index
        return row + (len(self._details) if self.cursor is not None and index > self.cursor else 0)

    def _spot(self, y: int) -> tuple[int, int]:
        """The item that row ``y`` belongs to, and which row of it, from 0."""
        if self.cursor is not None:
            end = self._row_of(self.cursor) + self._height(self.cursor)
            if end <= y < end + len(self._details):
                return self.cursor, self._height(self.cursor) + y - end
            if y >= end + len(self._details):
                y -= len(self._details)
        if not self._starts:
            return y, 0
        index = bisect_right(self._starts, y) - 1
        return index, y - self._starts[index]

    def rows_in(self, cells: int) -> int:
        """How many rows all items take in so many cells while none is selected."""
        if not self._wrapped or len(self.items) > WRAPPED_UP_TO:
            return len(self.items)
        return sum(len(_wrapped(item, cells - GUTTER)) for item in self.items)

    # --- rows ------------------------------------------------------------------------------

    def row(self, y: int) -> Row:
        if not self.items:
            start, end = wrap(self.empty, self._width - 2)[y]
            return (("  " + self.empty[start:end], "muted"),)
        index, part = self._spot(y)
        if index >= len(self.items):
            return ()
        item = self.items[index]
        rows = self._rows_of(item) if self._starts else (self._cut(item),)
        if part >= len(rows):
            return self._details[part - len(rows)]
        selected = index == self.cursor and part == 0
        return ((CURSOR if selected else "  ", "accent"), *rows[part])

    def row_style(self, y: int) -> str:
        if not self.items or self.cursor is None:
            return ""
        index, part = self._spot(y)
        if index != self.cursor or part >= self._height(index):
            return ""
        return "cursor" if self.has_focus else "cursor-blurred"

    def _rows_of(self, item: Item) -> tuple[Row, ...]:
        """All rows of an item, where one may have several."""
        if self._wrapped:
            return _wrapped(item, self._width - GUTTER)
        return (self._cut(item), *item.below)

    def _cut(self, item: Item) -> Row:
        left = self._width - GUTTER
        pieces: list[Piece] = []
        for text, style in item.pieces:
            text = safe_line(text)
            if width(text) > left:
                pieces.append((fit(text, left), style))
                break
            pieces.append((text, style))
            left -= width(text)
        return tuple(pieces)

    def _detail_rows(self, item: Item) -> list[Row]:
        indent = " " * (GUTTER + min(item.indent, self._width // 3))
        cells = max(8, self._width - len(indent))
        rows: list[Row] = []
        details = item.details
        if item.full and not (self._wrapped and self._starts):
            fits = sum(width(text) for text, _ in item.pieces) <= self._width - GUTTER
            details = details if fits else ((item.full, ""), *details)
        for text, style in details:
            taken = 0
            for paragraph in text.split("\n"):
                line = safe_line(paragraph)
                spans = wrap(line, cells)
                for start, end in spans[: DETAIL_ROWS - taken]:
                    rows.append(((indent, ""), (line[start:end], style)))
                taken += len(spans)
                if taken > DETAIL_ROWS:
                    rows.append(((indent + "…", "muted"),))
                    break
        return rows

    # --- keys and mouse --------------------------------------------------------------------

    def _selectable(self, index: int) -> int | None:
        """The first item that can be selected from ``index`` on, else the last one before."""
        for candidate in chain(range(index, len(self.items)), range(index - 1, -1, -1)):
            if not self.items[candidate].heading:
                return candidate
        return None

    def action_cursor(self, by: int) -> None:
        """Select another item."""
        if not self.items:
            return
        step = 1 if by > 0 else -1
        before_all = -1 if by > 0 else len(self.items)
        index = before_all if self.cursor is None else self.cursor
        for _ in range(abs(by)):
            candidate = index + step
            while 0 <= candidate < len(self.items) and self.items[candidate].heading:
                candidate += step
            if not 0 <= candidate < len(self.items):
                break
            index = candidate
        if 0 <= index < len(self.items):
            self.select(index)

    def action_page(self, by: int) -> None:
        """Select the item about a screen further."""
        self.action_cursor(by * max(1, self.size.height - 2))

    def action_first(self) -> None:
        """Select the first item."""
        self.select(self._selectable(0))

    def action_last(self) -> None:
        """Select the last item."""
        self.action_cursor(len(self.items))

    def action_choose(self) -> None:
        """Go where the selected item points to."""
        item = self.selected
        if item is not None:
            self.post_message(self.Chosen(self, item))

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()  # a double click must not select all of the text
        y = event.y + round(self.scroll_offset.y)
        if not self.items or not 0 <= y < self.virtual_size.height:
            return
        index, _ = self._spot(y)
        if index >= len(self.items) or self.items[index].heading:
            return
        again = index == self.cursor
        self.select(index)
        if again or event.chain == 2:
            self.action_choose()

    def on_focus(self) -> None:
        # a click selects by itself; selecting here would move the row away under the mouse
        if self.cursor is None and self.items and not self.mouse_hover:
            self.select(self._selectable(0))
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_resize(self) -> None:
        if self._room != self._width:
            self._arrange()
        if self._unseen:
            self.select(self.cursor)


def _visible_text(item: Item, cells: int) -> Row:
    """An item's text, before it is put into rows of so many cells."""
    if item.path:
        return ((end_of("".join(text for text, _ in item.pieces), cells), item.pieces[0][1]),)
    return item.pieces


def _same(item: Item, before: Item) -> bool:
    if item.heading:
        return False
    return item.key == before.key if before.key else item.pieces == before.pieces


def _wrapped(item: Item, cells: int) -> tuple[Row, ...]:
    """An item's text in rows of at most so many cells, further ones indented."""
    return _wrapped_row(_visible_text(item, cells), min(item.indent, cells // 2), cells)


@lru_cache(ROWS_KEPT)
def _wrapped_row(row: Row, indent: int, cells: int) -> tuple[Row, ...]:
    pieces = [(safe_line(text), style) for text, style in row]
    rows: list[Row] = []
    for start, end in wrap("".join(text for text, _ in pieces), cells, cells - indent):
        before: Row = ((" " * indent, ""),) if rows else ()
        rows.append(before + cut(pieces, start, end))
    return tuple(rows)
