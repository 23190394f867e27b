"""A state that is made again from the logs of a run: each word of it is one that a log tells."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.write import restore
from tests.protocols.governed import making
from tests.protocols.governed.making import RUN, TURN, Object

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
HOME = ".agentxchain"


def run_of(
    root: Path,
    *history: Object,
    events: tuple[Object, ...] = (),
    ledger: tuple[Object, ...] = (),
    **config: object,
) -> Run:
    """A run of which nothing but its configuration and its logs is left."""
    making.configure(root, making.config(**config))
    for name, lines in (("history", history), ("events", events), ("decision-ledger", ledger)):
        making.write_lines(root / f"{HOME}/{name}.jsonl", *lines)
    return read_run(root)


def event(kind: str, minute: int, phase: str = "implementation", **more: object) -> Object:
    return {"event_type": kind, "run_id": RUN, "phase": phase, "status": "active", "payload": {},
            "timestamp": f"2026-03-01T10:{minute:02}:00.000Z"} | more  # fmt: skip


def state_of(run: Run, *, ours: bool = False) -> Object:
    return restore.rebuilt_from_logs(run, NOW, ours=ours).state


def test_the_phase_is_that_of_the_last_turn_or_where_its_gate_led(tmp_path: Path) -> None:
    built = making.accepted(phase="implementation", phase_transition_request=None)
    assert state_of(run_of(tmp_path / "1", built))["phase"] == "implementation"
    nowhere = {key: value for key, value in built.items() if key != "phase"}
    assert state_of(run_of(tmp_path / "2", nowhere))["phase"] == "planning"
    gate: Object = {"type": "gate_approved", "run_id": RUN, "requested_by_turn": TURN}
    for number, (more, phase, status) in enumerate(
        (({"to": "implementation"}, "implementation", "active"), ({}, "planning", "completed")), 3
    ):
        run = run_of(tmp_path / str(number), making.accepted(), ledger=(gate | more,))
        state = state_of(run)
        assert (state["phase"], state["status"]) == (phase, status)


@pytest.mark.parametrize(
    ("asks", "waits"),
    [
        ({}, "pending_phase_transition"),
        ({"phase_transition_request": None, "run_completion_request": True}, "pending_run_completion"),
        ({"phase_transition_request": None}, ""),
    ],
)  # fmt: skip
def test_a_gate_waits_where_the_last_turn_asked_for_it(
    tmp_path: Path, asks: Object, waits: str
) -> None:
    long = "t" * 300
    state = state_of(run_of(tmp_path, making.accepted(turn_id=long, **asks)))
    assert state["status"] == ("paused" if waits else "active")
    found = {
        key for key in ("pending_phase_transition", "pending_run_completion") if state.get(key)
    }
    assert found == ({waits} if waits else set())
    if waits:
        assert len(state[waits]["requested_by_turn"]) == 200


def test_why_a_turn_needed_a_human_is_one_short_line(tmp_path: Path) -> None:
    last = making.accepted(status="needs_human", needs_human_reason="x" * 400)
    state = state_of(run_of(tmp_path, last))
    assert state["status"] == "blocked" and len(state["blocked_on"]) == len("human:") + 300


def test_when_a_phase_was_entered_is_told_by_the_event_of_entering_it(tmp_path: Path) -> None:
    to = {"payload": {"to": "implementation"}}
    events = (
        event("run_started", 1, "planning"),
        event("gate_approved", 5, **to),
        event("phase_entered", 6, **to),
        event("turn_dispatched", 7, **to),
    )
    state = state_of(run_of(tmp_path, events=events))
    assert state["created_at"] == "2026-03-01T10:01:00.000Z"
    assert state["phase_entered_at"] == "2026-03-01T10:06:00.000Z"


@pytest.mark.parametrize(
    ("proposed", "next_role"), [("dev", "dev"), ("ghost", None), (["dev"], None), (None, None)]
)
def test_only_a_role_that_there_is_comes_next(
    tmp_path: Path, proposed: object, next_role: str | None
) -> None:
    last = making.accepted(phase_transition_request=None, proposed_next_role=proposed)
    assert state_of(run_of(tmp_path, last))["next_recommended_role"] == next_role


def test_who_made_a_run_is_not_made_up(tmp_path: Path) -> None:
    """It was acp where acp made it, or where nothing but acp writes such a configuration."""
    rules = {"rules": {"mandatory_objections": True}}
    for number, (recorded, config, ours, by) in enumerate((
        ("agentxchain", rules, False, "agentxchain"), ("agentxchain", {}, True, "acp"),
        ("acp", {}, False, None), ("acp", rules, False, "acp"), (None, rules, False, "acp"),
        (None, {}, False, None),
    )):  # fmt: skip
        payload = {"provenance": {"created_by": recorded}} if recorded else {}
        run = run_of(
            tmp_path / str(number), events=(event("run_started", 1, payload=payload),), **config
        )
        assert state_of(run, ours=ours)["provenance"]["created_by"] == by, (recorded, config)
