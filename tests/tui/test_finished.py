"""A finished collaboration opens on what came out, with one key from the fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model import Status
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from tests.support import finished
from tests.tui.stage import screen_text, until


@pytest.mark.parametrize(
    "size", [(120, 36), pytest.param((80, 24), marks=pytest.mark.slow)], ids=["120x36", "80x24"]
)
@pytest.mark.parametrize("kind", finished.KINDS)
async def test_enter_on_the_fleet_shows_what_came_out(
    tmp_path: Path, kind: str, size: tuple[int, int]
) -> None:
    make, tab, words = finished.KINDS[kind]
    made = make(tmp_path)
    app = AcpApp([str(made.parent)], settings=Settings(utc=True))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: str(made) in app.fleet.snapshots)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen) and app.screen.in_hand())
        assert app.fleet.snapshots[str(made)].status is Status.COMPLETED
        if kind == "initiative":
            await until(pilot, lambda: app.screen.in_hand().key == str(made))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
        await until(pilot, lambda: words in screen_text(app))
        screen = app.screen
        assert isinstance(screen, CollaborationScreen)
        await until(pilot, lambda: screen.panes.active == "documents")
        shown = {each.id: each.label for each in screen.documents.all_tabs}
        assert tab in shown[screen.documents.active]
        assert screen.focused is not None
        assert screen.documents in screen.focused.ancestors
