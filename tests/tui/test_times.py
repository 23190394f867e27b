"""Where the time went, on the screen: drawn, in figures, beside another, and as a chain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.cli.support import Acp
from tests.history.test_metrics import RUN, folder_of
from tests.loops.support import append, make
from tests.tui.screen import seen
from tests.tui.stage import closes, hides, opens, shows, until

HOSTILE = "[red]\u202eevil"


@pytest.fixture(params=[(120, 90), pytest.param((80, 24), marks=pytest.mark.slow)])
def size(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    return request.param


async def test_who_did_what_when_and_all_figures(tmp_path: Path, size: tuple[int, int]) -> None:
    folder = folder_of(tmp_path, RUN)
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        await pilot.press("T")
        await opens(pilot, "TimesScreen")
        await shows(pilot, "╷12:00")
        await shows(pilot, "phases", "reviewer", "▼")
        for _ in range(500 if size[1] == 24 else 0):
            if "cost" in seen(pilot):
                break
            await pilot.press("end")  # again, where more came below since
            await pilot.pause(0.02)
        assert "not recorded" in seen(pilot)
        await pilot.press("home")
        await until(pilot, lambda: "1 h 30 min" in seen(pilot) or size[1] == 24)
        await pilot.press("escape")
        await closes(pilot, "TimesScreen")


@pytest.mark.slow
async def test_it_follows_what_happens(tmp_path: Path) -> None:
    folder = make(tmp_path / HOSTILE)
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        await pilot.press("T")
        await shows(pilot, "0 turns, has the turn now")
        await until(pilot, lambda: "[red]" in seen(pilot) and "\u202e" not in seen(pilot))
        append(folder, "server", "proposal_submitted", 1)
        await shows(pilot, "1 turn")


async def test_another_stands_beside_it_and_a_chain_is_one_story(tmp_path: Path) -> None:
    first = folder_of(tmp_path / "work", RUN)
    second = tmp_path / "work" / "second"
    assert Acp(tmp_path)("continue", str(first), "--to", str(second)).returncode == 0
    app = AcpApp([str(tmp_path / "work")], settings=Settings(utc=True))
    async with app.run_test(size=(140, 100)) as pilot:
        await until(pilot, lambda: len(app.fleet.snapshots) == 2)
        app.open_times(str(second))
        await shows(pilot, "0 turns, has the turn now")
        await pilot.press("c")
        await opens(pilot, "PickScreen")
        await pilot.press("enter")
        await until(pilot, lambda: any(
            line.split()[:3] == ["status", "active", "completed"]
            for line in seen(pilot).splitlines()
        ))  # fmt: skip
        await pilot.press("greater_than_sign")
        await shows(pilot, "one story", "collaboration")
        await pilot.press("backspace")
        await hides(pilot, "one story")
        await pilot.press("c")
        await opens(pilot, "PickScreen")
        await pilot.press("escape")
        await opens(pilot, "TimesScreen")
