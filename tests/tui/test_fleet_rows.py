"""A fleet of rows of an earlier run: whatever is looked at, the interface's thread reads nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.fleet.cached_snapshot import CachedSnapshot
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.fleet import FleetScreen
from tests.support import finished, rows
from tests.tui.stage import opens, shows, until

CONCLUSION = "Page through orders by"


@pytest.mark.slow
async def test_nothing_of_a_fleet_of_rows_is_read_by_the_thread_that_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened, sorted, filtered, searched, opened again, replayed."""
    rows.settle(monkeypatch)
    work = rows.many(finished.folder(tmp_path / "pattern"), tmp_path / "work")
    Fleet([work], rows=True).read()
    read: list[rows.Reading] = []
    rows.readings(monkeypatch, read.append)
    app = AcpApp([str(work)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: len(app.fleet.snapshots) == rows.SIZE)
        fleet = app.screen
        assert isinstance(fleet, FleetScreen)
        await until(pilot, fleet.in_hand)
        known = app.fleet.snapshots  # the first ones are read before there are many
        *more, other, one = [key for key in known if isinstance(known[key], CachedSnapshot)]
        assert more
        for key in (*"IIIIIKKKKDDHH", "down", "pagedown", "end", "home"):
            await pilot.press(key)
        assert isinstance(known[one], CachedSnapshot)
        await pilot.press("slash", *Path(one).name)
        await until(pilot, lambda: [each.key for each in fleet.table.entries] == [one])

        await pilot.press("tab" if fleet.focused is None else "escape")
        fleet.table.choose(one)
        await pilot.press("enter")
        screen = await opens(pilot, "CollaborationScreen")
        await shows(pilot, CONCLUSION)
        await until(pilot, lambda: screen.panes.active == "documents")
        assert not isinstance(screen.snapshot, CachedSnapshot)
        for tab in screen.documents.all_tabs:
            screen.show_tab(tab.id)
            await pilot.pause()
        await pilot.press(*"1234lhz", "x", "escape", "escape", "escape")
        await until(pilot, lambda: app.screen is fleet)

        await pilot.press("slash", *"orders", "enter")
        await until(pilot, lambda: fleet.search.hits is not None and fleet.search.hits.results.done)
        await pilot.press("escape")
        fleet.table.choose(other)
        await pilot.press("R")
        await opens(pilot, "ReplayScreen")
        await shows(pilot, " of ", "step")
        await pilot.press("left", "left", "right", "escape")
        await until(pilot, lambda: app.screen is fleet)
        await pilot.press("T", "escape", "ctrl+p", *Path(more[0]).name, "escape", "escape")
    assert read
    assert threading.main_thread() not in {each.thread for each in read}
