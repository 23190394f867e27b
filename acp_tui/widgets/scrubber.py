"""Where in the past one is: the moment in words, and a bar of all moments."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message
from textual.widgets import Static

from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment
from acp_tui.text import Part, join

_SIGNS = {
    EVENT: ("▪", "$text-primary"),
    DOCUMENT: ("▫", "$text-muted"),
    FINDINGS: ("!", "$text-warning"),
}
_RANK = {FINDINGS: 3, EVENT: 2, DOCUMENT: 1}


class Scrubber(Static):
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

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._moments: Sequence[Moment] = ()
        self._place = 0
        self._mark: int | None = None
        self._words: tuple[Part, ...] = ()

    def show(
        self, moments: Sequence[Moment], place: int, words: tuple[Part, ...], mark: int | None
    ) -> None:
        """Show where one is.

        Args:
            moments: All of them.
            place: Of the one that is shown.
            words: What is said of it.
            mark: The place that was marked, if any.
        """
        self._moments, self._place, self._words, self._mark = moments, place, words, mark
        self._draw()

    def on_resize(self) -> None:
        """The bar is as wide as the screen."""
        self._draw()

    def _draw(self) -> None:
        cells = max(10, self.content_size.width or 78)
        self.update(join(*self._words, "\n", *self._bar(cells)))

    def _bar(self, cells: int) -> list[Part]:
        count = len(self._moments)
        if not count:
            return []
        cells = min(cells, count) if count > 1 else 1
        kinds: list[str] = [""] * cells
        for place, moment in enumerate(self._moments):
            cell = self._cell(place, cells)
            if _RANK.get(moment.kind, 0) >= _RANK.get(kinds[cell], 0):
                kinds[cell] = moment.kind
        here = self._cell(self._place, cells)
        marked = self._cell(self._mark, cells) if self._mark is not None else -1
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
        count = len(self._moments)
        return 0 if count < 2 else place * (cells - 1) // (count - 1)

    def on_click(self, event: events.Click) -> None:
        """Go to where the bar was clicked."""
        if event.y != 1 or len(self._moments) < 2:
            return
        cells = min(max(10, self.content_size.width), len(self._moments))
        cell = min(max(0, event.x - 1), cells - 1)
        place = round(cell * (len(self._moments) - 1) / max(1, cells - 1))
        self.post_message(self.Sought(place))
