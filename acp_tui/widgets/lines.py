"""A view that draws its own lines: nothing is mounted per line, and only what shows is made.

Lists of a hundred thousand rows open at once this way. What is shown comes from
`Lines.row`, as pieces of text with the names of their styles; the strips made of them are
kept by what they say, so that a row that changed can never be drawn from an old one. A long line is
cut at blanks where there are any (`wrap`); the scroll bar is drawn only where it looks otherwise.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Self

from rich.cells import get_character_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.selection import Selection
from textual.strip import Strip

from acp_tui.text import safe_line, width

if TYPE_CHECKING:
    from rich.console import RenderableType
    from textual.geometry import Region

Piece = tuple[str, str]

"""Text, and the names of its styles (see `Lines.STYLES`) separated by blanks."""

Row = tuple[Piece, ...]

"""One line of the screen."""

COPIED = 5_000

"""How many rows a text selection copies at most."""


def text_of(row: Row) -> str:
    """A row's text without its styles."""
    return "".join(text for text, _ in row)


def cut(row: Iterable[Piece], start: int, end: int) -> Row:
    """The characters from ``start`` to ``end`` of ``row``, in their styles."""
    pieces: list[Piece] = []
    at = 0
    for text, names in row:
        a, b = max(start, at), min(end, at + len(text))
        if a < b:
            pieces.append((text[a - at : b - at], names))
        at += len(text)
    return tuple(pieces)


def mark(row: Row, spans: Iterable[tuple[int, int]], style: str) -> Row:
    """``row`` with one more style on some spans of its characters (in order, apart)."""
    pieces: list[Piece] = []
    left = [span for span in spans if span[0] < span[1]]
    at = 0
    for text, names in row:
        end = at + len(text)
        position = at
        while left and left[0][0] < end:
            start, stop = left[0]
            start = max(start, position)
            if start > position:
                pieces.append((text[position - at : start - at], names))
            upto = min(stop, end)
            pieces.append((text[start - at : upto - at], f"{names} {style}".strip()))
            position = upto
            if stop > end:
                break
            left.pop(0)
        if position < end:
            pieces.append((text[position - at :], names))
        at = end
    return tuple(pieces)


def find(text: str, words: str) -> list[tuple[int, int]]:
    """Where ``words`` stand in ``text``, whatever the case; nothing for no words."""
    spans: list[tuple[int, int]] = []
    if not words:
        return spans
    lowered, wanted = text.lower(), words.lower()
    if len(lowered) != len(text):  # a letter whose small form is longer: positions would lie
        lowered, wanted = text, words
    start = lowered.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = lowered.find(wanted, start + len(wanted))
    return spans


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A scrolling view of rows that are made when they show.

    Subclasses say how many rows there are (`set_extent`) and what each shows (`row`).
    """

    ALLOW_SELECT = True

    STYLES: ClassVar[tuple[str, ...]] = (
        "muted", "strong", "em", "strike", "code", "heading", "link", "quote", "success", "warning",
        "error", "primary", "accent", "rule", "number", "added", "removed", "match", "found",
        "cursor", "cursor-blurred", "keyword", "string", "comment", "target",
    )  # fmt: skip
    """The names that a piece's style may hold."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{name}" for name in STYLES}

    DEFAULT_CSS = """
    Lines {
        height: 1fr;
        background: transparent;
        scrollbar-size: 1 1;
        scrollbar-color: $foreground 25%;
        scrollbar-color-hover: $foreground 40%;
        scrollbar-color-active: $accent;
        scrollbar-background: transparent;
        scrollbar-background-hover: transparent;
        scrollbar-background-active: transparent;
        & > .lines--muted { color: $text-muted; }
        & > .lines--strong { text-style: bold; }
        & > .lines--em { text-style: italic; }
        & > .lines--strike { text-style: strike; }
        & > .lines--code { color: $text-secondary; }
        & > .lines--heading { color: $text-primary; text-style: bold; }
        & > .lines--link { color: $text-primary; text-style: underline; }
        & > .lines--quote { color: $text-muted; text-style: italic; }
        & > .lines--success { color: $text-success; }
        & > .lines--warning { color: $text-warning; }
        & > .lines--error { color: $text-error; }
        & > .lines--primary { color: $text-primary; }
        & > .lines--accent { color: $text-accent; }
        & > .lines--rule { color: $text-muted; }
        & > .lines--number { color: $text-muted; }
        & > .lines--added { color: $text-success; }
        & > .lines--removed { color: $text-error; }
        & > .lines--keyword { color: $text-primary; }
        & > .lines--string { color: $text-success; }
        & > .lines--comment { color: $text-muted; text-style: italic; }
        & > .lines--match { text-style: reverse; }
        & > .lines--found { text-style: reverse bold; }
        & > .lines--target { text-style: bold; background: $cursor 70%; }
        & > .lines--cursor { text-style: bold; background: $cursor; }
        & > .lines--cursor-blurred { background: $foreground 8%; }
        &:ansi { scrollbar-color: ansi_bright_black; scrollbar-color-hover: ansi_white; }
        &:ansi > .lines--muted { text-style: dim; color: ansi_default; }
        &:ansi > .lines--rule { text-style: dim; color: ansi_default; }
        &:ansi > .lines--number { text-style: dim; color: ansi_default; }
        &:ansi > .lines--quote { text-style: dim italic; color: ansi_default; }
        &:ansi > .lines--comment { text-style: dim italic; color: ansi_default; }
        &:ansi > .lines--target { text-style: bold; background: transparent; }
        &:ansi > .lines--cursor { text-style: bold; background: transparent; }
        &:ansi > .lines--cursor-blurred { background: transparent; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._strips: LRUCache[tuple[Row, str], Strip] = LRUCache(1024)
        self._fitting = False  # rows are made for a width that a scroll bar changed
        self._placed: LRUCache[tuple[Row, str, int, int, int], Strip] = LRUCache(1024)
        self._styles: dict[str, Style] = {}
        self._on_screen: dict[int, tuple[tuple[Row, str] | None, int]] = {}  # by line of the screen

    @abstractmethod
    def row(self, y: int) -> Row:
        """What row ``y`` (from 0) shows."""

    def row_style(self, y: int) -> str:
        """The name of a style under the whole of row ``y``, or ""."""
        return ""

    def set_extent(self, rows: int, columns: int = 0) -> None:
        """Say how many rows there are, and how wide the widest is (0: never wider than the view)."""
        wide = self.scrollable_content_region.width
        extent = Size(columns, rows)
        if extent != self.virtual_size:
            if self.styles.is_auto_height:
                self.virtual_size = extent
            else:  # setting it would lay out the whole screen; scroll bars do where they must
                self.set_reactive(Lines.virtual_size, extent)
                self._scroll_update(extent)
        if self.scrollable_content_region.width == wide:
            self.redraw()
        elif self._fitting:  # with it there are few rows, without it many: it keeps its place
            self.styles.scrollbar_gutter = "stable"
        else:  # a scroll bar came or went
            self._fitting = True
            try:
                self.on_resize()
            finally:
                self._fitting = False
            if self.styles.scrollbar_gutter == "stable":
                self.on_resize()

    @property
    def vertical_scrollbar(self) -> ScrollColumn:
        """The bar beside the rows, made when it is first asked for."""
        bar = super().vertical_scrollbar
        if not isinstance(bar, ScrollColumn):
            bar.__class__ = ScrollColumn  # a bar of another class cannot be made by public names
        assert isinstance(bar, ScrollColumn)
        return bar

    def on_resize(self) -> None:
        """Fit what shows to the width that there is now, where that depends on it."""
        self.redraw()

    def redraw(self) -> None:
        """Draw those lines again that show something else now."""
        left, top = self.scroll_offset
        _, _, wide, high = self.scrollable_content_region
        changed = [
            Region(0, y, wide, 1)  # not as far as the scroll bar, which knows for itself
            for y in range(high)
            if self._on_screen.get(y) != (self._key(top + y), left)
        ]
        if changed:
            self.refresh(*changed)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        if self.show_horizontal_scrollbar:
            self.horizontal_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.redraw()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if round(old_value) != round(new_value):
            self.redraw()

    def _key(self, y: int) -> tuple[Row, str] | None:
        """What a row is drawn from; None beyond the last."""
        return (self.row(y), self.row_style(y)) if y < self.virtual_size.height else None

    def jump(self, y: int, *, context: int = 2) -> None:
        """Scroll so that row ``y`` shows, with some rows around it; not at all where it does."""
        top, height = round(self.scroll_offset.y), self.scrollable_content_region.height
        context = min(context, max(0, (height - 1) // 2))
        if y - context < top:
            self.scroll_to(y=max(0, y - context), animate=False, force=True)
        elif y + context >= top + height:
            self.scroll_to(y=y + context - height + 1, animate=False, force=True)

    # --- drawing ---------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a region, as they are sent to the terminal.

        Textual keeps lines by where they stand in the widget, and makes those that move up anew. Here the
        same row is the same strip wherever it stands, with all that was worked out of it.
        """
        if not self._is_bare:
            return super().render_lines(crop)
        filters, (_, background) = self.get_line_filters(), self.background_colors
        left, top = self.scroll_offset
        wide, (start, end) = self.scrollable_content_region.width, crop.column_span
        strips = []
        for y in crop.line_range:
            strip = self._line(y, left, top, wide)
            for each in filters:
                strip = strip.apply_filter(each, background)
            # A scroll bar that has just come is not laid out yet: its column is this view's.
            strips.append(strip.crop_extend(start, end, None))
        return strips

    @property
    def _is_bare(self) -> bool:
        """Whether its rows are all that there is to draw: no border, and nothing laid over them."""
        styles = self.styles
        return not (styles.gutter or styles.tint.a) and self.opacity == styles.text_opacity == 1

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        return self._line(y, left, top, self.scrollable_content_region.width)

    def _line(self, y: int, left: int, top: int, wide: int) -> Strip:
        """Line ``y`` of the view, scrolled by ``left`` and ``top``, in ``wide`` cells."""
        row_at = top + y
        key = self._key(row_at)
        self._on_screen[y] = key, left
        if key is None:
            return Strip.blank(wide, self._style(""))
        row, under = key
        selection = self.screen.selections.get(self)
        span = selection.get_span(row_at) if selection is not None else None
        if span is not None:
            del self._on_screen[y]  # the selection may be another one the next time
            return self._place(self._selected(row, under, span), under, left, row_at, wide)
        place = (row, under, left, row_at, wide)
        placed = self._placed.get(place)
        if placed is None:
            strip = self._strips.get(key)
            if strip is None:
                strip = self._strips[key] = self._strip(row, under)
            placed = self._placed[place] = self._place(strip, under, left, row_at, wide)
        return placed

    def _place(self, strip: Strip, under: str, left: int, row_at: int, wide: int) -> Strip:
        """As much of a row as shows, which knows for text selections where it stands."""
        ground = self._style(under)
        return strip.crop_extend(left, left + wide, ground).apply_offsets(left, row_at)

    def _strip(self, row: Row, under: str) -> Strip:
        return Strip(
            [
                Segment(safe_line(text.expandtabs(4)), self._style(names, under))
                for text, names in row
                if text
            ]
        )

    def _selected(self, row: Row, under: str, span: tuple[int, int]) -> Strip:
        start, end = span
        strip = self._strip(row, under)
        text = strip.text
        begin = width(text[:start])
        stop = strip.cell_length if end < 0 else width(text[:end])
        style = self.screen.get_component_rich_style("screen--selection")
        before, middle, after = strip.divide([begin, stop, strip.cell_length])
        return Strip.join([before, middle.apply_style(style), after])

    def _style(self, names: str, under: str = "") -> Style:
        """The style of some names together, on top of the style of a whole row."""
        key = f"{names}|{under}"
        style = self._styles.get(key)
        if style is None:
            style = self.rich_style
            for position, name in enumerate(names.split()):
                style += self.get_component_rich_style(f"lines--{name}", partial=position > 0)
            if under:
                row = self.get_component_rich_style(f"lines--{under}")
                style += Style(bgcolor=row.bgcolor) + Style.combine(
                    [self.get_component_rich_style(f"lines--{under}", partial=True).without_color]
                )
            self._styles[key] = style
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.restyle()
        self._strips.clear()
        self._placed.clear()
        self._styles.clear()

    # --- text selection --------------------------------------------------------------------

    def selection_updated(self, selection: Selection | None) -> None:
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under a selection, of at most `COPIED` rows."""
        last = self.virtual_size.height - 1
        first = 0 if selection.start is None else selection.start.y
        end = last if selection.end is None else min(last, selection.end.y)
        taken: list[str] = []
        for y in range(first, min(end, first + COPIED - 1) + 1):
            text = text_of(self.row(y)).expandtabs(4)
            start, stop = selection.get_span(y) or (0, 0)
            taken.append(text[start:] if stop < 0 else text[start:stop])
        return "\n".join(taken), "\n"


def wrap(text: str, cells: int, rest: int = 0) -> list[tuple[int, int]]:
    """The spans of characters of the pieces of ``text``, each at most ``cells`` wide.

    Blanks at which a line is cut belong to no piece. Linear in the length of the text.

    Args:
        text: One line.
        cells: The width of the first piece; less than 2 counts as 2, a wide letter's width.
        rest: The width of the others, where it is another one.
    """
    limit = max(2, cells)
    after = max(2, rest or cells)
    if len(text) <= limit and width(text) <= limit:
        return [(0, len(text))]
    narrow = text.isascii()
    spans: list[tuple[int, int]] = []
    start = used = 0
    blank = -1  # the last blank of this piece
    index = 0

    def after_blanks(at: int) -> int:
        while at < len(text) and text[at] == " ":
            at += 1
        return at

    while index < len(text):
        letter = text[index]
        size = 1 if narrow else get_character_cell_size(letter)
        if used + size > limit and index > start:
            if letter == " ":
                spans.append((start, index))
                start = after_blanks(index)
            elif blank > start:
                spans.append((start, blank))
                start = blank + 1
            else:
                spans.append((start, index))
                start = index
            index, used, blank, limit = start, 0, -1, after  # at most a piece is looked at again
            continue
        if letter == " ":
            blank = index
        used += size
        index += 1
    if start < len(text) or not spans:
        spans.append((start, len(text)))
    return spans


def wrap_path(path: str, cells: int) -> Iterator[tuple[int, int]]:
    """The spans of characters of the pieces of a path, cut behind slashes where there are any.

    Args:
        path: A path, or any other line.
        cells: How wide a piece may be; less than 2 counts as 2.
    """
    start = 0
    while width(path[start:]) > max(2, cells):
        stop = start + wrap(path[start:].replace(" ", "_"), cells)[0][1]
        slash = path.rfind("/", start, stop)
        stop = slash + 1 if slash > start else stop
        yield start, stop
        start = stop
    yield start, len(path)


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


CURSOR, UNREAD = "❯", "•"
