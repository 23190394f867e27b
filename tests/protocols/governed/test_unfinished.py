"""What the existing program left half written is said, kept, and never written over."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.model.action import OutcomeState
from acp_core.model.errors import Refused
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import (
    escalate,
    open_folder,
    seen,
    set_aside,
    step,
    synchronise,
    talk,
)
from tests.protocols.governed.multi import state as state_of
from tests.protocols.governed.test_read import NOW

NOTE = ".agentxchain/transactions/accept/txn_00000000000000cc.json"
PREPARED = {
    "transaction_id": "txn_00000000000000cc", "kind": "accept_turn", "status": "prepared",
    "prepared_at": making.AT, "turn_id": making.TURN, "history_entry": making.accepted(),
}  # fmt: skip


def left(root: Path, value: object = PREPARED, name: str = NOTE) -> Path:
    """A run with a turn under way, and a note that was left."""
    making.make_run(root, of_state=making.under_way())
    making.write(root / name, value)
    return root


def causes(root: Path, now: datetime = NOW) -> list[model.Matter]:
    opened = open_folder(root)
    snapshot = opened.refresh(now)
    found = opened.causes(DiagnosisContext(snapshot, Clock(now)))
    return [cause for cause in found if cause.remedy == "set_aside"]


def test_it_shows_when_it_comes_and_goes(tmp_path: Path) -> None:
    making.make_run(tmp_path)
    opened = open_folder(tmp_path)
    assert not [f for f in opened.refresh(NOW).findings if f.code == "TRANSACTION"]
    making.write(tmp_path / ".agentxchain/transactions/txn_1.json", PREPARED)
    assert [f for f in opened.refresh(NOW).findings if f.code == "TRANSACTION"]
    assert tmp_path / ".agentxchain/transactions" in opened.watched()
    (tmp_path / ".agentxchain/transactions/txn_1.json").unlink()
    assert not [f for f in opened.refresh(NOW).findings if f.code == "TRANSACTION"]


@pytest.mark.parametrize("status", ["committed", "COMPLETED", "rolled_back", "applied"])
def test_a_note_that_says_that_it_is_over_is_none(tmp_path: Path, status: str) -> None:
    assert causes(left(tmp_path, PREPARED | {"status": status})) == []


def test_nothing_is_said_while_that_program_writes(tmp_path: Path) -> None:
    left(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
        lock = {"pid": process.pid, "acquired_at": at}
        making.write(tmp_path / ".agentxchain/locks/accept-turn.lock", lock)
        assert causes(tmp_path) == []
        assert seen(tmp_path).recheck_at is not None
    finally:
        process.kill()
        process.wait()
    assert len(causes(tmp_path)) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "which is not valid JSON"),
        ("[]", "which is not a JSON object"),
        ('{"turn_id": ["x"], "status": 3}', "did not finish a write"),
        ('{"kind": "a\\u001b[31m\\nb", "payload": {"turn_id": "t"}}', "(t)"),
    ],
)
def test_whatever_a_note_holds_is_said_safely(tmp_path: Path, text: str, says: str) -> None:
    left(tmp_path)
    (tmp_path / NOTE).write_text(text)
    [cause] = causes(tmp_path)
    assert says in cause.sentence and "\x1b" not in cause.sentence + "".join(cause.evidence)
    assert set_aside(tmp_path, NOW)


def test_where_nothing_is_left_nothing_is_set_aside(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="left nothing unfinished"):
        set_aside(making.make_run(tmp_path), NOW)
    assert not (tmp_path / ".agentxchain/transactions").exists()


def test_links_and_our_own_leftovers_are_no_notes(tmp_path: Path) -> None:
    making.make_run(tmp_path)
    place = tmp_path / ".agentxchain/transactions"
    place.mkdir()
    (tmp_path / "other.json").write_text("{}")
    (place / "link.json").symlink_to(tmp_path / "other.json")
    (place / ".gitkeep").write_text("")
    assert causes(tmp_path) == []


def test_no_step_is_made_over_it(tmp_path: Path) -> None:
    root = left(tmp_path)
    before = (root / ".agentxchain/state.json").read_bytes()
    for words in (
        ("reject-turn", str(root), "--reason", "no", "--as", "Ann", "--yes"),
        ("escalate", str(root), "--reason", "no", "--as", "Ann", "--yes"),
        ("escalate", str(root), "--reason", "no", "--as", "Ann", "--dry-run"),
    ):
        ran = playing.acp(*words)
        assert ran.code == 2 and ran.out == "" and len(ran.err.splitlines()) == 1, ran
        assert NOTE in ran.err and "acp governed set-aside" in ran.err
    assert (root / ".agentxchain/state.json").read_bytes() == before and (root / NOTE).exists()
    talk(root, "Look at the note.", now=NOW)  # words are always heard


def test_set_aside_keeps_it_and_lets_the_run_go_on(tmp_path: Path) -> None:
    root = left(tmp_path)
    data = (root / NOTE).read_bytes()
    shown = playing.acp("recover", str(root), "--set-aside", "--dry-run")
    assert shown.code == 0 and NOTE in shown.out and (root / NOTE).exists()
    ran = playing.acp("recover", str(root), "--set-aside", "--json")
    [kept] = ran.json()["set_aside"]
    assert kept.startswith(".agentxchain/backups/transactions/") and kept.endswith(".json")
    assert (root / kept).read_bytes() == data and not (root / NOTE).exists()
    assert causes(root) == []
    escalate(root, "Look", now=NOW)
    again = playing.acp("recover", str(root), "--set-aside")
    assert again.code == 2 and "left nothing unfinished" in again.err


def test_an_agent_may_not_set_it_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(tmp_path)
    monkeypatch.setenv("ACP_GOVERNED_TURN", making.TURN)
    with pytest.raises(Refused, match="only a human"):
        set_aside(tmp_path, NOW)
    assert (tmp_path / NOTE).exists()


def test_the_form_shows_what_it_moves(tmp_path: Path) -> None:
    root = left(tmp_path)
    action = next(a for a in open_folder(root).actions(NOW) if a.name == "set_aside")
    preview = action.preview(action.inputs())
    assert [change.verb for change in preview.changes] == ["create", "remove"]
    assert action.perform(action.inputs()).state is OutcomeState.DONE
    assert not (root / NOTE).exists()


def test_no_barrier_is_crossed_over_it(tmp_path: Path) -> None:
    root = multi.begin(tmp_path / "house", ("auth", "web"))
    multi.all_ask(root, ("auth", "web"))
    step(root, multi.NOW)
    making.write(root / "web" / NOTE, PREPARED)
    done = multi.approve(root, "plan-sync")
    assert any("web" in each and NOTE in each for each in done.failed), done
    assert state_of(root)["status"] == "blocked:resync_failed"
    assert {state_of(root, name)["phase"] for name in ("auth", "web")} == {"planning"}
    set_aside(root / "web", multi.NOW)
    assert not synchronise(root, multi.NOW).failed
    assert {state_of(root, name)["phase"] for name in ("auth", "web")} == {"implementation"}


def test_a_run_with_a_note_is_not_held_at_a_barrier(tmp_path: Path) -> None:
    root = multi.begin(tmp_path / "house", ("auth", "web"))
    multi.all_ask(root, ("auth", "web"))
    making.write(root / "web" / NOTE, PREPARED)
    before = (root / "web/.agentxchain/state.json").read_bytes()
    step(root, multi.NOW)
    assert state_of(root)["barriers"]["plan-sync"]["reached_by"] == ["auth"]
    assert (root / "web/.agentxchain/state.json").read_bytes() == before
    assert json.loads((root / "web" / NOTE).read_text()) == PREPARED
