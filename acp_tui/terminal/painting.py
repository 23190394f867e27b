"""Pictures of what changed, made of no more than that, which reach the terminal soon.

Textual's own way renders every widget that overlaps the smallest rectangle around all that changed,
whole, with all the containers behind it, and cuts each line at every widget's edge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import events
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen, ScreenResultType

if TYPE_CHECKING:
    from rich.console import Console
    from textual.strip import Strip
    from textual.widget import Widget

TURN = 1e-4
"""Seconds for which Python's one lock is let go after a picture: a thread writes it."""


class PaintingApp(App[None]):
    """An app that draws only what can be seen, sends it at once, and opens screens with little ado.

    The private names of Textual that this takes, and what each saves, are listed in
    ``tests/hygiene/test_private_names.py``.
    """

    def post_display_hook(self) -> None:
        """Let the thread write the picture before anything else is done.

        It would get its turn 5 ms later else, or after what this thread does next.
        """
        if not self.is_headless:
            sleep(TURN)

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Add a screen's stylesheet to those that are parsed already.

        Textual parses all of them anew, and styles every widget of every screen again. The
        rules of ours begin with the class of their screen, and so concern no other.
        """
        if screen.CSS or self.css_monitor is not None:
            super()._load_screen_css(screen)
            return
        for path in screen.css_path:
            if not self.stylesheet.has_source(str(path), ""):
                self.stylesheet.read(path)

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """The screens below the top one that one can see through it: none where it is opaque.

        Textual takes the one below for visible always, and draws the top one anew, whole,
        whenever something changes there: tens of milliseconds for each change in a folder.
        """
        stack = self.screen_stack
        if stack and stack[-1].styles.background.a == 1:
            return []
        return super()._background_screens

    def on_resize(self, event: events.Resize) -> None:
        """Tell the screens that are covered too: which parts they show depends on the size."""
        for screen in self.screen_stack[:-1]:
            if screen not in self._background_screens:
                screen.post_message(event)


class PaintingScreen(Screen[ScreenResultType]):
    """A screen that draws by a `PartCompositor`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._compositor = PartCompositor()


class Part(NamedTuple):
    """Cells of a line that a widget shows: from ``start`` to ``end``, in columns of the screen."""

    widget: Widget
    region: Region
    y: int
    start: int
    end: int


class PartCompositor(Compositor):
    """Asks widgets only for those lines of which something shows that is to be drawn again."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """The cells that changed; None where there are none."""
        screen = self.size.region
        changed = [region.intersection(screen) for region in self._dirty_regions]
        parts = list(self._parts(self._regions_to_spans(changed)))
        strips = _strips(parts)
        if strips is None:
            return super().render_partial_update()
        self._dirty_regions.clear()
        drawn = zip(parts, strips, strict=True)
        return Cells([(part.start, part.y, strip) for part, strip in drawn]) if parts else None

    def _parts(self, spans: Iterable[tuple[int, int, int]]) -> Iterator[Part]:
        """What shows in some spans (line, start, end), by the widget that is in front there."""
        layers = self.layers_visible
        for y, start, end in spans:
            open_spans = [(start, end)]
            for widget, (left, _, width, _), region in layers[y]:
                behind = []
                for a, b in open_spans:
                    first, last = max(a, left), min(b, left + width)
                    if first >= last:
                        behind.append((a, b))
                        continue
                    yield Part(widget, region, y, first, last)
                    behind += [(c, d) for c, d in ((a, first), (last, b)) if c < d]
                if not behind:
                    break
                open_spans = behind


def _strips(parts: Sequence[Part]) -> list[Strip] | None:
    """What each part shows; None where a widget gives less than its region has."""
    wanted: dict[Widget, set[int]] = defaultdict(set)
    regions: dict[Widget, Region] = {}
    for part in parts:
        wanted[part.widget].add(part.y)
        regions[part.widget] = part.region
    lines: dict[tuple[Widget, int], Strip] = {}
    for widget, ys in wanted.items():
        region = regions[widget]
        for first, count in _runs(sorted(ys)):
            rendered = widget.render_lines(Region(0, first - region.y, region.width, count))
            lines.update(((widget, first + n), strip) for n, strip in enumerate(rendered))
    found = []
    for widget, region, y, start, end in parts:
        strip = lines.get((widget, y))
        if strip is None or strip.cell_length < end - region.x:
            return None
        found.append(strip.crop(start - region.x, end - region.x))
    return found


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Numbers in order as runs of neighbours: the first of each, and how many they are."""
    begin = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] != number + 1:
            yield numbers[begin], place + 1 - begin
            begin = place + 1


class Cells(ChopsUpdate):
    """Pieces of lines, each with the column and the line where it begins."""

    def __init__(self, pieces: Sequence[tuple[int, int, Strip]]) -> None:
        super().__init__([], [], [])
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """What the terminal is sent."""
        return "".join(
            f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces
        )
