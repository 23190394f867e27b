"""How a turn's program gets what it is told, and what it can never do with it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents.program import SpawnError
from acp_core.model.errors import Refused
from acp_core.protocols.governed.conduct.programs import command
from acp_core.protocols.governed.conduct.taking import described, take_in_background
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.read.run import read_run
from acp_core.protocols.governed.schema import Runtime
from acp_core.protocols.governed.write.turns import Task, task
from tests.agents.support import ROOT, wait_for
from tests.protocols.governed import playing
from tests.protocols.governed.acting import acted, dispatch, refused, start
from tests.protocols.governed.making import Object


def dispatched(root: Path, **runtime: Any) -> Task:
    """A turn of a planner whose runtime is this one."""
    playing.repository(root)
    acted("init", root, "--agent", f"pm={sys.executable} -c pass")
    path = root / "agentxchain.json"
    config = json.loads(path.read_text())
    config["runtimes"]["local-pm"] |= runtime
    path.write_text(json.dumps(config))
    given = dispatch(root, now=datetime.now(UTC))
    return task(root, given.turn_id)


def test_by_its_standard_input(tmp_path: Path) -> None:
    ready = command(dispatched(tmp_path / "lamp", prompt_transport="stdin"))
    assert ready.argv == (sys.executable, "-c", "pass")
    assert ready.stdin is not None
    told = Path(ready.stdin).read_text(encoding="utf-8")
    assert "## Your Mandate" in told and "# Execution Context" in told


@pytest.mark.parametrize(
    ("args", "before"), [(["-x", "say: {prompt}"], "say: # Turn"), (["-x"], "# Turn")]
)
def test_as_an_argument(tmp_path: Path, args: list[str], before: str) -> None:
    (tmp_path / "lamp").mkdir()
    ready = command(dispatched(tmp_path / "lamp", prompt_transport="argv", args=args))
    assert ready.stdin is None and len(ready.argv) == 3
    assert ready.argv[2].startswith(before)


def test_by_its_bundle_alone(tmp_path: Path) -> None:
    made = dispatched(tmp_path / "lamp", prompt_transport="dispatch_bundle_only")
    ready = command(made)
    assert ready.stdin is None and ready.argv == (sys.executable, "-c", "pass")
    assert Path(ready.env["AGENTXCHAIN_DISPATCH_DIR"], "ASSIGNMENT.json").is_file()
    assert ready.env["ACP_GOVERNED_TURN"] == made.turn_id


@pytest.mark.parametrize(
    ("runtime", "said"),
    [
        ({"command": "no-such-program-here"}, "not found on PATH"),
        ({"command": []}, "names no command"),
        ({"cwd": "../.."}, "leads out of the repository"),
        ({"prompt_transport": "pigeon"}, "is not one of"),
    ],
)
def test_a_runtime_that_cannot_be_started_says_why(
    tmp_path: Path, runtime: Object, said: str
) -> None:
    made = dispatched(tmp_path / "lamp", **runtime)
    with pytest.raises(SpawnError, match=said):
        command(made)


def test_a_secret_in_its_arguments_is_not_shown() -> None:
    key = "sk-" + "a1B2" * 12
    runtime = Runtime("local_cli", ("agent",), ("--api-key", key))
    assert key not in described(runtime)


def test_a_turn_whose_process_cannot_note_who_it_is_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dispatched(tmp_path / "lamp", args=["-c", "import sys; open('ran', 'w')"])
    (tmp_path / "file").touch()
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    with pytest.raises(Refused, match=r"the turn's process cannot be started: .*Not a directory"):
        take_in_background(made.root, made.turn_id)
    assert not (tmp_path / "lamp/ran").exists()


def test_a_turn_in_the_background_ends_noted(tmp_path: Path) -> None:
    made = dispatched(tmp_path / "lamp", args=["-c", "raise SystemExit('no light')"])
    take_in_background(made.root, made.turn_id)

    def turn() -> Object:
        state = json.loads((made.root / ".agentxchain/state.json").read_text())
        found: Object = state["active_turns"][made.turn_id]
        return found

    wait_for(lambda: turn()["status"] == "failed_start", "the failure to be noted")
    assert "exit code 1" in json.dumps(turn()) and "no light" in json.dumps(turn())
    assert not run.is_program_running(made.root, made.turn_id)


KILLED_AT_THE_START = """
import os, signal, sys
from acp_core.agents import program
from tests.protocols.governed.acting import governed
begin = program.start_program
def start(*given):
    begin(*given)
    os.kill(os.getpid(), signal.SIGKILL)
program.start_program = start
governed(["step", sys.argv[1]])
"""


def test_a_program_whose_start_the_killed_step_did_not_note_is_not_started_again(
    tmp_path: Path,
) -> None:
    """It can be seen, stopped and waited for as any other; only then is the turn given out again."""
    root, journal = playing.repository(tmp_path / "lamp"), tmp_path / "journal"
    begins = f"import time; print('begun', file=open({str(journal)!r}, 'a')); time.sleep(600)"
    agent = shlex.join([sys.executable, "-c", begins])
    acted("init", root, "--agent", f"pm={agent}")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", KILLED_AT_THE_START, str(root)]
    assert subprocess.run(words, env=env, capture_output=True).returncode == -signal.SIGKILL
    wait_for(journal.exists, "the program to begin")
    [turn] = read_run(root).turns
    assert turn.running and not turn.lost
    assert "Turn already assigned" in refused("step", root)
    acted("stop-turn", root)
    [turn] = read_run(root).turns
    assert not turn.running
    assert journal.read_text().split() == ["begun"]


def test_what_a_program_is_told_and_prints_is_read_by_its_person_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt may hold what the repository's files do not: answers, and other repositories' news."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    root = start(tmp_path / "lamp")
    mask = os.umask(0o022)
    try:
        acted("step", root)
    finally:
        os.umask(mask)
    [prompt] = (tmp_path / "state/governed").glob("*/stdin.md")
    assert {path.name for path in prompt.parent.iterdir()} >= {"stdin.md", "stdout.log"}
    for path in (prompt.parent, *prompt.parent.iterdir()):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path
    prompt.chmod(0o644)  # an earlier version wrote it
    prompt.parent.chmod(0o755)
    acted("reject-turn", root, "--reason", "Dull", "--by", "olga", "--yes")
    acted("step", root)
    assert stat.S_IMODE(prompt.stat().st_mode) == 0o600
    assert stat.S_IMODE(prompt.parent.stat().st_mode) == 0o700


def test_a_turn_has_a_folder_of_its_own_whatever_its_id_holds(tmp_path: Path) -> None:
    ids = ("turn", "\ud800", "\udcff", "../turn", "a\0b")
    places = {run.program_folder(tmp_path, each) for each in ids}
    assert len(places) == len(ids) and len({each.parent for each in places}) == 1
