"""What changed is drawn, and no more than that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Region
from textual.screen import Screen
from textual.widgets import Footer

from acp_core.model import Notice
from acp_tui.widgets.headline import HOLD, Headline
from acp_tui.widgets.pane import Pane
from tests.tui.stage import Clock, StageFleet, dashboard, screen_text, snapshot, until


async def test_another_title_draws_one_line_of_a_pane(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "1 live" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Timeline" in screen_text(app))
        await pilot.pause()
        pane = app.screen.query_one("#pane-next", Pane)
        pane.entitle("Another title")
        assert pane._dirty_regions == {Region(0, 0, pane.outer_size.width, 1)}
        await until(pilot, lambda: "Another title" in screen_text(app))


async def test_a_row_that_is_needed_no_more_goes_away_after_a_while(tmp_path: Path) -> None:
    """A state that comes and goes makes nothing below it jump."""
    calm = snapshot("a")
    told = replace(calm, notices=(Notice("hand", "protocol.json was written by hand"),))
    clock = Clock()
    fleet = StageFleet(calm)
    app: Any = dashboard(fleet, tmp_path, clock=clock)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "1 live" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: "Timeline" in screen_text(app))
        headline = app.screen.query_one(Headline)
        rows = headline.size.height
        fleet.show(told)
        await until(pilot, lambda: headline.size.height == rows + 1)
        fleet.show(calm)
        await until(pilot, lambda: "by hand" not in screen_text(app))
        assert headline.size.height == rows + 1
        clock.forward(HOLD.total_seconds() + 1)
        await until(pilot, lambda: headline.size.height == rows)
        assert timedelta() < HOLD


async def test_the_footer_is_made_anew_only_for_other_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Footer] = []
    compose = Footer.compose
    monkeypatch.setattr(Footer, "compose", lambda self: (made.append(self), compose(self))[1])
    fleet = StageFleet(snapshot("a"))
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "1 live" in screen_text(app))
        await pilot.pause(0.5)
        before = len(made)
        fleet.show(snapshot("a", phase="reviewing"))
        await pilot.pause(0.6)
        assert len(made) == before


async def test_a_screen_s_stylesheet_is_added_to_those_that_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "1 live" in screen_text(app))
        monkeypatch.setattr(app.stylesheet, "reparse", lambda: pytest.fail("parsed anew"))
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Screen) and app.screen.is_modal)
        await until(pilot, lambda: "fleet.open" in screen_text(app))
