"""The pages of a document as rows: as it stands in the file, or its changes line by line.

A page knows for every row which lines of the file it shows (from 1), and for every line
in which row it begins, so that a place in one kind of page is found in another. `TextView` draws it,
with the marks of what changed beside its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from acp_core.model.format import count
from acp_tui import keys
from acp_tui.text import fit
from acp_tui.widgets.lines import CURSOR, Lines, Row, text_of, wrap


class Marked(NamedTuple):
    """A page, and the lines that are marked: ``changed``, and those with some ``removed`` before."""

    page: Page | None = None
    changed: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()


class TextView(Lines):
    """Draws a `Page`; pages are made elsewhere, for a width (`page_width`)."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.SCROLL]

    @dataclass
    class LinkClicked(Message):
        """A link was clicked: nothing happened yet."""

        address: str

    class Resized(Message):
        """The width changed: the page should be made anew."""

    marked: var[Marked] = var(Marked(), init=False, always_update=True)
    """What is shown; another page begins at the line that showed before."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._target: int | None = None
        self._width = 0

    @property
    def page_width(self) -> int:
        """For which width a page should be made; 0 while that is not known."""
        return self.scrollable_content_region.width

    @property
    def page(self) -> Page | None:
        """The page that is shown."""
        return self.marked.page

    def watch_marked(self, before: Marked, marked: Marked) -> None:
        """Show another page."""
        page, line = marked.page, self._top_line(before.page)
        at_top = round(self.scroll_offset.y) == 0
        self.set_extent(page.rows if page else 0)
        if page is not None and not at_top:
            self.scroll_to(y=page.row_of(line), animate=False, force=True)

    @property
    def top_line(self) -> int:
        """The line of the file that stands on top of the view, from 1."""
        return self._top_line(self.page)

    def _top_line(self, page: Page | None) -> int:
        y = round(self.scroll_offset.y)
        while page is not None and y < page.rows:
            first, _ = page.lines(y)
            if first:
                return first
            y += 1
        return 1

    @property
    def current_line(self) -> int:
        """The line that is marked, where it shows; else the one on top of the view."""
        if self.page is not None and self._target is not None:
            y = self.page.row_of(self._target) - round(self.scroll_offset.y)
            if 0 <= y < self.size.height:
                return self._target
        return self.top_line

    def go_to(self, line: int, *, target: bool = True) -> None:
        """Scroll to a line of the file, and mark it."""
        if self.page is None or not self.page.rows:
            return
        self._target = line if target else None
        y = self.page.row_of(line)
        self.scroll_to(y=max(0, y - 2), animate=False, force=True)
        self.refresh()

    def go_to_change(self, by: int) -> bool:
        """Scroll to the next or the previous change; returns whether there is one."""
        lines = sorted(self.marked.changed | self.marked.removed)
        starts = [n for i, n in enumerate(lines) if i == 0 or lines[i - 1] != n - 1]
        if self.page is None or not starts:
            return False
        here = self._target if self._target in starts else self.top_line - (by > 0)
        after = [n for n in starts if n > here] if by > 0 else [n for n in starts if n < here][::-1]
        self.go_to(after[0] if after else starts[0 if by > 0 else -1])
        return True

    def clear_target(self) -> None:
        """Mark no line anymore."""
        self._target = None
        self.refresh()

    def row(self, y: int) -> Row:
        if self.page is None:
            return ()
        sign, style = self.page.mark(y, self.marked.changed, self.marked.removed)
        if sign == " " and self.row_style(y):
            sign, style = CURSOR, "accent"
        return ((f"{sign} ", style), *self.page.row(y))

    def row_style(self, y: int) -> str:
        if self._target is None or self.page is None:
            return ""
        first, last = self.page.lines(y)
        return "target" if first <= self._target <= last else ""

    def on_resize(self) -> None:
        if self.page_width != self._width:
            self._width = self.page_width
            self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        y = event.y + round(self.scroll_offset.y)
        if self.page is None or not 0 <= y < self.page.rows:
            return
        # columns are cells, and links know characters: wide letters take two cells
        cells = event.x - GUTTER
        text = text_of(self.page.row(y))
        address = self.page.link(y, _character(text, cells))
        if address is not None:
            event.prevent_default()
            self.post_message(self.LinkClicked(address))


def _character(text: str, cell: int) -> int:
    from rich.cells import get_character_cell_size

    used = 0
    for index, letter in enumerate(text):
        used += get_character_cell_size(letter)
        if used > cell:
            return index
    return len(text)


WORK = 4_000_000
"""Up to which product of lines two texts are compared closely; beyond, all between is changed."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines ``old`` of the one text became lines ``new`` of the other (places, from 0)."""

    old: range
    new: range


def lines_of(text: str) -> list[str]:
    """The lines of a text as an editor counts them: no empty one after the last newline."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def compare(old: Sequence[str], new: Sequence[str]) -> tuple[Edit, ...]:
    """The edits that make ``new`` of ``old``, in order. For a thread where both are long."""
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if not before and not after:
        return ()
    if len(before) * len(after) > WORK or not before or not after:
        span = Edit(range(start, len(old) - end), range(start, len(new) - end))
        return (span,)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return tuple(
        Edit(range(start + a, start + b), range(start + c, start + d))
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    )


def changed_lines(edits: Sequence[Edit]) -> frozenset[int]:
    """The lines of the new text that are new or different, from 1."""
    return frozenset(index + 1 for edit in edits for index in edit.new)


def removed_before(edits: Sequence[Edit]) -> frozenset[int]:
    """The lines of the new text before which lines were removed, from 1."""
    return frozenset(edit.new.start + 1 for edit in edits if edit.old and not edit.new)


CHANGED, REMOVED = "▌", "▔"

GUTTER = 2
"""Cells on the left of every page: the mark of a change, and a blank."""

AROUND = 3
"""How many unchanged lines are shown around a change."""


class Page(ABC):
    """Rows of one document at one width."""

    rows: int = 0

    @abstractmethod
    def row(self, y: int) -> Row:
        """The row without its gutter."""

    @abstractmethod
    def lines(self, y: int) -> tuple[int, int]:
        """The first and the last line that row ``y`` shows; (0, 0) for none."""

    @abstractmethod
    def row_of(self, line: int) -> int:
        """The row in which a line begins, or the one closest to it."""

    def link(self, y: int, x: int) -> str | None:
        """The address behind the character ``x`` of row ``y``, or None."""
        return None

    def mark(self, y: int, changed: Collection[int], removed: Collection[int]) -> tuple[str, str]:
        """The mark in the gutter of row ``y``, and its style.

        Args:
            y: The row.
            changed: The lines that are new or different.
            removed: The lines before which others were removed.
        """
        first, last = self.lines(y)
        if not first:
            return " ", ""
        if any(line in changed for line in range(first, last + 1)):
            return CHANGED, "accent"
        if any(line in removed for line in range(first, last + 1)):
            return REMOVED, "removed"
        return " ", ""


class RawPage(Page):
    """The lines of a file with their numbers, cut where they are wider than the view."""

    def __init__(self, text: str, width: int) -> None:
        """Cut the lines; slow for a long text: for a thread."""
        self._text = [line.expandtabs(4) for line in text.split("\n")]
        if len(self._text) > 1 and not self._text[-1]:
            self._text.pop()
        self._digits = max(3, len(str(len(self._text))))
        self._line = array("l")
        self._start = array("l")
        self._end = array("l")
        self._first = array("l")
        cells = max(8, width - GUTTER - self._digits - 1)
        for number, text in enumerate(self._text):
            self._first.append(len(self._line))
            for start, end in wrap(text, cells):
                self._line.append(number)
                self._start.append(start)
                self._end.append(end)
        self.rows = len(self._line)

    def row(self, y: int) -> Row:
        number, start = self._line[y], self._start[y]
        number_cell = str(number + 1) if start == 0 else ""
        text = self._text[number][start : self._end[y]]
        return (
            (fit(number_cell, self._digits, right=True) + " ", "number"),
            (text, _raw_style(text)),
        )

    def lines(self, y: int) -> tuple[int, int]:
        number = self._line[y] + 1
        return number, number

    def row_of(self, line: int) -> int:
        return self._first[min(max(1, line), len(self._first)) - 1]


class ChangesPage(Page):
    """The lines that changed, with some around them."""

    def __init__(
        self, old: Sequence[str], new: Sequence[str], edits: Sequence[Edit], width: int
    ) -> None:
        self._rows: list[Row] = []
        self._lines = array("l")
        self._width = width - GUTTER
        self._digits = max(3, len(str(max(len(old), len(new)))))
        drawn_to = 0  # the first line of ``new`` that is not shown yet
        for position, edit in enumerate(edits):
            start = max(drawn_to, edit.new.start - AROUND)
            self._gap(start - drawn_to)
            self._same(new, range(start, edit.new.start))
            for index in edit.old:
                self._add("-", "", old[index], "removed", edit.new.start)
            for index in edit.new:
                self._add("+", str(index + 1), new[index], "added", index)
            after = edits[position + 1].new.start if position + 1 < len(edits) else len(new)
            drawn_to = min(after, edit.new.stop + AROUND)
            self._same(new, range(edit.new.stop, drawn_to))
        self._gap(len(new) - drawn_to)
        self.rows = len(self._rows)

    def row(self, y: int) -> Row:
        return self._rows[y]

    def lines(self, y: int) -> tuple[int, int]:
        return self._lines[y], self._lines[y]

    def row_of(self, line: int) -> int:
        return max(0, min(self.rows - 1, bisect_right(self._lines, line) - 1))

    def mark(self, y: int, changed: Collection[int], removed: Collection[int]) -> tuple[str, str]:
        return " ", ""  # every row says itself what it is

    def _same(self, new: Sequence[str], span: range) -> None:
        for index in span:
            self._add(" ", str(index + 1), new[index], "", index)

    def _add(self, sign: str, number: str, text: str, style: str, index: int) -> None:
        text = text.expandtabs(4)
        for part, (start, end) in enumerate(wrap(text, max(8, self._width - self._digits - 3))):
            number_cell = fit("" if part else number, self._digits, right=True)
            self._rows.append(((f"{number_cell} ", "number"), (f"{sign} {text[start:end]}", style)))
            self._lines.append(index + 1)

    def _gap(self, length: int) -> None:
        if length > 0:
            lines = count(length, "line")
            self._rows.append(((f"{' ' * self._digits} ⋯ {lines} unchanged", "muted"),))
            self._lines.append(self._lines[-1] if self._lines else 1)


def _raw_style(text: str) -> str:
    """Headings stand out in the file as it is, too."""
    return "heading" if text.startswith("#") else ""
