"""A turn's program runs once, whichever account gave the turn out, and whatever was lost since."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents.processes import end, identify
from acp_core.files import claims
from acp_core.model.errors import Refused
from acp_core.protocols.governed.conduct.taking import take_in_background
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.read.run import read_run
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.turns import Task
from tests.agents.support import is_gone, wait_for
from tests.protocols.governed import acting
from tests.protocols.governed.acting import open_folder, reject_turn
from tests.protocols.governed.test_programs import dispatched

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Task]:
    """A turn whose program is at work for long."""
    turn = dispatched(tmp_path / "lamp", args=["-c", "import time; time.sleep(600)"])
    take_in_background(turn.root, turn.turn_id)
    wait_for(lambda: own_program(turn), "the program to be noted")
    program = own_program(turn)
    yield turn
    left = identify(program)
    end([left] if left else [], 5, groups=True)


def own_program(turn: Task) -> int:
    """The program that is noted with the run; 0 as long as it is the process that starts it."""
    child = claims.seen(turn.root, claims.of_turn(turn.turn_id)).child
    try:
        words = Path(f"/proc/{child.pid}/cmdline").read_bytes() if child else b""
    except OSError:
        return 0
    return child.pid if child and b"sleep(600)" in words else 0


@pytest.mark.parametrize("how", ["another account", "lost"])
def test_a_turn_at_work_is_given_out_by_nobody_again(
    taken: Task, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "lost":
        shutil.rmtree(os.environ["ACP_STATE"])
    else:
        monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    assert run.read_program_note(taken.root, taken.turn_id) is None
    with pytest.raises(Refused) as refused:
        acting.dispatch(taken.root, now=NOW)
    who = f"{claims.account(os.getuid())} controls this run (pid "
    runs = f"the program of pm ({taken.turn_id}) is still running, but {who}"
    assert runs in str(refused.value) and "stop it first with `acp governed " in str(refused.value)
    shown = open_folder(taken.root)
    (obstacle,) = [e for e in shown.refresh(NOW).obstacles if not e.wanted]
    assert obstacle.sentence in str(refused.value)
    with pytest.raises(Refused, match=r"still running, but .* stop it first"):
        reject_turn(taken.root, "no", by="anna", now=NOW)
    (turn,) = read_run(taken.root).turns
    assert turn.running and not turn.lost


def test_whoever_may_end_it_stops_it_and_the_turn_goes_on(
    taken: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = own_program(taken)
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    assert turns.stop_turn(taken.root, None, NOW) == taken.turn_id
    assert is_gone(program)
    assert acting.dispatch(taken.root, now=NOW).again


def test_a_program_that_is_gone_is_seen_as_lost_by_every_account(
    taken: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    claims.note(taken.root, claims.of_turn(taken.turn_id), os.getpid())
    path = claims.lock_of(taken.root, claims.of_turn(taken.turn_id))
    owner = claims.seen(taken.root, claims.of_turn(taken.turn_id)).owner
    assert owner is not None and owner.child is not None
    dead = claims.Process(owner.child.host, owner.child.boot, gone.pid, 1)
    claims.write_record(path, replace(owner, child=dead))
    (turn,) = read_run(taken.root).turns
    assert turn.lost and not turn.running


def test_a_turns_id_leads_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    assert claims.lock_of(folder, claims.of_turn("../../x")).parent.name == "turns"
