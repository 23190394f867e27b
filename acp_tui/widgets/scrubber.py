"""Where in the past one is: a bar that says REPLAY, and below it all steps over the whole width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from acp_core.history.moments import DOCUMENT, EVENT, FINDINGS, Moment
from acp_tui.text import Part, join, line, width

_SIGNS = {
    EVENT: ("▪", "$text-primary"),
    DOCUMENT: ("▫", "$text-muted"),
    FINDINGS: ("!", "$text-warning"),
}
_RANK = {FINDINGS: 3, EVENT: 2, DOCUMENT: 1}
_BEHIND, _AHEAD = ("━", "$text-accent"), ("─", "$text-muted")
TITLE = " REPLAY "


class Position(NamedTuple):
    """Where one is: the ``place`` among all ``moments``, and what is said of it.

    ``words`` tell the step, ``aside`` how it is replayed; ``mark`` is the place that was marked,
    if any.
    """

    moments: Sequence[Moment] = ()
    place: int = 0
    words: str = ""
    aside: str = ""
    mark: int | None = None


class Scrubber(Widget):
    """Two lines; a click on the lower one goes there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"scrubber--bar"}
    DEFAULT_CSS = """
    Scrubber {
        height: 2;
        background: $surface;
        & > .scrubber--bar { background: $warning; color: auto; text-style: bold; }
        &:ansi { background: ansi_default; }
        &:ansi > .scrubber--bar {
            background: ansi_yellow; color: ansi_black; text-style: bold reverse;
        }
    }
    """

    class Sought(Message):
        """The person wants to go to the moment at this place."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    position: reactive[Position] = reactive(Position())
    """What it shows."""

    def render(self) -> Content:
        """The words, and below them the steps, as wide as the screen."""
        cells = max(10, self.content_size.width)
        return join(self._title(cells), "\n", *self._track(cells))

    def _title(self, cells: int) -> Content:
        """The bar: what was said last gives way first."""
        aside = f"  {self.position.aside} " if self.position.aside else ""
        room = cells - width(TITLE) - width(aside)
        words = line(self.position.words).truncate(max(0, room), ellipsis=True)
        gap = " " * max(0, room - width(words.plain))
        bar = Content(f"{TITLE}{words.plain}{gap}{aside}").truncate(cells)
        return bar.stylize(self.get_visual_style("scrubber--bar"))

    def _track(self, cells: int) -> list[Part]:
        moments, place, mark = self.position.moments, self.position.place, self.position.mark
        if not moments:
            return []
        kinds = [""] * cells
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
                between = _BEHIND if cell < here else _AHEAD
                parts.append(_SIGNS.get(kind, ("·", "$text-muted")) if kind else between)
        return parts

    def _cell(self, place: int, cells: int) -> int:
        count = len(self.position.moments)
        return 0 if count < 2 else place * (cells - 1) // (count - 1)

    def on_click(self, event: events.Click) -> None:
        """Go to where the lower line was clicked."""
        count = len(self.position.moments)
        if event.y != 1 or count < 2:
            return
        cells = max(10, self.content_size.width)
        cell = min(max(0, event.x), cells - 1)
        place = round(cell * (count - 1) / max(1, cells - 1))
        self.post_message(self.Sought(place))
