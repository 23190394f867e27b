"""Where the existing program keeps a checkpoint and a list of runs, acp's steps keep them true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.protocols.governed import making
from tests.protocols.governed.acting import (
    approve_gate,
    dispatch,
    escalate,
    seen,
    unblock,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_command_table import at_end
from tests.protocols.governed.test_read import NOW

SESSION = ".agentxchain/session.json"
RUNS = ".agentxchain/run-history.jsonl"


def kept(root: Path, **more: object) -> Path:
    made = {"session_id": "session_1", "run_id": making.RUN, "run_status": "active", "phase": "x",
            "started_at": making.AT, "agent_context": {"adapter": None}}  # fmt: skip
    making.write(root / SESSION, made | more)
    return root


def session(root: Path) -> Object:
    found: Object = json.loads((root / SESSION).read_text())
    return found


def drift(root: Path) -> list[str]:
    return [f.message for f in seen(root).findings if "SESSION" in f.code]


def test_the_checkpoint_follows_every_step(tmp_path: Path) -> None:
    root = kept(making.make_run(tmp_path), run_status="paused")
    assert drift(root)
    turn = dispatch(root, now=NOW).turn_id
    told = session(root)
    assert told["run_status"] == "active" and told["active_turn_ids"] == [turn]
    assert (told["last_turn_id"], told["last_role"], told["phase"]) == (turn, "pm", "planning")
    assert told["session_id"] == "session_1" and told["agent_context"] == {"adapter": None}
    escalate(root, "Which lamp?", now=NOW)
    assert session(root)["blocked"] is True and session(root)["run_status"] == "blocked"
    unblock(root, now=NOW)
    assert session(root)["blocked"] is False and drift(root) == []
    listed = [json.loads(raw)["status"] for raw in (root / RUNS).open()]
    assert listed == ["blocked"]  # that it went on is no end


def test_a_run_that_ends_is_listed(tmp_path: Path) -> None:
    at_end(tmp_path)
    root = kept(tmp_path)
    approve_gate(root, "run_completion", now=NOW)
    (line,) = [json.loads(raw) for raw in (root / RUNS).open()]
    assert (line["run_id"], line["status"], line["total_turns"]) == (making.RUN, "completed", 1)
    assert line["roles_used"] == ["pm"] and line["phases_completed"] == ["verification"]
    assert line["duration_ms"] is not None and line["completed_at"]
    assert session(root)["run_status"] == "completed"


def test_a_run_founded_there_and_completed_by_acp_alone_is_listed_there(tmp_path: Path) -> None:
    at_end(tmp_path)
    approve_gate(tmp_path, "run_completion", now=NOW)
    assert not (tmp_path / SESSION).exists()
    (line,) = [json.loads(raw) for raw in (tmp_path / RUNS).open()]
    assert (line["status"], line["blocked_reason"]) == ("completed", None)
    assert line["connector_used"] == "manual-pm"
    assert line["retrospective"]["headline"] == "Planned the lamp."
    (turn,) = line["inheritance_snapshot"]["recent_accepted_turns"]
    assert turn == {"turn_id": making.TURN, "role": "pm", "summary": "Planned the lamp.",
                    "phase": "verification"}  # fmt: skip


def test_a_run_that_is_blocked_is_listed_with_what_blocks_it(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    escalate(root, "Which lamp?", now=NOW)
    (line,) = [json.loads(raw) for raw in (root / RUNS).open()]
    assert line["blocked_reason"] == "escalation:operator:which-lamp"
    assert line["retrospective"]["terminal_reason"] == "operator_escalation"


def test_a_run_of_acp_alone_is_listed_nowhere(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, of_state=making.state(provenance={"created_by": "acp"}))
    escalate(root, "Which lamp?", now=NOW)
    assert not (root / SESSION).exists() and not (root / RUNS).exists()


@pytest.mark.parametrize("content", ["{", "[]"])
def test_a_checkpoint_that_cannot_be_read_is_left_alone(tmp_path: Path, content: str) -> None:
    root = making.make_run(tmp_path)
    (root / SESSION).write_text(content)
    escalate(root, "Which lamp?", now=NOW)
    assert (root / SESSION).read_text() == content
