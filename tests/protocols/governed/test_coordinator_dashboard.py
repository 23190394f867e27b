"""An initiative on the dashboard: its board, and a barrier that is crossed with a key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acp_tui.screens.collaboration import CollaborationScreen
from tests.protocols.governed import multi, states
from tests.protocols.governed.acting import step
from tests.protocols.governed.multi import NAMES, begin, ledger, state
from tests.protocols.governed.test_engine_dashboard import act, dashboard, opened, until
from tests.tui.screen import screen_lines


@pytest.mark.slow
async def test_a_barrier_is_crossed_from_the_dashboard(tmp_path: Path) -> None:
    root = begin(tmp_path / "house")
    multi.asks(root, "auth")
    multi.asks(root, "gateway")
    app = dashboard(tmp_path, root)

    def shows(text: str) -> bool:
        return any(text in line for line in screen_lines(app))

    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await act(pilot, app, root, "coordinate")
        assert state(root)["barriers"]["plan-sync"]["reached_by"] == ["auth", "gateway"]
        await until(pilot, lambda: shows("web behind"), "noticing who lags")
        screen = app.screen
        assert isinstance(screen, CollaborationScreen)
        screen.documents.activate("panel board")
        await until(pilot, lambda: shows("═ plan-sync"), "the board")
        await until(
            pilot,
            lambda: shows("web") and shows("active, behind") and shows("═ plan-sync  2 of 3 there"),
            "the rest of it",
        )
        multi.asks(root, "web")
        step(root)
        await until(pilot, lambda: shows("its cross-repo gate needs your approval"), "the gate")
        await pilot.press("f")
        await until(pilot, lambda: shows(" 1  Approve"), "the card")
        assert shows("All 3 workstreams ask to leave planning") and shows("OBJ-001")
        await pilot.press("1")
        await until(pilot, lambda: state(root, "web")["phase"] == "implementation", "the crossing")
        assert {state(root, name)["phase"] for name in NAMES} == {"implementation"}
        await until(pilot, lambda: shows("implementation: active"), "the next phase")
    [line] = [line for line in ledger(root) if line["type"] == "barrier_approved"]
    assert line["by"]


@pytest.mark.slow
async def test_a_failed_resync_is_mended_from_the_dashboard(tmp_path: Path) -> None:
    root = begin(tmp_path / "house", ("auth", "web"))
    multi.all_ask(root, ("auth", "web"))
    step(root)
    place = root / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_bytes(good[:50])
    app = dashboard(tmp_path, root)

    def shows(text: str) -> bool:
        return any(text in line for line in screen_lines(app))

    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app)
        await act(pilot, app, root, "approve_barrier")
        await until(pilot, lambda: shows("blocked (resync failed)"), "the block")
        place.write_bytes(good)
        await act(pilot, app, root, "resync")
        await until(pilot, lambda: shows("implementation: active"), "the next phase")
    assert state(root)["status"] == "active"


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
