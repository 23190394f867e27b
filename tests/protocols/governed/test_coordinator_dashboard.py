"""An initiative on the dashboard: its board, and a barrier that is crossed with a key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.protocols.governed import states
from tests.protocols.governed.multi import begin
from tests.protocols.governed.test_engine_dashboard import dashboard, opened, until
from tests.tui.screen import screen_lines


@pytest.mark.slow
async def test_a_workstreams_need_shows_on_the_whole_and_is_met_from_there(tmp_path: Path) -> None:
    root = begin(tmp_path / "house", ("auth", "web"))
    app = dashboard(tmp_path, root)

    def shows(text: str) -> bool:
        return any(text in line for line in screen_lines(app))

    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: shows("! Lamp · auth: no active turn"), "the need")
        await until(
            pilot,
            lambda: shows("Next · 1 more for you") and shows("! Lamp · web: no active turn"),
            "the need of the other",
        )
        await pilot.press("f")
        await until(pilot, lambda: shows("Assign the next turn to pm"), "the form of the first run")
        await until(pilot, lambda: shows("Lamp · auth"), "the rest of it")


@pytest.mark.parametrize("size", [(120, 36), (200, 50)], ids=["120x36", "200x50"])
async def test_the_board_says_whole_who_is_waited_for(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = states.initiative_in(tmp_path / "house", "gate open")
    app = dashboard(tmp_path, root)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)

        def board(row: str) -> bool:
            return any(re.search(row, line) for line in screen_lines(app))

        await until(pilot, lambda: board("═ plan-sync +reached +your approval"), "the gate")
        await until(
            pilot, lambda: board("═ ship-sync +0 of 3 there +auth, gateway, web"), "the rest"
        )
