"""Collaborations that get stuck, each for another reason: found, mended, and gone on to the end.

Real loops, programs, files and processes; only what the participants write is made up.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest

from acp_core.protocols.folder.rehearsal.stuck import NAMES
from tests.cli.support import Acp
from tests.support.terminal import Terminal

SPEED = "100"
PLENTY = 120.0  # seconds; nothing passes or fails by being quicker
FOUND = {
    "killed": ("B2", "reader's loop was killed", "relaunch"),
    "idle": ("B3", "ended without an event", "nudge"),
    "refused": ("B3", "was denied a tool that it needs", "hand_over"),
    "hanging": ("B9", "is running but produces no output", "relaunch"),
    "retrying": ("B5", "cannot use its model service and keeps retrying", "hand_over"),
    "login": ("B4", "is not logged in", "hand_over"),
    "lingering": ("B12", "finished its work but did not exit", "stop_program"),
    "torn": ("A1", "the last line of events.jsonl is an incomplete event", "repair"),
    "lagging": ("A4", "protocol.json is out of date with the event log", "repair"),
    "heading": ("C2", "has no heading in review.md", "repair"),
    "gate": (
        "D5",
        "the gate “A price change is seen within a minute” is not checked",
        "check_gates",
    ),
    "blocked": ("E1", "blocked in reviewing by reader: May a page be a minute old", "continue"),
    "duplicate": ("B13", "two processes act for reader at once", "stop_duplicate"),
    "belief": ("B10", "still waits for server, although it is reader's turn", "relaunch"),
    "forgotten": ("B1", "reader was never started here", "launch"),
}
QUICK = ("gate",)


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    (tmp_path / "home").mkdir()
    return Acp(tmp_path / "home")


def processes_in(folder: Path) -> list[psutil.Process]:
    """The processes that have to do with a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(folder) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def events(folder: Path) -> list[str]:
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


def test_every_story_is_told_here() -> None:
    assert set(FOUND) == set(NAMES)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FOUND],
)
def test_it_gets_stuck_is_mended_and_completes(acp: Acp, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    ended = acp("demo", "--stuck", name, "--headless", "--speed", SPEED, "--folder", str(folder))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    code, headline, remedy = FOUND[name]
    lines = ended.stdout.splitlines()
    cause = next(line for line in lines if line.startswith("1. "))
    assert headline[1:] in cause  # with or without a capital, see `acp_core.model.format`
    assert f"({code}, " in cause
    assert any("  acp act " in line and f"/run {remedy}" in line for line in lines)
    done = [line for line in lines if line.startswith(("done: ", "requested: "))]
    assert ("Fixed" in done[0]) is (remedy != "nudge")  # after a message it is not known yet
    assert "Not fixed" not in done[0] and "Still open" not in done[0]
    assert lines[-1] == "completed and valid: 9 events"
    last = tmp_path / "run-2" if name == "blocked" else folder
    assert events(last)[-1] == "completed"
    assert acp("validate", "--folder", str(last)).returncode == 0
    assert processes_in(folder) == []
    assert json.loads(acp("ps", "--all", "--json").stdout)["loops"] == []


@pytest.mark.slow
def test_all_of_them_one_after_the_other(acp: Acp) -> None:
    ended = acp("demo", "--stuck", "--headless", "--speed", SPEED)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("completed and valid: 9 events") == len(NAMES)


def test_an_unknown_cause_lists_them(acp: Acp) -> None:
    ended = acp("demo", "--stuck", "bored", "--headless")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "causes: killed, idle, " in ended.stderr


def test_on_the_dashboard_it_must_be_named(acp: Acp) -> None:
    ended = acp("demo", "--stuck")
    assert ended.returncode == 2
    assert "name a CAUSE: killed, idle, " in ended.stderr


@pytest.mark.slow
def test_on_the_dashboard_one_key_mends_it(acp: Acp, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = acp.command("demo", "--stuck", "idle", "--speed", SPEED, "--folder", str(folder))
    with Terminal(command, env=acp.env, cwd=tmp_path, columns=150, rows=45) as terminal:
        terminal.wait_for("ended without an event", PLENTY)  # perhaps on the fleet still
        terminal.wait_for("f: ", PLENTY)
        terminal.send("f")
        terminal.wait_for("restarts its turn at once", PLENTY)
        terminal.send("\x13")  # ctrl+s: do it
        terminal.wait_for("completed", PLENTY)
        deadline = time.monotonic() + PLENTY
        while events(folder)[-1] != "completed":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        terminal.send("\x11")
        assert terminal.wait_for_end(PLENTY) == 0
    assert processes_in(folder) == []
