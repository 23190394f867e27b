"""A document as rows of the screen: as it stands in the file, or its changes.

A page knows for every row which lines of the file it shows (from 1), and for every line
in which row it begins, so that a place in one kind of page is found in another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Collection, Sequence

from acp_core.model.format import count
from acp_tui.text import fit
from acp_tui.widgets.line_diff import Edit
from acp_tui.widgets.lines import Row
from acp_tui.widgets.wrap import wrap

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
        for number, line in enumerate(self._text):
            self._first.append(len(self._line))
            for start, end in wrap(line, cells):
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
