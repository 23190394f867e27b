"""Until something is read: the newest events of one collaboration, or the names of many."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from tests.protocols.folder.support import make_v1, say
from tests.tui.screen import seen
from tests.tui.stage import Clock, StageFleet, dashboard, is_open, opens, shows, until
from tests.tui.support import HARMFUL, NOW, make_snapshot

SIZES = ((120, 36), (80, 24), (200, 50), (60, 16))


def opened(folder: Path, fleet: Any, state: Path) -> AcpApp:
    return dashboard(fleet, state, paths=[str(folder)], settings={"utc": True})


async def waiting(pilot: Pilot[Any], screen: type) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, screen) and "Reading" in seen(pilot))


@pytest.mark.parametrize("size", SIZES)
async def test_the_newest_events_stand_there_until_it_is_read(
    size: tuple[int, int], tmp_path: Path
) -> None:
    folder = make_v1(tmp_path / "c")
    for number in range(60):
        say(folder, "reader", "blocked", f"Step {number} of a night", at=NOW)
    say(folder, "reader", "blocked", "The newest of all", at=NOW + timedelta(minutes=3))
    fleet = StageFleet(complete=False)
    app = opened(folder, fleet, tmp_path)
    async with app.run_test(size=size) as pilot:
        await waiting(pilot, CollaborationScreen)
        shown = seen(pilot).splitlines()
        row = next(line for line in shown if "The newest" in line)
        assert row.split()[:3] == ["12:53Z", "reader", "blocked"]
        assert shown.index(row) + 3 <= size[1]
        assert f"Reading {folder}"[: size[0] - 9] in seen(pilot)
        before = [line.split("Step ")[1].split()[0] for line in shown if "Step " in line]
        assert before == [str(number) for number in range(60 - len(before), 60)]
        fleet.show(make_snapshot(str(folder)))
        await shows(pilot, "Timeline")
        assert "The newest" not in seen(pilot)  # what the Snapshot holds, and nothing else


async def test_they_stand_in_the_very_first_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the collaboration's screen, whose making takes most of the time, is there."""
    folder = make_v1(tmp_path / "c")
    say(folder, "reader", "blocked", "The newest of all")
    app = opened(folder, StageFleet(complete=False), tmp_path)
    monkeypatch.setattr(app.opening, "_open", lambda found: None)
    async with app.run_test(size=(80, 24)) as pilot:
        await waiting(pilot, FleetScreen)
        assert "The newest of all" in seen(pilot)


@pytest.mark.parametrize("text", HARMFUL)
async def test_what_a_log_holds_is_shown_as_text(text: str, tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "c")
    with (folder / "events.jsonl").open("ab") as log:
        fields = {"seq": 9, "from": text, "event": text, "at": text, "summary": text}
        log.write(json.dumps(fields).encode() + b"\n")
    app = opened(folder, StageFleet(complete=False), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await waiting(pilot, CollaborationScreen)
        assert not set(seen(pilot)) & set("\x1b\x07\x08\r\x9b\u202e\u2066\u2028\x85")
        assert app.is_running
        if text.startswith("[@click=app.quit"):
            assert "[@click=app.quit]" in seen(pilot)


@pytest.mark.parametrize("key", ["question_mark", "question_mark,z"])
async def test_keys_that_are_pressed_meanwhile_wait_for_the_collaboration(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees the newest event takes it for the collaboration, and presses its keys."""
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    monkeypatch.setattr("acp_tui.opening.HELD", 1_000)
    folder = make_v1(tmp_path / "c")
    fleet = StageFleet(complete=False)
    app = opened(folder, fleet, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await waiting(pilot, CollaborationScreen)
        pressing = asyncio.create_task(pilot.press(*key.split(",")))
        await pilot.pause(0.1)
        assert isinstance(app.screen, CollaborationScreen)
        fleet.show(make_snapshot(str(folder)))
        await opens(pilot, "HelpScreen")
        await pressing


async def test_keys_wait_for_nothing_where_the_collaboration_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    folder = make_v1(tmp_path / "c")
    fleet = StageFleet(complete=False)
    app = opened(folder, fleet, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await waiting(pilot, CollaborationScreen)
        fleet.show()
        await shows(pilot, "No collaboration here")
        await pilot.press("question_mark")
        await opens(pilot, "HelpScreen")


async def test_of_many_the_names_stand_there_but_of_those_put_away(tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in ("checkout", "deep/search-index", "old-story"):
        make_v1(work / name)
    (work / "no collaboration").mkdir()
    attention = Attention(tmp_path / "attention.json")
    attention.archive(str(work / "old-story"), NOW)
    fleet = StageFleet(complete=False)
    app = AcpApp(
        [str(work)], settings=Settings(), clock=Clock(), fleet=fleet,  # type: ignore[arg-type]
        attention=Attention(tmp_path / "attention.json"),
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "search-index")
        rows = [line.strip() for line in seen(pilot).splitlines() if line.startswith("    ")]
        assert "old-story" not in seen(pilot)
        assert rows[-2:] == ["checkout", "deep/search-index"]
        assert rows[0].startswith("Looking for collaborations under")
        fleet.show(make_snapshot(str(work / "checkout")))
        await until(pilot, lambda: "waiting" in seen(pilot).lower() or "reviewing" in seen(pilot))
        assert "search-index" not in seen(pilot)


async def test_keys_that_are_pressed_at_a_name_wait_for_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    monkeypatch.setattr("acp_tui.opening.HELD", 1_000)
    folder = make_v1(tmp_path / "work" / "checkout")
    fleet = StageFleet(complete=False)
    app = opened(tmp_path / "work", fleet, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "checkout")
        pressing = asyncio.create_task(pilot.press("enter"))
        await pilot.pause(0.1)
        fleet.show(make_snapshot(str(folder)))
        await opens(pilot, "CollaborationScreen")
        await pressing


async def test_keys_wait_for_nothing_where_the_names_are_of_nothing_that_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    make_v1(tmp_path / "work" / "checkout")
    fleet = StageFleet(complete=False)
    app = opened(tmp_path / "work", fleet, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "checkout")
        fleet.show()  # it was removed meanwhile
        await shows(pilot, "No collaboration under")
        await pilot.press("question_mark")
        await opens(pilot, "HelpScreen")


async def test_keys_do_not_wait_for_ever_for_what_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    monkeypatch.setattr("acp_tui.opening.HELD", 0.2)
    make_v1(tmp_path / "work" / "checkout")
    app = opened(tmp_path / "work", StageFleet(complete=False), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "checkout")
        await pilot.press("question_mark")
        await opens(pilot, "HelpScreen")


async def test_what_was_opened_meanwhile_stays_on_top_and_takes_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_tui.keys.LONGEST", 1_000)
    folder = make_v1(tmp_path / "c")
    app = opened(folder, StageFleet(complete=False), tmp_path)
    begin, go_on = app.opening._open, threading.Event()
    monkeypatch.setattr(app.opening, "_open", lambda found: go_on.wait() and begin(found))
    async with app.run_test(size=(80, 24)) as pilot:
        await waiting(pilot, FleetScreen)
        await app.action_help()
        go_on.set()
        await until(pilot, lambda: not app.opening.is_under_way)
        assert is_open(app, "HelpScreen")
        await pilot.press("escape")
        await opens(pilot, "FleetScreen")


async def test_a_disk_that_hangs_keeps_the_fleet_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_v1(tmp_path / "work" / "c")
    answered = threading.Event()
    fleet = StageFleet(make_snapshot(str(tmp_path / "work" / "c")))
    app = opened(tmp_path / "work", fleet, tmp_path)
    monkeypatch.setattr(app.opening, "_look", lambda: answered.wait() and None)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await shows(pilot, "reviewing")
            assert not answered.is_set()
            answered.set()
    finally:
        answered.set()
