"""The scroll bar beside a list: drawn again only where it looks otherwise than before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Self

from rich.segment import Segment
from rich.style import Style
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Region

EIGHTHS = 8
"""The steps in which the ends of a bar move within a cell."""


class ScrollColumn(ScrollBar):
    """A vertical bar of one cell.

    Textual's own is drawn, line by line, with every row that a list gets: in a long one nobody sees any
    difference.
    """

    _drawn: tuple[object, ...] | None = None  # what it looked like when it was drawn last
    _held = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again, where it would look otherwise."""
        known = self._drawn is not None and not (layout or recompose)
        if known and (self._held or self._look() == self._drawn):
            return self
        self._drawn = None
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    @contextmanager
    def as_one(self) -> Iterator[None]:
        """What changes inside is one change: rows that come, and scrolling to them, cancel each other."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            self.refresh()

    def restyle(self) -> None:
        """Draw again: its colours, which its list has, are other ones."""
        self._drawn = None
        self.refresh()

    def _look(self) -> tuple[object, ...]:
        """What decides how it looks, but for the colours: between which eighths of a cell the bar is."""
        height, rows, window = self.size.height, ceil(self.window_virtual_size), self.window_size
        under_mouse = self.mouse_over, self.grabbed is not None
        if not (0 < window < rows and height and rows != height):
            return height, under_mouse
        thumb = max(1, window / (rows / height))
        start = int((height - thumb) * self.position / (rows - window) * EIGHTHS)
        return height, under_mouse, start, start + ceil(thumb * EIGHTHS)

    def render(self) -> RenderableType:
        self._drawn = self._look()
        return super().render()

    def render_lines(self, crop: Region) -> list[Strip]:
        """One cell each, which is the same strip wherever it looks the same."""
        height = self.size.height
        if self.opacity != 1 or self.styles.gutter or crop.column_span != (0, 1):
            return super().render_lines(crop)
        bar = self.render()
        assert isinstance(bar, ScrollBarRender)
        style = self.app.console.get_style(bar.style)
        assert style.color is not None and style.bgcolor is not None
        made = bar.render_bar(
            height, bar.virtual_size, bar.window_size, bar.position, back_color=style.bgcolor,
            bar_color=style.color,
        )  # fmt: skip
        base = self.visual_style.rich_style
        filters, (_, background) = self.get_line_filters(), self.background_colors
        strips = []
        for y in crop.line_range:
            strip = _cell(made.segments[y], base)
            for each in filters:
                strip = strip.apply_filter(each, background)
            strips.append(strip)
        return strips


@lru_cache(256)
def _cell(segment: Segment, base: Style) -> Strip:
    return Strip(Segment.apply_style([segment], base), 1)
