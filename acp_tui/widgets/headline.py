"""The top of the collaboration screen: one plain sentence, what needs you, who is waited for."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.geometry import Size
from textual.reactive import var
from textual.widget import Widget

from acp_tui.widgets.headline_rows import MOST, Headlines, Keys, headlines
from acp_tui.widgets.pane_data import PaneData


class Headline(Widget):
    """A few rows, as many as there is something to say; rewritten as the time goes on."""

    DEFAULT_CSS = """
    Headline { height: auto; padding: 0 1; }
    """

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    called: var[Callable[[str], str]] = var(lambda: str, init=False, always_update=True)
    """What an action is called, by its name; set again where that is another name now."""
    most: var[int] = var(MOST, init=False)
    """How many rows there is room for."""

    whole: var[frozenset[str]] = var(frozenset[str](), init=False)
    """The keys of the needs and notices that stand here whole, as drawn last."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys = Keys()
        self._drawn = Headlines((), frozenset())
        self._content = Content("")
        self._width = 0  # cells that it was drawn for

    def watch_data(self) -> None:
        """Draw again where the Snapshot, or the time, changes what is said."""
        self._draw()

    def watch_called(self) -> None:
        """Draw again with what actions are called."""
        self._draw()

    def watch_most(self) -> None:
        """Draw again in as many rows as there is room for."""
        self._draw()

    def on_resize(self) -> None:
        """What fits beside each other in a row depends on the width."""
        if self.content_size.width != self._width:
            self._draw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as are drawn: none of them is longer than the row that it was drawn for."""
        return max(1, len(self._drawn.rows))

    def render(self) -> Content:
        return self._content

    def _draw(self) -> None:
        if self.data is None:
            return
        before, self._width = self._drawn, self.content_size.width
        cells = self._width or self.app.size.width - 2
        self._drawn = headlines(self.data, cells, self.keys, self.called, self.most)
        content = Content("\n").join(self._drawn.rows)
        if not content.is_same(self._content):
            self._content = content
            self.refresh(layout=len(before.rows) != len(self._drawn.rows))  # which costs much more
        self.whole = self._drawn.whole
