"""A log that grows: follows its end, wraps or not, and finds words."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from acp_tui import keys
from acp_tui.text import width
from acp_tui.widgets.lines import Lines, Row, cut, find, mark, text_of, wrap

KEPT = 10_000
"""How many lines are kept; the oldest go."""


class LogView(Lines):
    """Shows lines as they come; the end stays in view until somebody scrolls up."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.SCROLL]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: list[Row] = []
        self.follow = True
        self.wrapped = True
        self.empty = ""
        self.words = ""
        self.matches: list[int] = []
        """The lines that hold `words`."""
        self.here = -1
        """The line that was gone to, among them."""
        self._starts = array("l", [0])
        self._widest = 0
        self._width = 0

    # --- what is shown ---------------------------------------------------------------------

    def clear(self, empty: str) -> None:
        """Show nothing, and say ``empty`` meanwhile."""
        self.rows, self.matches, self.here, self.empty = [], [], -1, empty
        self._arrange()

    def extend(self, rows: Sequence[Row]) -> None:
        """Show more lines below."""
        if not rows:
            return
        first = len(self.rows)
        self.rows.extend(rows)
        self.matches += self._holding(first)
        if len(self.rows) > KEPT:
            self._drop(len(self.rows) - KEPT * 9 // 10)
        else:
            self._arrange(first)

    def rewrite(self, first: int, rows: Sequence[Row]) -> None:
        """Show other lines from the line ``first`` (0 the first) on."""
        self.rows[first:] = rows
        self.matches = [line for line in self.matches if line < first] + self._holding(first)
        self.here = min(self.here, len(self.rows) - 1)
        self._arrange(first)

    def _drop(self, count: int) -> None:
        """Let the oldest lines go; what is in view stays where it is."""
        gone = self._starts[min(count, len(self._starts) - 1)]
        del self.rows[:count]
        self.matches = [line - count for line in self.matches if line >= count]
        self.here = max(-1, self.here - count)
        top = round(self.scroll_offset.y)
        self._arrange()
        if not self.follow:
            self.scroll_to(y=max(0, top - gone), animate=False, force=True)

    def _arrange(self, first: int = 0) -> None:
        """Work out where each line begins, from the line ``first`` on."""
        self._width = max(12, self.scrollable_content_region.width)
        if first == 0:
            self._starts, self._widest = array("l", [0]), 0
        row = self._starts[first]
        del self._starts[first + 1 :]
        for line in self.rows[first:]:
            if self.wrapped:
                row += len(self._spans(line))
            else:
                row += 1
                self._widest = max(self._widest, width(text_of(line)))
            self._starts.append(row)
        self.set_extent(row if self.rows else 1, 0 if self.wrapped else self._widest)
        if self.follow:
            self.scroll_to(y=row, animate=False, force=True)

    def _spans(self, line: Row) -> list[tuple[int, int]]:
        indent = self._indent(line)
        return wrap(text_of(line), self._width, self._width - indent)

    def _indent(self, line: Row) -> int:
        """Where further rows of a line begin: below its text, where there is room for that."""
        lead = width(text_of(line[:-1]))
        return lead if lead < self._width // 2 else 2

    def row(self, y: int) -> Row:
        if not self.rows:
            return ((self.empty, "muted"),)
        number = bisect_right(self._starts, y) - 1
        if number >= len(self.rows):
            return ()
        line = self.rows[number]
        if self.words:
            style = "found" if number == self.here else "match"
            line = mark(line, find(text_of(line), self.words), style)
        if not self.wrapped:
            return line
        part = y - self._starts[number]
        start, end = self._spans(self.rows[number])[part]
        piece = cut(line, start, end)
        return ((" " * self._indent(self.rows[number]), ""), *piece) if part else piece

    # --- scrolling -------------------------------------------------------------------------

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling up lets go of the end, scrolling to it takes hold again."""
        super().watch_scroll_y(old_value, new_value)
        if self.is_mounted and round(new_value) != round(old_value):
            self.follow = round(new_value) >= self.max_scroll_y

    def set_follow(self, follow: bool) -> None:
        """Stay with the newest line, or not."""
        self.follow = follow
        if follow:
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
            self.follow = True

    def set_wrapped(self, wrapped: bool) -> None:
        """Show long lines in several rows, or let them be scrolled sideways."""
        top = bisect_right(self._starts, round(self.scroll_offset.y)) - 1
        follow, self.wrapped = self.follow, wrapped
        self._arrange()
        if follow:
            self.set_follow(True)
        elif 0 <= top < len(self._starts):
            self.scroll_to(x=0, y=self._starts[top], animate=False, force=True)

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._arrange()
        elif self.follow:
            self.set_follow(True)

    # --- finding ---------------------------------------------------------------------------

    def search(self, words: str) -> None:
        """Mark ``words`` wherever they stand, and go to the last place; "" ends it."""
        self.words, self.here = words, -1
        self.matches = self._holding(0)
        if self.matches:
            self.here = len(self.rows)
            self.step(-1)
        self.refresh()

    def step(self, by: int) -> None:
        """Go to the next, or the previous, line that holds the words, around the ends."""
        if not self.matches:
            return
        if by > 0:
            index = bisect_right(self.matches, self.here) % len(self.matches)
        else:
            index = bisect_left(self.matches, self.here) - 1
        self.here = self.matches[index]
        self.follow = False
        self.jump(self._starts[self.here])
        self.refresh()

    def _holding(self, first: int) -> list[int]:
        if not self.words:
            return []
        numbers = range(first, len(self.rows))
        return [n for n in numbers if find(text_of(self.rows[n]), self.words)]
