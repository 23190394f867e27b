"""Where in the past one is: the moment in words, and a bar of all moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment
from acp_tui.text import Part, join

_SIGNS = {
    EVENT: ("▪", "$text-primary"),
    DOCUMENT: ("▫", "$text-muted"),
    FINDINGS: ("!", "$text-warning"),
}
_RANK = {FINDINGS: 3, EVENT: 2, DOCUMENT: 1}


class Position(NamedTuple):
    """Where one is: the ``place`` among all ``moments``, and what is said of it.

    ``mark`` is the place that was marked, if any.
    """

    moments: Sequence[Moment] = ()
    place: int = 0
    words: tuple[Part, ...] = ()
    mark: int | None = None


class Scrubber(Widget):
    """Two lines; a click on the bar goes there."""

    DEFAULT_CSS = """
    Scrubber { height: 2; padding: 0 1; background: $surface; }
    Scrubber:ansi { background: ansi_default; }
    """

    class Sought(Message):
        """The person wants to go to the moment at this place."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    position: reactive[Position] = reactive(Position())
    """What it shows."""

    def render(self) -> Content:
        """The words, and below them the bar, as wide as the screen."""
        cells = max(10, self.content_size.width)
        words = join(*self.position.words).truncate(cells, ellipsis=True)
        return join(words, "\n", *self._bar(cells))

    def _bar(self, cells: int) -> list[Part]:
        moments, place, _, mark = self.position
        if not moments:
            return []
        cells = min(cells, len(moments))
        kinds: list[str] = [""] * cells
        for number, moment in enumerate(moments):
            cell = self._cell(number, cells)
            if _RANK.get(moment.kind, 0) >= _RANK.get(kinds[cell], 0):
                kinds[cell] = moment.kind
        here = self._cell(place, cells)
        marked = self._cell(mark, cells) if mark is not None else -1
        parts: list[Part] = []
        for cell, kind in enumerate(kinds):
            if cell == here:
                parts.append(("◆", "bold $text-accent"))
            elif cell == marked:
                parts.append(("◇", "bold $text-accent"))
            else:
                parts.append(_SIGNS.get(kind, ("·", "$text-muted")))
        return parts

    def _cell(self, place: int, cells: int) -> int:
        count = len(self.position.moments)
        return 0 if count < 2 else place * (cells - 1) // (count - 1)

    def on_click(self, event: events.Click) -> None:
        """Go to where the bar was clicked."""
        count = len(self.position.moments)
        if event.y != 1 or count < 2:
            return
        cells = min(max(10, self.content_size.width), count)
        cell = min(max(0, event.x - 1), cells - 1)
        place = round(cell * (count - 1) / max(1, cells - 1))
        self.post_message(self.Sought(place))
