"""The rows of a document's page, with the marks of what changed beside them."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from acp_tui import keys
from acp_tui.widgets.document_pages import GUTTER, Page
from acp_tui.widgets.lines import Lines, Row, text_of
from acp_tui.widgets.timeline_rows import CURSOR


class Marked(NamedTuple):
    """A page, and the lines that are marked: ``changed``, and those with some ``removed`` before."""

    page: Page | None = None
    changed: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()


class TextView(Lines):
    """Draws a `Page`; pages are made elsewhere, for a width (`page_width`)."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.SCROLL]

    class LinkClicked(Message):
        """A link was clicked: nothing happened yet."""

        def __init__(self, address: str) -> None:
            super().__init__()
            self.address = address

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
