"""What a turn does to a run, without any file: what is refused, and what the record says then."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed import state as governed_state
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.state import Move, Predicate, is_named
from acp_core.protocols.governed.write import opened
from tests.protocols.governed import making

NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)
PLAN = Predicate("file", ".planning/PM_SIGNOFF.md", True)


def playing(**more: object) -> making.Object:
    """A run whose planner is at work."""
    return making.state(active_turns={making.TURN: making.turn()}, **more)


def accepted(result: making.Object, known: dict[str, str], **more: Any) -> Move:
    return governed_state.accepted(
        making.config(), playing(**more), result, governed_state.Observed(), (PLAN,), known, NOW
    )


@pytest.mark.parametrize("status", ["paused", "blocked", "completed", "idle"])
def test_only_a_turn_of_an_active_run_is_sent_back(status: str) -> None:
    with pytest.raises(Refused, match=f'status is "{status}", expected "active"'):
        governed_state.rejected(
            making.config(), playing(status=status), making.TURN, "No", "Ann", "", (), NOW
        )
    governed_state.rejected(making.config(), playing(), making.TURN, "No", "Ann", "", (), NOW)


def test_an_objection_that_is_over_is_not_ended_once_more_in_other_words() -> None:
    known = {"OBJ-001": "withdrawn"}
    for status in ("withdrawn", "resolved_by_human"):
        with pytest.raises(Refused, match="OBJ-001 is already withdrawn"):
            governed_state.objection_marked(playing(), known, "OBJ-001", status, "Ann", "", NOW)
    reopened = governed_state.objection_marked(
        playing(), known, "OBJ-001", "raised", "Ann", "", NOW
    )
    assert reopened.ledger[0]["status"] == "raised"


def test_the_record_has_each_objection_once_with_its_newest_word() -> None:
    result = making.result()
    raised = {"OBJ-001": "raised"}
    kinds = [
        [line["type"] for line in accepted(result, known).ledger if "objection_id" in line]
        for known in ({}, raised, {"OBJ-001": "resolved"})
    ]
    assert kinds == [["objection_raised"], [], ["objection_status"]]


def test_what_a_turn_cost_is_in_the_history_and_nothing_where_nobody_said() -> None:
    cost = {"input_tokens": 5, "output_tokens": 6, "usd": 0.5}
    spent = accepted(making.result(cost=cost), {}, budget_status={"spent_usd": 1.0})
    assert spent.history[0]["cost"] == cost and spent.state["budget_status"]["spent_usd"] == 1.5
    free = accepted(making.result(), {}, budget_status={"spent_usd": 1.0})
    assert free.history[0]["cost"] == {"input_tokens": 0, "output_tokens": 0, "usd": 0}
    assert free.state["budget_status"]["spent_usd"] == 1.0


def test_a_run_that_goes_on_has_forgotten_its_failed_gate() -> None:
    stuck = {"last_gate_failure": {"gate": "planning_done"}, "non_progress_count": 2}
    after = accepted(making.result(), {}, **stuck).state
    assert after["last_gate_failure"] is None and after["non_progress_count"] == 0


def test_an_example_in_the_table_of_requirements_is_none() -> None:
    head = "| Req # | What | Status |\n| --- | --- | --- |\n"
    name = "acceptance-matrix.md"
    assert run.lacks(name, f"{head}| (example) | Light | PASS |\n") == "no requirement has a row"
    assert run.lacks(name, f"{head}| (example) | Light | FAIL |\n| 1 | Light | PASS |\n") == ""
    assert run.lacks(name, f"{head}| 1 | Light | FAIL |\n") == "not passed: 1"


def test_who_asked_for_the_end_of_a_run_is_known_at_its_gate() -> None:
    asked = {"gate": "verification_done", "requested_by_turn": making.TURN}
    state = making.state(status="paused", phase="verification", pending_run_completion=asked)
    request = governed_state.pending(state)
    assert (request.kind, request.gate, request.turn) == (
        "run_completion", "verification_done", making.TURN,
    )  # fmt: skip


@pytest.mark.parametrize("key", ["pending_phase_transition", "pending_run_completion"])
def test_what_a_gate_says_of_itself_is_short(key: str) -> None:
    """It stands in files that others write, too, and comes into sentences and file names."""
    long = "x" * 300
    asked = dict.fromkeys(("gate", "from", "to", "requested_by_turn"), long)
    found = governed_state.pending(making.state(status="paused", phase=long, **{key: asked}))
    assert {len(each) for each in found[1:] if each} == {200}


def test_each_turn_has_the_next_number_and_the_deadline_of_its_phase() -> None:
    for minutes, said in (
        (30, "2026-03-01T11:30"),
        (0, "2026-03-01T13:00"),
        (99_999, "2026-05-09T21:39"),
        (100_000, "2026-03-01T13:00"),
        (None, "2026-03-01T13:00"),
    ):
        config = making.config()
        config["routing"]["planning"]["timeout_minutes"] = minutes
        move = governed_state.assigned(
            config, making.state(turn_sequence=4), None, "turn_1", {}, NOW
        )
        given = move.state["active_turns"]["turn_1"]
        assert given["assigned_sequence"] == move.state["turn_sequence"] == 5
        assert given["deadline_at"].startswith(said), given


def test_a_gate_that_demands_a_file_outside_the_repository_is_not_met(tmp_path: Path) -> None:
    config = making.config()
    config["gates"]["planning_done"]["requires_files"] = ["../plan.md"]
    (tmp_path / "plan.md").write_text("Approved: YES\n")
    (demanded,) = run.predicates(tmp_path / "run", config, "planning_done", None)
    assert (demanded.met, demanded.reason) == (False, "leads out of the repository")


@pytest.mark.parametrize(("id", "named"), [("run_1", True), ("", False), (None, False), (5, False)])
def test_a_run_without_an_id_is_known(id: object, named: bool) -> None:
    assert is_named(making.state(run_id=id)) is named


def test_nothing_outside_the_run_is_read_or_removed(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "note").write_text("mine")
    (root / "link").symlink_to(tmp_path / "other")
    for name in ("../other", "link"):
        with pytest.raises(Refused, match="leads out of the repository, or is a symbolic link"):
            opened.removing(root, name)
        with pytest.raises(Refused, match="leads out of the repository, or is a symbolic link"):
            opened.content(root, f"{name}/note")
    assert opened.removing(root, "nowhere") == []
    assert opened.content(root, "nowhere") is None


def test_who_decides_has_a_name() -> None:
    assert opened.who("  Ann   Lee ") == "Ann Lee"
    with pytest.raises(Refused, match="name who decides"):
        opened.who("x" * 121)
