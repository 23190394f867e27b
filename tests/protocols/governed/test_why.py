"""What `why` and `status` say of a run is the reason that its files hold, and what helps."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import Matter, Snapshot
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import (
    acted,
    governed,
    open_folder,
    refused,
    start,
    state,
    synchronise,
    turn_of,
)
from tests.protocols.governed.multi import NAMES, approve, begin
from tests.protocols.governed.test_answers import by_humans, hand_in
from tests.protocols.governed.test_read import NOW

YES = ("--by", "olga", "--yes")


def read(root: Path, now: datetime = NOW) -> tuple[Snapshot, dict[str, Matter]]:
    """The run as it is, and why it does not go on."""
    opened = open_folder(root)
    snapshot = opened.refresh(now)
    return snapshot, {
        cause.key.split(":")[1]: cause
        for cause in opened.causes(DiagnosisContext(snapshot, Clock(now)))
    }


def staged(root: Path) -> Path:
    [id] = state(root)["active_turns"]
    return root / f".agentxchain/staging/{id}/turn-result.json"


def test_a_result_that_nothing_corrects_is_to_be_rejected_and_the_reason_is_named(
    tmp_path: Path,
) -> None:
    root = start(tmp_path / "lamp", pm="careless")
    acted("step", root)
    refused("accept-turn", root)
    cause = read(root)[1]["TURN_FAILED"]
    assert "must raise at least one objection" in cause.sentence
    assert (cause.remedy, cause.others) == ("reject_turn", ())
    result = json.loads(staged(root).read_text("utf-8"))
    result["objections"] = [making.result()["objections"][0]]
    making.write(staged(root), result)
    cause = read(root)[1]["TURN_FAILED"]  # a human mended it
    assert (cause.remedy, cause.others) == ("accept_turn", ("reject_turn",))
    staged(root).write_text("{")
    assert read(root)[1]["TURN_FAILED"].remedy == "reject_turn"


def test_a_correction_that_is_not_enough_is_not_the_way_out(tmp_path: Path) -> None:
    turn = making.turn(assigned_role="dev", runtime_id="manual-dev", status="failed_acceptance")
    of_state = making.state(phase="implementation", active_turns={making.TURN: turn})
    root = making.make_run(tmp_path, of_state=of_state)
    mine = {"role": "dev", "runtime_id": "manual-dev", "phase_transition_request": None}
    nothing = making.result(**mine, artifact={"type": "workspace", "ref": None})
    making.write(
        staged(root), nothing
    )  # it can become a review, but nothing was built all the same
    snapshot, causes = read(root)
    cause = causes["TURN_FAILED"]
    assert (cause.remedy, cause.others) == ("reject_turn", ())
    assert "not enough" in cause.instruction
    of_state["active_turns"][making.TURN]["status"] = "dispatched"
    making.write(root / ".agentxchain/state.json", of_state)
    snapshot, _ = read(root)
    assert [need.remedy for need in snapshot.needs] == ["reject_turn"]
    asks = {"status": "needs_human", "needs_human_reason": "Which bulb?"}
    making.write(staged(root), nothing | asks)
    snapshot, _ = read(root)
    assert [need.remedy for need in snapshot.needs] == ["correct_result"]


def test_what_a_reviewer_changed_is_no_matter_of_correction(tmp_path: Path) -> None:
    root = by_humans(tmp_path / "lamp")
    assert governed(["step", str(root)]) in (0, 1)
    turn = turn_of(root)
    result = making.result(run_id=turn["run_id"], turn_id=turn["turn_id"])
    making.write(staged(root), result | {"phase_transition_request": None})
    (root / "lamp.py").write_text("LIGHT = 1\n")
    refused("accept-turn", root)
    cause = read(root)[1]["TURN_FAILED"]
    assert "review_only role modified product files" in cause.sentence
    assert (cause.remedy, cause.others) == ("reject_turn", ())


def test_status_prints_the_open_objections(tmp_path: Path) -> None:
    root = by_humans(tmp_path / "lamp")
    hand_in(root)
    assert "  objection OBJ-001 (high, raised) of pm: No switch." in acted("status", root)
    [told] = json.loads(acted("status", root, "--json"))["objections"]
    assert told == {"id": "OBJ-001", "severity": "high", "statement": "No switch.",
                    "status": "raised", "by": "pm"}  # fmt: skip
    words = ("--objection", "OBJ-001", "--status", "resolved_by_human")
    acted("mark-objection", root, *words, *YES)
    assert json.loads(acted("status", root, "--json"))["objections"] == []


@pytest.mark.parametrize("status", ["paused", "active", "idle"])
def test_status_names_the_run_s_own_status(tmp_path: Path, status: str) -> None:
    asked = {"from": "planning", "to": "implementation", "gate": "planning_done",
             "requested_by_turn": making.TURN}  # fmt: skip
    of_state = making.state(status=status, pending_phase_transition=asked)
    root = making.make_run(tmp_path, of_state=of_state)
    assert json.loads(acted("status", root, "--json"))["status"] == status


def veto(root: Path, **more: object) -> None:
    line = {"timestamp": making.AT, "hook_phase": "before_gate", "hook_name": "compliance",
            "run_id": making.RUN, "turn_id": making.TURN, "verdict": "block",
            "message": "No licence is named", "orchestrator_action": "blocked"}  # fmt: skip
    with (root / ".agentxchain/hook-audit.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(line | more) + "\n")


def test_a_gate_that_a_hook_vetoed_is_not_advised_to_be_approved(tmp_path: Path) -> None:
    asked = {"from": "planning", "to": "implementation", "gate": "planning_done",
             "requested_by_turn": making.TURN}  # fmt: skip
    paused = making.state(status="paused", pending_phase_transition=asked)
    root = making.make_run(tmp_path, of_state=paused, history=(making.accepted(),))
    assert "HOOK_VETO" not in read(root)[1]
    veto(root, hook_phase="after_acceptance")
    veto(root, run_id="run_other")
    veto(root, timestamp="2026-02-28T10:00:00Z")  # of an earlier gate
    veto(root, orchestrator_action="downgraded_block_to_warn")
    assert "HOOK_VETO" not in read(root)[1]
    veto(root)
    snapshot, causes = read(root)
    cause = causes["HOOK_VETO"]
    assert (
        cause.sentence == "The hook compliance vetoed the gate planning_done: No licence is named"
    )
    assert (cause.remedy, cause.others) == ("reject_gate", ("approve_gate",))
    assert [need.key for need in snapshot.needs if need.code == "GATE"] == list(cause.explains)
    veto(root, verdict="allow", orchestrator_action="continued")  # it was asked again
    assert "HOOK_VETO" not in read(root)[1]


def test_a_result_that_a_hook_vetoed_is_not_advised_to_be_accepted(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, of_state=making.under_way())
    making.write(staged(root), making.result(phase_transition_request=None))
    veto(root, hook_phase="before_acceptance", turn_id="turn_other")
    veto(
        root, hook_phase="before_acceptance", timestamp="2026-02-28T10:00:00Z"
    )  # an earlier attempt
    veto(root)  # about a gate
    assert "HOOK_VETO" not in read(root)[1]
    veto(root, hook_phase="before_acceptance")
    snapshot, causes = read(root)
    cause = causes["HOOK_VETO"]
    assert cause.sentence == "The hook compliance vetoed the result of pm: No licence is named"
    assert (cause.remedy, cause.others) == ("reject_turn", ("accept_turn",))
    assert [need.key for need in snapshot.needs if need.code == "STAGED"] == list(cause.explains)
    veto(root, hook_phase="before_acceptance", verdict="allow", orchestrator_action="continued")
    assert "HOOK_VETO" not in read(root)[1]


def test_an_attempt_that_prints_nothing_is_not_blamed_for_what_the_former_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = playing.repository(tmp_path / "lamp")
    script = tmp_path / "agent.py"
    script.write_text("import sys; print('no such model', file=sys.stderr); sys.exit(3)")
    command = f"pm={sys.executable} {script}"
    acted("init", root, "--agent", command)
    assert governed(["step", str(root)]) == 1
    assert "no such model" in read(root)[1]["TURN_GHOST"].sentence
    script.write_text("import sys; sys.exit(4)")
    assert governed(["step", str(root)]) == 1
    headline = read(root)[1]["TURN_GHOST"].sentence
    assert "exit code 4" in headline and "no such model" not in headline, headline


def test_a_resync_over_a_damaged_workstream_does_not_deny_a_crossing(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    assert not approve(tmp_path).failed
    place = tmp_path / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_text("{")
    done = synchronise(tmp_path, NOW)
    assert done.failed and done.failed[0].startswith("web: its state cannot be read")
    assert any("plan-sync was already crossed" in each for each in done.messages)
    said = " ".join((*done.messages, *done.failed, *read(tmp_path)[0].headline.split()))
    said += " ".join(cause.sentence for cause in read(tmp_path)[1].values())
    said += " ".join(event.summary for event in read(tmp_path)[0].events)
    assert "is still not crossed" not in said and "no workstream crossed" not in said
    assert "no workstream crossed" not in said
    place.write_bytes(good)
    assert not synchronise(tmp_path, NOW).failed


def test_after_an_approval_you_are_waited_for_since_then(tmp_path: Path) -> None:
    """The workstreams' turns were accepted long before; nobody waited for you meanwhile."""
    begin(tmp_path)
    multi.all_ask(tmp_path)
    assert not approve(tmp_path).failed
    approved = datetime.fromisoformat(multi.state(tmp_path)["barriers"]["plan-sync"]["approved_at"])
    snapshot, _ = read(tmp_path, approved + timedelta(seconds=1))
    assert len(snapshot.turns) == len(NAMES)
    assert {turn.since for turn in snapshot.turns} == {approved}


def test_after_an_answer_you_are_waited_for_since_then(tmp_path: Path) -> None:
    root = by_humans(tmp_path / "lamp")
    hand_in(root)
    began = datetime.now(UTC)
    acted("escalate", root, "--reason", "Doubt", *YES)
    acted("unblock", root, *YES)
    (turn,) = read(root)[0].turns
    assert turn.since is not None and turn.since >= began - timedelta(milliseconds=1)


@pytest.mark.parametrize("more", ["", "Or that one? " * 60 + "The end."])
def test_a_question_is_said_once_and_shown_whole(tmp_path: Path, more: str) -> None:
    root = by_humans(tmp_path / "lamp")
    question = f"Which bulb? {more}".strip()
    hand_in(root, status="needs_human", needs_human_reason=question)
    cause = read(root)[1]["RUN_BLOCKED"]
    assert cause.sentence.count("Which bulb?") == 1
    assert cause.evidence == ((question,) if more else ())
    assert "unblock --comment" in cause.instruction
