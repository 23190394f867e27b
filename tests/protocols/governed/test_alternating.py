"""acp and the existing program take turns at one run: what it did lawfully is taken over, no more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core import model
from acp_core.model.errors import Refused
from tests.protocols.governed import making, multi, playing, states
from tests.protocols.governed.acting import (
    accept,
    approve_gate,
    dispatch,
    escalate,
    hand_in,
    mark_objection,
    seen,
    state,
    step,
    take_files,
    turn_of,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.playing import acp

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOME = ".agentxchain"


def turn(root: Path) -> Object:
    found = turn_of(root)
    return dict(found)


def result(root: Path, **more: object) -> Object:
    """What whoever has the turn hands in."""
    at_work = turn(root)
    return making.result(
        run_id=at_work["run_id"], turn_id=at_work["turn_id"], role=at_work["assigned_role"],
        runtime_id=at_work["runtime_id"], phase_transition_request=None,
    ) | more  # fmt: skip


def accepts(root: Path, **more: object) -> str:
    """The existing program accepts a result, in the shapes that it writes."""
    given = result(root, **more)
    old = state(root)
    sequence, id = old["turn_sequence"] + 1, str(given["turn_id"])
    entry = {k: v for k, v in given.items() if k != "schema_version"} | {
        "phase": old["phase"], "accepted_at": making.AT, "accepted_sequence": sequence,
        "run_completion_request": bool(given["run_completion_request"]),
    }  # fmt: skip
    add(root, "history.jsonl", entry)
    for each in given["decisions"]:
        more_of = {
            "turn_id": id,
            "role": given["role"],
            "phase": old["phase"],
            "status": "accepted",
        }
        add(root, "decision-ledger.jsonl", each | more_of | {"created_at": making.AT})
    event(root, "turn_accepted", old, turn={"turn_id": id, "role_id": given["role"]})
    new = old | {
        "active_turns": {}, "turn_sequence": sequence, "last_completed_turn_id": id,
        "next_recommended_role": None, "repo_decisions": [], "inherited_context": None,
    }  # fmt: skip
    if given["phase_transition_request"]:
        waits = {"from": old["phase"], "to": given["phase_transition_request"],
                 "gate": "planning_signoff", "requested_by_turn": id}  # fmt: skip
        new |= {"status": "paused", "pending_phase_transition": waits,
                "blocked_on": "human_approval:planning_signoff"}  # fmt: skip
        event(root, "gate_pending", new)
    making.write(root / HOME / "state.json", new)
    for folder in ("dispatch/turns", "staging"):
        shutil.rmtree(root / HOME / folder / id, ignore_errors=True)
    return id


def assigns(root: Path, role: str) -> None:
    """The existing program assigns a turn."""
    old, id = state(root), f"turn_{state(root)['turn_sequence']:016x}"
    given = making.turn(turn_id=id, run_id=old["run_id"], assigned_role=role,
                        runtime_id=f"manual-{role}", baseline={"kind": "none"})  # fmt: skip
    making.write(root / HOME / "state.json", old | {
        "active_turns": {id: given}, "turn_sequence": old["turn_sequence"] + 1,
    })  # fmt: skip
    making.write(root / HOME / f"dispatch/turns/{id}/ASSIGNMENT.json", {"turn_id": id})
    event(root, "turn_dispatched", state(root), turn={"turn_id": id, "role_id": role})


def approves(root: Path) -> None:
    """The existing program opens the gate that waits."""
    old = state(root)
    waits = old["pending_phase_transition"]
    new = old | {"status": "active", "phase": waits["to"], "pending_phase_transition": None,
                 "blocked_on": None}  # fmt: skip
    event(root, "gate_approved", new, payload=waits)
    event(root, "phase_entered", new, payload=waits)
    making.write(root / HOME / "state.json", new)


def event(root: Path, kind: str, of: Object, **more: object) -> None:
    line = {"event_id": "evt_1", "event_type": kind, "timestamp": making.AT, "turn": None,
            "run_id": of["run_id"], "phase": of["phase"], "status": of["status"], "payload": {}}  # fmt: skip
    add(root, "events.jsonl", line | more)


def add(root: Path, name: str, line: Object) -> None:
    with (root / HOME / name).open("a") as log:
        log.write(json.dumps(line) + "\n")


def codes(root: Path) -> dict[str, str]:
    return {f.code: f.message for f in seen(root, NOW).findings}


def test_turns_that_either_program_accepted_follow_each_other(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "given out")
    for _ in range(3):
        id = accepts(root)
        snapshot = seen(root, NOW)
        assert snapshot.verdict != model.Verdict.INVALID and snapshot.obstacles == ()
        assert f"program accepted {id}; acp seals" in codes(root)["SEALED_ANEW"]
        dispatch(root)
        assert not {"SEALED_ANEW", "RESERVED_CHANGED"} & codes(root).keys()
        hand_in(root)
        assert accept(root).status == "active"
        assigns(root, "pm")
        assert "program assigned turn_" in codes(root)["SEALED_ANEW"]
    hand_in(root, phase_transition_request="implementation")
    assert acp("accept-turn", str(root)).code == 0
    assert "RESERVED_CHANGED" not in codes(root)


def test_a_gate_that_waits_in_the_other_program_is_opened_in_acp(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "given out")
    accepts(root, phase_transition_request="implementation")
    assert "SEALED_ANEW" in codes(root)
    assert approve_gate(root)["phase"] == "implementation"
    assert not {"SEALED_ANEW", "RESERVED_CHANGED"} & codes(root).keys()


def test_a_turn_beside_a_gate_that_waits_is_lawful_while_the_gate_waits(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "given out")
    accepts(root, phase_transition_request="implementation")
    mark_objection(root, "OBJ-001", "acknowledged")  # seals it anew
    assert "SEALED_ANEW" not in codes(root)
    assigns(root, "pm")
    assert "SEALED_ANEW" in codes(root)
    waits = state(root)
    making.write(root / HOME / "state.json", waits | {"status": "active", "blocked_on": None})
    assert "RESERVED_CHANGED" in codes(root) and "SEALED_ANEW" not in codes(root)


def test_a_gate_that_the_other_program_opened_needs_a_human_s_word(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "given out")
    accepts(root, phase_transition_request="implementation")
    approves(root)
    assert "RESERVED_CHANGED" in codes(root)
    with pytest.raises(Refused, match="acp governed take-files"):
        dispatch(root)
    assert acp("take-files", str(root)).code == 0
    assert dispatch(root).role == "dev"


def undeclared(root: Path) -> None:
    accepts(root)
    (root / "secret.py").write_text("X = 1\n")


def forged_gate(root: Path) -> None:
    accepts(root)
    add(root, "decision-ledger.jsonl", {"type": "gate_approved", "gate_id": "x", "by": "Ann"})


def rewritten(root: Path) -> None:
    accepts(root)
    accepted = (root / HOME / "history.jsonl").read_text()
    add(root, "history.jsonl", json.loads(accepted) | {"turn_id": "turn_2", "role": "qa"})


def other_run(root: Path) -> None:
    accepts(root)
    making.write(root / HOME / "state.json", state(root) | {"run_id": "run_other"})


def without_history(root: Path) -> None:
    new = state(root) | {"active_turns": {}}
    making.write(root / HOME / "state.json", new)


@pytest.mark.parametrize(
    "does",
    [
        undeclared,
        forged_gate,
        rewritten,
        other_run,
        without_history,
        lambda root: accepts(root, objections=[]),
        lambda root: accepts(root, files_changed=["src/lamp.py"]),
        lambda root: accepts(root, role="dev"),
        lambda root: accepts(root, proposed_next_role="nobody"),
    ],
)
def test_what_no_lawful_acceptance_leads_to_is_not_taken_over(
    tmp_path: Path, does: Callable[[Path], object]
) -> None:
    root = states.run_in(tmp_path, "given out")
    does(root)
    assert "RESERVED_CHANGED" in codes(root) and "SEALED_ANEW" not in codes(root)
    with pytest.raises(Refused, match="files changed outside acp"):
        dispatch(root)


def test_git_sees_nothing_of_what_acp_keeps(tmp_path: Path) -> None:
    root = multi.begin(tmp_path)
    web = root / "web"
    (web / ".gitignore").write_text("".join(f"{HOME}/{name}\n" for name in ("*.json", "*.jsonl")))
    playing.git(
        web, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qam", "As there"
    )
    dispatch(web)
    hand_in(web)
    accept(web)
    step(root)
    seen = playing.git(web, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert [line for line in seen if "TALK.md" not in line] == []
    assert (web / ".acp/governed-seal.json").exists()


def test_a_seal_at_its_former_place_is_taken_over(tmp_path: Path) -> None:
    root = states.run_in(tmp_path, "given out")
    (root / ".acp/governed-seal.json").rename(root / HOME / "acp-seal.json")
    add(root, "decision-ledger.jsonl", {"type": "gate_approved", "gate_id": "x", "by": "Ann"})
    assert "RESERVED_CHANGED" in codes(root)
    take_files(root)
    escalate(root, "Stop")
    assert not (root / HOME / "acp-seal.json").exists() and "RESERVED_CHANGED" not in codes(root)
