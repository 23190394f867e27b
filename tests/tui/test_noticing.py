"""The dashboard tells of new needs: by the terminal, and by a command of one's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from acp_tui.terminal.driver import Terminal
from tests.tui.stage import Clock, StageFleet, dashboard, needy, snapshot, until

CODE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


async def test_a_new_need_is_told_once_and_not_in_quiet_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, rung = tmp_path / "told", []
    command = [sys.executable, "-c", CODE, str(told)]
    hours = Clock().now.astimezone().strftime("%H:00-%H:59")
    fleet, clock = StageFleet(snapshot("a"), snapshot("b")), Clock()
    settings = {"notify": {"command": command, "quiet": hours}}
    app = dashboard(fleet, tmp_path, settings=settings, clock=clock)
    monkeypatch.setattr(app.terminal, "bell", lambda: rung.append(1))
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        fleet.show(needy("a"))
        await until(pilot, lambda: app.title.startswith("1 needs you"))
        assert not rung
        clock.forward(3600)
        fleet.show(needy("b"))
        await until(pilot, lambda: told.exists() and told.read_text().endswith("\n"))
        (line,) = told.read_text().splitlines()
        facts = json.loads(line)
        assert facts["collaboration"] == "b" and facts["participant"] == "reader"
        assert facts["reason"] == "reader has not reviewed for 19 minutes"
        assert rung == [1]


async def test_many_at_once_are_one_message(tmp_path: Path) -> None:
    told = tmp_path / "told"
    fleet = StageFleet(*(snapshot(name) for name in "abcde"))
    settings = {"notify": {"command": [sys.executable, "-c", CODE, str(told)]}}
    app = dashboard(fleet, tmp_path, settings=settings)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        fleet.show(*(needy(name) for name in "abcde"))
        await until(pilot, lambda: told.exists() and told.read_text().endswith("\n"))
        (line,) = told.read_text().splitlines()
        assert json.loads(line)["text"] == "5 updates"
        assert json.loads(line)["collaboration"] == "a, b, c and 2 more"


def test_no_text_ends_the_terminal_s_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = dashboard(StageFleet(), tmp_path)
    written: list[str] = []
    terminal = Terminal(app)
    monkeypatch.setattr(Terminal, "reachable", True)
    monkeypatch.setattr(terminal, "_write", written.append)
    for way in ("off", "osc9", "osc777"):
        terminal.notice("acp; a\x1b\\", "b;\x07\x9c c", way)
    first, second = written
    assert first == "\x1b]9;acp; a␛\\: b;␇\ufffd c\x1b\\"
    assert second == "\x1b]777;notify;acp, a␛\\;b,␇\ufffd c\x1b\\"
