"""A scroll bar that would come and go for ever, by the very room that it takes."""

from __future__ import annotations

from typing import Any

import pytest
from textual.app import ComposeResult

from acp_core.model import Panel
from acp_core.model import Row as PanelRow
from acp_tui.widgets.lines import Lines
from acp_tui.widgets.panel_view import PanelView
from tests.tui.stage import WidgetApp

WIDE, HIGH = 78, 8
BOARD = Panel(
    "board", "Board", "tree", ("workstream", "standing", "waiting for", "last accepted turn"),
    tuple(
        PanelRow(cells)
        for cells in (
            ("wwwwwwww wwwwwwww wwwww wwwwww wwww wwwww", "www wwwwwww", "www www wwwww", "wwwwwww wwwwwwwww"),
            ("www wwwwwwww wwwwwww wwww wwww www wwwwwww", "wwww wwwwwwwww www wwwwwwwww wwwwwwww wwwww www", "wwwwww",
             "wwwwwwww wwwwwww wwwwwww"),
            ("www wwwww wwwwwwww wwwwwww", "wwwwwwwww wwwwwww www wwwwwwwww wwwwwww", "wwwww", "wwwwwwww wwww wwwww"),
        )
    ),
)  # fmt: skip
"""Its texts fold into more rows in the whole width than beside a scroll bar, where a column is left out."""


class Fickle(Lines):
    """So many rows beside a scroll bar, and so many without."""

    def __init__(self, narrow: int, wide: int) -> None:
        super().__init__()
        self.rows, self._narrow, self._wide = 0, narrow, wide

    def on_mount(self) -> None:
        self.set_extent(HIGH * 5)

    def on_resize(self) -> None:
        whole = self.scrollable_content_region.width >= WIDE
        self.rows = self._wide if whole else self._narrow
        self.set_extent(self.rows)

    def row(self, y: int) -> Any:
        return (("x", ""),)


class One(WidgetApp):
    """An app of one widget."""

    def __init__(self, widget: Lines) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


@pytest.mark.parametrize(("narrow", "wide"), [(3, 50), (50, 3), (3, 3), (50, 50)])
async def test_rows_that_are_few_beside_it_and_many_without_it_come_to_rest(
    narrow: int, wide: int
) -> None:
    widget = Fickle(narrow, wide)
    app = One(widget)
    async with app.run_test(size=(WIDE, HIGH)) as pilot:
        for _ in range(5):
            await pilot.pause()
            widget.on_resize()
        whole = widget.scrollable_content_region.width == WIDE
        assert widget.rows == widget.virtual_size.height == (wide if whole else narrow)
        if (narrow, wide) == (3, 50):
            assert not whole, "the bar keeps its place"


async def test_a_table_that_folds_into_more_rows_in_more_width_is_drawn() -> None:
    widget = PanelView()
    app = One(widget)
    async with app.run_test(size=(WIDE, HIGH)) as pilot:
        widget.panel = BOARD
        await pilot.pause()
        assert app.is_running
        assert widget.virtual_size.height == 6
