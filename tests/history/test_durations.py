"""A team's own history, from finished folders and from recordings, up to the screen and the commands."""

from __future__ import annotations

import asyncio
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.history import store
from acp_core.history.durations import Durations
from acp_core.history.forecast import TURN, Forecast
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.person.settings import Settings
from acp_core.protocols.folder.rehearsal import scenario as rehearsal_scenario
from acp_core.protocols.folder.rehearsal.scenario import SCENARIOS, Exhibit, load
from acp_tui.app import AcpApp
from tests.cli.support import Acp
from tests.tui.stage import screen_text, shows, until

NOW = datetime.now(UTC).replace(microsecond=0)
FINISHED = Exhibit("page-cursors", SCENARIOS, ago=190)
LIVE = Exhibit("page-cursors", SCENARIOS, ago=9, steps=2)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with five finished collaborations and one that waits for its first review."""
    for number in range(5):
        rehearsal_scenario.make(
            FINISHED._replace(ago=190 + number), tmp_path / "work" / f"old-{number}", NOW
        )
    rehearsal_scenario.make(LIVE, tmp_path / "work" / "live", NOW)
    return tmp_path / "work"


def test_status_and_show_say_what_is_usual(work: Path, tmp_path: Path) -> None:
    acp = Acp(tmp_path)
    told = json.loads(acp("status", "work", "--json").stdout)
    (live,) = [each for each in told["collaborations"] if each["status"] == "active"]
    turn = live["forecast"]["waiting"][0]
    assert turn["participant"] == live["waiting"][0]["participant"]
    assert turn["usual"]["cases"] >= 5
    assert turn["usual"]["low"] <= turn["usual"]["median"] <= turn["usual"]["high"]
    shown = json.loads(acp("show", "work/live", "--json").stdout)
    assert shown["snapshot"]["forecast"]["waiting"] == live["forecast"]["waiting"], "learned before"
    page = acp("show", "work/live").stdout
    assert "usually" in page and "probably ends" in page


@pytest.mark.slow
def test_with_too_few_finished_ones_nothing_is_said(work: Path, tmp_path: Path) -> None:
    for number in range(1, 5):
        shutil.rmtree(work / f"old-{number}")
    told = json.loads(Acp(tmp_path)("status", "work", "--json").stdout)
    (live,) = [each for each in told["collaborations"] if each["status"] == "active"]
    assert live["forecast"]["waiting"][0]["usual"] is None
    assert live["forecast"]["phase"] is None and live["forecast"]["phase_ends"] is None


@pytest.mark.slow
async def test_the_dashboard_says_it_beside_the_wait(work: Path) -> None:
    app = AcpApp([str(work)], settings=Settings(), clock=lambda: NOW)
    async with app.run_test(size=(140, 36)) as pilot:
        await shows(pilot, "5 done")
        await until(
            pilot, lambda: app.fleet.forecast.usual("folder", TURN, "reviewing") is not None
        )
        table = app.screen.query_one("FleetTable")
        await until(pilot, lambda: table.forecast is app.fleet.forecast)
        (row,) = [
            line for line in screen_text(app).split("\n") if " live " in f"{line} " and "9m" in line
        ]
        usual = app.fleet.forecast.usual("folder", TURN, "reviewing")
        assert usual is not None and f"{usual.median // 60:.0f}m" in row.partition("9m")[2]
        await pilot.press("enter")
        await shows(pilot, "probably ends in")
        assert screen_text(app).count(f"9m (usually {usual.median // 60:.0f} min)") == 2


@pytest.mark.slow
def test_a_recording_counts_also_where_its_folder_is_gone(tmp_path: Path) -> None:
    for number in range(5):
        record_and_remove(tmp_path / f"gone-{number}")
    durations = Durations()
    durations.read_recordings()
    usual = durations.forecast().usual("folder", TURN, "drafting")
    assert usual is not None and usual.cases == 5 and usual.median == pytest.approx(600)
    assert durations.save()
    store.delete_recording(store.recording_path(str(tmp_path / "gone-0")))
    again = Durations()
    assert again.forecast().usual("folder", TURN, "drafting") == usual, "kept"
    again.forget(str(tmp_path / "gone-0"))
    assert Durations().forecast().usual("folder", TURN, "drafting") is None, "four are left"


def learned(folder: Path, recorder: Recorder | None = None) -> Forecast:
    """What is known after a folder was read once."""
    fleet = Fleet([folder], recorder=recorder)
    fleet.read()
    forecast = fleet.learn()
    asyncio.run(fleet.close())
    return forecast


def record_and_remove(folder: Path) -> None:
    """Record how the first participant submits ten minutes after the start; then it is deleted."""
    scenario = load("page-cursors", SCENARIOS)
    times = [NOW - timedelta(minutes=60), NOW - timedelta(minutes=50)]
    rehearsal_scenario.start(scenario, folder, times[0])
    clock = {"now": times[0]}
    recorder = Recorder("record", clock=lambda: clock["now"].timestamp())
    fleet = Fleet([folder], clock=lambda: clock["now"], recorder=recorder)
    fleet.read()
    clock["now"] = times[1]
    for step in scenario.steps[:2]:
        rehearsal_scenario.take(step, scenario, folder, times[1])
    fleet.read()
    asyncio.run(fleet.close())
    shutil.rmtree(folder)


def test_what_was_read_and_recorded_counts_once(work: Path) -> None:
    first = learned(work).usual("folder", TURN, "drafting")
    again = learned(work, Recorder("record")).usual("folder", TURN, "drafting")
    assert store.recording_files() and first == again and first is not None


def test_a_damaged_file_counts_as_none_and_is_replaced(work: Path) -> None:
    for damage in (
        b"",
        b"[]",
        b'{"schema": "acp.durations/1", "collaborations": {"x": 7}}',
        b'{"schema":"acp.durations/1","collaborations":{\n"x":7\n}}',
        b'{"schema":"acp.durations/1","collaborations":{\n"x":["folder","s",1.0,[["turn","drafti',
        b"\xff",
    ):
        path = Durations().path
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(damage)
        assert learned(work).usual("folder", TURN, "drafting") is not None
        assert json.loads(path.read_bytes())["schema"] == "acp.durations/1"
        assert path.stat().st_mode & 0o77 == 0, "one person's"


def test_what_an_earlier_acp_learned_on_one_line_counts(work: Path) -> None:
    """Now each collaboration has a line of its own: all at one go takes tens of megabytes."""
    first = learned(work)
    path = Durations().path
    text = path.read_text()
    content = json.loads(text)
    assert len(text.splitlines()) == len(content["collaborations"]) + 2 > 5
    path.write_text(json.dumps(content, separators=(",", ":")))
    assert Durations().forecast() == first != Forecast()


@pytest.mark.slow
def test_what_is_not_recorded_by_choice_is_not_kept(work: Path) -> None:
    recorder = Recorder("dashboard", Bounds(on=False))
    assert learned(work, recorder).usual("folder", TURN, "drafting") is not None
    assert not Durations().path.exists()
