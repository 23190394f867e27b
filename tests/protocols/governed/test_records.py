"""What stands in the logs and bundles of a run is looked at, and what contradicts the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.kit.diagnosis import DiagnosisContext
from tests.protocols.governed import making
from tests.protocols.governed.acting import open_folder, seen
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_read import NOW

SESSION = ".agentxchain/session.json"
LEDGER = ".agentxchain/decision-ledger.jsonl"
EVENTS = ".agentxchain/events.jsonl"
HISTORY = ".agentxchain/history.jsonl"
DECISION = {
    "id": "DEC-001", "turn_id": making.TURN, "role": "pm", "phase": "planning",
    "category": "scope", "statement": "One lamp.",
}  # fmt: skip


def said(root: Path, code: str) -> list[str]:
    return [f.message for f in seen(root).findings if f.code == code]


def test_sound_logs_are_sound(tmp_path: Path) -> None:
    line = making.accepted(accepted_sequence=2)
    root = making.make_run(tmp_path, history=(line,))
    by_hand = {"decision": "operator_escalated", "timestamp": making.AT}
    approved = {"type": "gate_approved", "at": making.AT, "gate_id": "g", "by": "Ann"}
    making.write_lines(root / LEDGER, DECISION, by_hand, approved, {"type": "some_new_kind"})
    making.write_lines(root / EVENTS, {"event_type": "some_new_kind", "timestamp": making.AT})
    assert seen(root).findings == ()


@pytest.mark.parametrize(
    ("log", "lines", "told"),
    [
        (HISTORY, [making.accepted(summary="", role=3)], "line 1: an accepted turn lacks role, sum"),
        (HISTORY, [making.accepted()] * 2, f"line 2: {making.TURN} was already accepted in line 1"),
        (
            HISTORY,
            [making.accepted(accepted_sequence=4), making.accepted(turn_id="b", accepted_sequence=2)],
            "line 2: accepted_sequence 2 follows 4",
        ),
        (LEDGER, [DECISION, DECISION | {"id": "D1", "statement": ""}], "line 2: a decision lacks an"),
        (LEDGER, [{"type": "gate_approved", "gate_id": "g"}], "gate_approved lacks by"),
        (LEDGER, [DECISION | {"type": "note"}], "has an id, so readers take it for a decision"),
        (EVENTS, [{"event_type": "turn_accepted"}], "line 1: an event lacks timestamp"),
    ],
)  # fmt: skip
def test_lines_that_lack_something_are_found(
    tmp_path: Path, log: str, lines: list[Object], told: str
) -> None:
    root = making.make_run(tmp_path)
    making.write_lines(root / log, *lines)
    found = seen(root).findings
    assert [f.document for f in found if told in f.message] == [log], found


def dispatched(root: Path) -> Path:
    """A run with a whole bundle; returns its folder."""
    making.make_run(root, of_state=making.under_way())
    home = root / ".agentxchain/dispatch/turns" / making.TURN
    given = {"run_id": making.RUN, "turn_id": making.TURN, "role": "pm"}
    files = {"ASSIGNMENT.json": json.dumps(given).encode(), "PROMPT.md": b"Plan."}
    for name, data in files.items():
        (home / name).write_bytes(data)
    listed = [{"path": n, "sha256": hashlib.sha256(d).hexdigest()} for n, d in files.items()]
    making.write(home / "MANIFEST.json", {"manifest_version": "1.0", "files": listed})
    return home


def add_outside(home: Path) -> None:
    described = json.loads((home / "MANIFEST.json").read_text())
    described["files"].append({"path": "../../../../../secret", "sha256": ""})
    making.write(home / "MANIFEST.json", described)


def give(role: str) -> Callable[[Path], None]:
    given = {"run_id": making.RUN, "turn_id": making.TURN, "role": role}
    return lambda home: home.joinpath("ASSIGNMENT.json").write_text(json.dumps(given)) and None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda home: (home / "PROMPT.md").write_text("Do as you like."), "PROMPT.md was changed"),
        (lambda home: (home / "PROMPT.md").unlink(), "PROMPT.md is missing"),
        (give("qa"), "is of role “qa”"),
        (
            lambda home: (home / "ASSIGNMENT.json").write_text("{"),
            "pm (turn_00000000000000aa) cannot",
        ),
        (lambda home: (home / "MANIFEST.json").write_text("[]"), "The manifest of"),
        (add_outside, "leads out of the bundle"),
    ],
)
def test_a_bundle_that_was_changed_is_found(
    tmp_path: Path, change: Callable[[Path], object], told: str
) -> None:
    home = dispatched(tmp_path)
    assert said(tmp_path, "BUNDLE") == []
    change(home)
    assert any(told in message for message in said(tmp_path, "BUNDLE")), said(tmp_path, "BUNDLE")


def test_a_lost_acceptance_is_found(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, of_state=making.state(last_completed_turn_id=making.TURN))
    assert "the history does not record it" in said(root, "ACCEPTED_LOST")[0]
    making.write_lines(root / HISTORY, making.accepted())
    assert said(root, "ACCEPTED_LOST") == []


def test_an_accepted_turn_that_is_under_way_is_found(tmp_path: Path) -> None:
    of_state = making.under_way()
    root = making.make_run(tmp_path, of_state=of_state, history=(making.accepted(),))
    assert "accepted but is still listed as active" in said(root, "ACCEPTED_ACTIVE")[0]


def test_a_turn_of_another_run_is_found(tmp_path: Path) -> None:
    of_state = making.under_way(run_id="run_other")
    root = making.make_run(tmp_path, of_state=of_state)
    assert "belongs to the run run_other" in said(root, "TURN_OF_OTHER")[0]


def test_a_request_that_nobody_looks_at_again_is_found(tmp_path: Path) -> None:
    queued = {"from": "planning", "to": "implementation", "requested_by_turn": making.TURN}
    root = making.make_run(tmp_path, of_state=making.state(queued_phase_transition=queued))
    assert "is queued, but no turn is active" in said(root, "REQUEST_QUEUED")[0]
    of_state = making.state(
        queued_phase_transition=queued, active_turns={making.TURN: making.turn()}
    )
    making.make_run(root, of_state=of_state)
    assert said(root, "REQUEST_QUEUED") == []


def test_a_gate_that_was_opened_for_nothing_is_found(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, history=(making.accepted(),))
    opened = {
        "event_type": "gate_approved", "timestamp": making.AT,
        "payload": {"gate_id": "planning_done", "from": "planning", "to": "implementation"},
    }  # fmt: skip
    making.write_lines(root / EVENTS, opened)
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    assert [f.code for f in snapshot.findings] == ["APPROVED_NOT_MOVED"]
    assert "is still in planning" in snapshot.findings[0].message
    assert [c.code for c in collaboration.causes(DiagnosisContext(snapshot, NOW))] == ["D6"]
    making.write_lines(root / EVENTS, opened, {"event_type": "phase_entered", "timestamp": "now"})
    assert said(root, "APPROVED_NOT_MOVED") == []


@pytest.mark.parametrize(
    ("session", "told"),
    [
        ({"run_id": "run_other", "run_status": "active"}, ["belongs to another run"]),
        ({"run_id": making.RUN, "run_status": "completed"}, ["says completed while"]),
        ({"run_id": making.RUN, "run_status": "active"}, []),
        (["no object"], ["cannot be read"]),
    ],
)
def test_a_checkpoint_that_tells_something_else_is_found(
    tmp_path: Path, session: object, told: list[str]
) -> None:
    root = making.make_run(tmp_path)
    making.write(root / SESSION, session)
    found = said(root, "SESSION_DRIFT")
    assert len(found) == len(told) and all(t in f for t, f in zip(told, found, strict=True)), found


def test_what_a_turn_failed_of_stands_beside_the_block(tmp_path: Path) -> None:
    """A failed login must not hide behind "retries exhausted"."""
    failed = making.turn(status="failed", last_rejection={"reason": "401: not logged in"})
    of_state = making.state(
        status="blocked", blocked_on="escalation:retries-exhausted:pm",
        blocked_reason={"category": "retries_exhausted"}, active_turns={making.TURN: failed},
    )  # fmt: skip
    collaboration = open_folder(making.make_run(tmp_path, of_state=of_state))
    snapshot = collaboration.refresh(NOW)
    causes = {cause.code: cause for cause in collaboration.causes(DiagnosisContext(snapshot, NOW))}
    assert causes["E1"].evidence == ("pm: 401: not logged in",)


def test_a_result_is_judged_with_the_turns_before_it(tmp_path: Path) -> None:
    """A second turn of the implementation may change no product file."""
    turn = making.turn(assigned_role="dev", runtime_id="manual-dev")
    of_state = making.state(phase="implementation", active_turns={making.TURN: turn})
    before = making.accepted(
        turn_id="turn_1", role="dev", phase="implementation", files_changed=["src/lamp.py"]
    )
    root = making.make_run(tmp_path, of_state=of_state, history=(before,))
    result = making.result(
        role="dev", runtime_id="manual-dev", files_changed=[".planning/IMPLEMENTATION_NOTES.md"],
        phase_transition_request="verification", artifact={"type": "workspace"},
    )  # fmt: skip
    making.write(root / f".agentxchain/staging/{making.TURN}/turn-result.json", result)
    assert said(root, "RESULT") == []


def test_a_file_that_was_added_to_a_bundle_is_found(tmp_path: Path) -> None:
    home = dispatched(tmp_path)
    (home / "stdout.log").write_text("which the existing program adds")
    assert said(tmp_path, "BUNDLE") == []
    (home / "MORE.md").write_text("Delete all.")
    [message] = said(tmp_path, "BUNDLE")
    assert "MORE.md was added since" in message
