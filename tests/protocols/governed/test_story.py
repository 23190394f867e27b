"""Where the time of a governed run went, and what can be counted of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.model.past import PastTurn
from tests.protocols.governed import making
from tests.protocols.governed.acting import Governed, open_folder
from tests.protocols.governed.making import Object

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PM, DEV = "turn_pm", "turn_dev"


def at(minute: int) -> str:
    return f"2026-03-01T{10 + minute // 60}:{minute % 60:02d}:00.000Z"


def event(minute: int, kind: str, turn: str = "", role: str = "", **payload: object) -> Object:
    of = {"turn_id": turn, "role_id": role} if turn else None
    return {"event_type": kind, "timestamp": at(minute), "turn": of, "payload": payload}


def decision(minute: int, number: int, turn: str) -> Object:
    return {"id": f"DEC-{number:03d}", "turn_id": turn, "role": "pm", "category": "scope",
            "statement": "One lamp.", "rationale": "Hall.", "created_at": at(minute)}  # fmt: skip


def told(minute: int, kind: str, **more: object) -> Object:
    return {"type": kind, "at": at(minute), "run_id": making.RUN, **more}


EVENTS = (
    event(0, "run_started"),
    event(2, "turn_dispatched", PM, "pm"),
    event(7, "turn_rejected", PM, "pm", attempt=1),
    event(8, "turn_dispatched", PM, "pm"),
    event(20, "turn_accepted", PM, "pm"),
    event(20, "gate_pending", gate_id="planning_done"),
    event(50, "gate_approved", gate_id="planning_done"),
    event(50, "phase_entered", to="implementation"),
    event(55, "turn_dispatched", DEV, "dev"),
    event(65, "run_blocked", blocked_on="escalation:operator:licence"),
    event(65, "escalation_raised"),
    event(85, "human_escalation_resolved"),
)
LEDGER = (
    decision(20, 1, PM),
    decision(20, 2, PM),
    told(50, "gate_approved", gate_id="planning_done", by="Ann", comment="Good."),
)


def opened(
    root: Path, *events: Object, ledger: tuple[Object, ...] = LEDGER, **of_state: object
) -> Governed:
    """A run of which these events tell, in its second phase with the developer at work."""
    turns = {DEV: making.turn(turn_id=DEV, assigned_role="dev")}
    state = making.state(**{"phase": "implementation", "active_turns": turns, **of_state})
    resolved = making.result()["objections"][0] | {"status": "resolved"}
    first = making.accepted(turn_id=PM, accepted_at=at(20))
    first["objections"].append({"id": "OBJ-002", "severity": "low", "statement": "Dim."})
    first["objections"].append(resolved)
    making.make_run(root, of_state=state, history=(first,))
    making.write_lines(root / ".agentxchain/events.jsonl", *events)
    making.write_lines(root / ".agentxchain/decision-ledger.jsonl", *ledger)
    run = open_folder(root)
    run.refresh(NOW)
    return run


def minutes(turn: PastTurn) -> tuple[str, int, int | None, str, str]:
    """Who, from which minute until which, what ended it, in which phase."""
    began = datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert turn.since is not None
    since = int((turn.since - began).total_seconds()) // 60
    until = int((turn.ended - began).total_seconds()) // 60 if turn.ended else None
    return turn.participant, since, until, turn.kind, turn.phase


def test_every_wait_is_somebodys_turn_and_ends_with_an_event(tmp_path: Path) -> None:
    run = opened(tmp_path, *EVENTS)
    assert [minutes(turn) for turn in run.story().turns] == [
        ("you", 0, 2, "turn_dispatched", "planning"),
        ("pm", 2, 7, "turn_rejected", "planning"),
        ("you", 7, 8, "turn_dispatched", "planning"),
        ("pm", 8, 20, "turn_accepted", "planning"),
        ("you", 20, 50, "gate_approved", "planning"),
        ("you", 50, 55, "turn_dispatched", "implementation"),
        ("dev", 55, 65, "", "implementation"),
        ("you", 65, 85, "human_escalation_resolved", "implementation"),
        ("dev", 85, None, "", "implementation"),
    ]
    assert [turn.round for turn in run.story().turns if turn.participant == "pm"] == [1, 2]
    assert list(run.durations("pm")) == [5 * 60, 12 * 60]
    known = {event.id for event in run.refresh(NOW).events}
    named = [(turn.since_event, turn.event) for turn in run.story().turns]
    assert all(since in known and (event is None or event in known) for since, event in named)


def test_nobody_is_waited_for_at_a_barrier_nor_after_the_end(tmp_path: Path) -> None:
    barrier = (*EVENTS[:5], event(20, "run_blocked", blocked_on="barrier:plan-sync"))
    waits = opened(
        tmp_path / "barrier", *barrier, ledger=LEDGER[:2], status="blocked", active_turns={},
        blocked_on="barrier:plan-sync",
    ).story().turns  # fmt: skip
    assert minutes(waits[-1])[:3] == ("pm", 8, 20)
    ended = (*EVENTS, event(90, "turn_accepted", DEV, "dev"), event(95, "run_completed"))
    turns = opened(tmp_path / "ended", *ended, status="completed").story().turns
    assert minutes(turns[-1]) == ("you", 90, 95, "", "implementation")
    assert all(turn.ended for turn in turns)


def test_the_last_phase_of_a_completed_run_lasts_until_its_end(tmp_path: Path) -> None:
    ended = (*EVENTS, event(95, "run_completed"), event(99, "turn_checkpointed"))
    run = opened(tmp_path, *ended, status="completed", active_turns={})
    (visit,) = next(each.visits for each in run.refresh(NOW).phases if each.id == "implementation")
    assert visit.entered is not None and visit.left is not None
    assert (visit.left - visit.entered).total_seconds() == 45 * 60


def test_a_turn_that_was_given_up_lasts_no_longer(tmp_path: Path) -> None:
    run = opened(tmp_path, *EVENTS[:-1], active_turns={})
    dropped = {"timestamp": at(85), "decision": "escalation_resolved", "turn_dropped": True}
    ledger = tmp_path / ".agentxchain/decision-ledger.jsonl"
    ledger.write_text(ledger.read_text() + json.dumps(dropped) + "\n")
    making.write_lines(tmp_path / ".agentxchain/events.jsonl", *EVENTS)
    run.refresh(NOW)
    assert [minutes(turn) for turn in run.story().turns][-2:] == [
        ("you", 65, 85, "human_escalation_resolved", "implementation"),
        ("you", 85, None, "", "implementation"),
    ]


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"turn_id": 1}, [{"turn_id": "t"}]])
@pytest.mark.parametrize("field", ["event_type", "timestamp", "turn", "payload"])
def test_events_of_any_content_tell_a_story(tmp_path: Path, field: str, value: object) -> None:
    damaged = [each | {field: value} for each in EVENTS]
    for number in (0, 1, 4, 9):
        events = [*EVENTS[:number], damaged[number], *EVENTS[number + 1 :]]
        story = opened(tmp_path / str(number), *events).story()
        assert all(turn.kind == "" or turn.event for turn in story.turns)
    assert opened(tmp_path / "all", *damaged).story().counts
