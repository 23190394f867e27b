"""The coordinator of many collaborations groups, sorts and narrows the list with one key each."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.fleet.overview import FleetEntry, Group
from acp_core.history.forecast import TURN, Case, Forecast
from acp_core.person import settings
from acp_core.person.attention import Attention
from acp_core.person.settings import SettingsError
from acp_tui.app import AcpApp
from acp_tui.widgets import fleet_table
from tests.tui.stage import (
    StageFleet,
    dashboard,
    finished,
    needy,
    opens,
    screen_text,
    shows,
    snapshot,
    until,
)
from tests.tui.support import NOW


def shown(app: AcpApp) -> list[str]:
    view = app.screen_stack[0].query_one("FleetTable")
    lines = (view.render_line(y).text.strip(" ─▌") for y in range(view.size.height))
    return [line.split("  ")[0].strip() for line in lines if line]


def names(app: AcpApp) -> list[str]:
    return [entry.name for entry in app.screen_stack[0].query_one("FleetTable").entries]


def some() -> StageFleet:
    return StageFleet(
        snapshot("zeta", location="/team/a/zeta", changed=NOW - timedelta(hours=3)),
        snapshot("alpha", location="/team/b/alpha", changed=NOW - timedelta(minutes=2)),
        needy("stuck", location="/team/b/stuck", changed=NOW - timedelta(hours=5)),
        finished("old", location="/team/a/old"),
    )


async def settled(pilot: Pilot[Any]) -> None:
    await pilot.pause()
    await pilot.pause()


async def test_keys_group_and_sort_and_the_header_says_how(tmp_path: Path) -> None:
    app = dashboard(some(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert names(app) == ["stuck", "alpha", "zeta", "old"]
        await pilot.press("K")
        await settled(pilot)
        assert [line for line in shown(app) if line.startswith("/team")] == [
            "/team/a 2",
            "/team/b 2",
        ]
        assert names(app) == ["zeta", "old", "stuck", "alpha"]
        assert "grouped by folder" in screen_text(app).split("\n")[0]
        await pilot.press("I")
        await settled(pilot)
        assert names(app) == ["old", "zeta", "alpha", "stuck"]
        assert "collaboration ↓" in screen_text(app)
        await pilot.press("K", "K", "K", "I", "I", "I", "I")
        await settled(pilot)
        assert names(app) == ["stuck", "alpha", "zeta", "old"], "round to where it began"
        assert "grouped" not in screen_text(app)


async def test_a_click_on_a_title_sorts_by_it_and_another_one_no_longer(tmp_path: Path) -> None:
    app = dashboard(some(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("K", "K", "K")
        await pilot.click("FleetTitles", offset=(fleet_table.MARGIN + 2, 0))
        await settled(pilot)
        assert names(app) == ["alpha", "old", "stuck", "zeta"]
        await pilot.click("FleetTitles", offset=(fleet_table.MARGIN + 2, 0))
        await settled(pilot)
        assert names(app) == ["stuck", "alpha", "zeta", "old"]


async def test_only_what_changed_since_the_person_left_the_dashboard(tmp_path: Path) -> None:
    Attention(tmp_path / "attention.json").left(NOW - timedelta(hours=1))
    fleet = some()
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("D")
        await settled(pilot)
        assert names(app) == ["stuck", "alpha"], "a need of 19 minutes, and a change"
        fleet.show(snapshot("zeta", location="/team/a/zeta", changed=NOW))
        await until(pilot, lambda: names(app) == ["stuck", "alpha", "zeta"])
        await pilot.press("D")
        await settled(pilot)
        assert len(names(app)) == 4
    app = dashboard(some(), tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.press("D")
        await settled(pilot)
        assert "Nothing changed since your last visit" in screen_text(app)
        await pilot.press("D")
        await settled(pilot)
        assert len(names(app)) == 4


@pytest.mark.slow
async def test_a_saved_view_is_there_at_the_start_and_chosen_with_a_key(tmp_path: Path) -> None:
    views = {
        "mine": {"sort": "name", "group": "none", "columns": ["since"]},
        "late": {"filter": "alpha"},
    }
    app = dashboard(some(), tmp_path, settings={"fleet": {"view": "mine", "views": views}})
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert names(app) == ["alpha", "old", "stuck", "zeta"]
        titles = screen_text(app).split("\n")[1].split()
        assert titles == ["collaboration", "↓", "since"]
        await pilot.press("X")
        await opens(pilot, "PickScreen")
        await pilot.press(*"late", "enter")
        await until(pilot, lambda: names(app) == ["alpha"])
        await pilot.press("X", *"default", "enter")
        await until(pilot, lambda: names(app) == ["stuck", "alpha", "zeta", "old"])
        await pilot.press("X", *"protocol show", "enter")
        await until(pilot, lambda: "protocol" in screen_text(app).split("\n")[1])


@pytest.mark.slow
async def test_a_wait_that_is_longer_than_most_is_marked(tmp_path: Path) -> None:
    """The one that is waited for since 19 minutes: usually it takes 10, or else 30."""
    fleet = some()
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 30)) as pilot:
        for minutes, shown_as in ((10, "19m    10m !"), (30, "19m    30m  ")):
            cases = [Case(TURN, "reviewing", minutes * 60.0 + n) for n in range(5)]
            fleet.forecast = Forecast([("folder", cases)])
            await shows(pilot, shown_as)


@pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
@pytest.mark.parametrize(
    "chosen", [("state",), ("about",), ("since",), tuple(fleet_table.COLUMNS)[1:]]
)
def test_chosen_columns_fit_at_any_width(width: int, chosen: tuple[str, ...]) -> None:
    columns = fleet_table.columns(width, chosen)
    assert columns.name >= fleet_table.NAME and columns.text + fleet_table.MARGIN + 1 <= width
    assert not any(fleet_table.columns(width).values()) or columns.name


def test_a_mistake_in_a_saved_view_is_one_line_when_acp_starts(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[fleet.views.mine]\nsort = "age"\n')
    with pytest.raises(SettingsError) as error:
        settings.load(config)
    assert str(error.value) == (
        f"{config}: fleet.views.mine.sort: expected one of attention, name, waiting, last, protocol"
    )


def test_columns_that_come_with_the_width_leave_the_name_its_room() -> None:
    for hosts in (False, True):
        widths = [fleet_table.columns(width, (), hosts).name for width in range(80, 400)]
        steps = list(itertools.pairwise(widths))
        assert all(after >= min(24, before) for before, after in steps), "it cuts no such name"
        assert all(after >= before * 0.7 for before, after in steps), "it takes no half of others"


def test_a_part_has_the_sign_of_a_need_only_where_it_needs_somebody_itself() -> None:
    part, needs = snapshot("auth"), needy("auth").needs
    quiet = FleetEntry(part, depth=1, group=Group.NEEDS)
    assert fleet_table.sign(quiet)[0] == "○"
    assert (
        fleet_table.sign(FleetEntry(part, needs, depth=1, group=Group.NEEDS))[0]
        == fleet_table.WANTED
    )
    assert fleet_table.sign(FleetEntry(part, needs, group=Group.NEEDS))[0] == fleet_table.WANTED
