"""Lists in a frame show their last entry, too, on a small terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult

from acp_core.model.action import Intent, Preview
from acp_tui.actions.forms import preview_content
from acp_tui.screens.choosing import PickScreen
from acp_tui.widgets.row_list import Item, RowList
from tests.tui.stage import StageFleet, WidgetApp, dashboard, screen_text, shows, snapshot
from tests.tui.test_drawing import BLOCK


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
async def test_the_last_action_can_be_seen(tmp_path: Path, size: tuple[int, int]) -> None:
    fleet = StageFleet(snapshot("a"))
    fleet.offered = tuple(
        replace(BLOCK, name=f"act_{n}", label=f"Act number {n}", intent=Intent.OTHER)
        for n in range(20)
    )
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=size) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("x")
        await shows(pilot, "Act number 0")
        await pilot.press("end")
        await shows(pilot, "Act number 19")


@pytest.mark.parametrize("size", [(80, 24), (60, 15)])
async def test_the_last_of_many_things_to_choose_from_can_be_seen(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app: Any = dashboard(StageFleet(snapshot("a")), tmp_path)
    items = [Item(((f"thing {n}", ""),), key=str(n)) for n in range(30)]
    async with app.run_test(size=size) as pilot:
        await shows(pilot, "1 live")
        app.push_screen(PickScreen("Choose", items))
        await shows(pilot, "thing 0")
        await pilot.press("pagedown", "pagedown", "pagedown")
        await shows(pilot, "❯ thing 29")


@pytest.mark.slow
async def test_a_list_of_any_size_is_drawn() -> None:
    class Listed(WidgetApp):
        def compose(self) -> ComposeResult:
            yield RowList(id="list", wrapped=True)

    item = Item((("some words that go on and on", ""),), key="1")
    async with Listed().run_test(size=(80, 24)) as pilot:
        rows = pilot.app.query_one(RowList)
        for wide, high in product(range(14), range(5)):
            rows.styles.width, rows.styles.height = wide, high
            for number in (1, 3):
                rows.items = tuple(replace(item, key=f"{n}") for n in range(number))
                await pilot.pause()
                rows.select(0)
                await pilot.pause()
        rows.styles.width, rows.styles.height = 40, 5
        await pilot.pause()
        assert "❯ some words that go on and on" in screen_text(pilot.app)


def test_a_sentence_that_stands_above_is_not_repeated() -> None:
    preview = Preview("Drops the last line.", warnings=("It is kept nowhere.",))
    assert preview_content(preview).plain.startswith("Drops the last line.\n")
    assert preview_content(preview, "Drops the last line.").plain == "! It is kept nowhere.\n"
