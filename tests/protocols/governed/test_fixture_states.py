"""Twenty places at which a run or an initiative can stand, each read as what it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core import model
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import house, making, test_stuck
from tests.protocols.governed.acting import open_folder
from tests.protocols.governed.making import TURN, Object
from tests.protocols.governed.test_read import rows

NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)
LATER = "2026-03-01T11:30:00Z"
Make = Callable[[Path], object]
ALL = house.REPOS


class Stands(NamedTuple):
    """How something is made, and what must be read of it.

    ``waited`` are the participants who are waited for, ``does`` a part of what the first of them
    is waited for; ``gate`` is the gate that waits for a human; ``open`` and ``resolved`` are the
    ids of objections; ``stuck`` are the causes, each as its group and code.
    """

    make: Make
    phase: str
    status: str
    waited: tuple[str, ...] = ()
    does: str = ""
    gate: str = ""
    open: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()


def objection(number: int, status: str = "raised", severity: str = "low") -> Object:
    id = f"OBJ-{number:03d}"
    return {"id": id, "severity": severity, "statement": f"Doubt {number}.", "status": status}


def done(role: str, phase: str, at: int, *objections: Object, **more: object) -> Object:
    """An accepted turn, at a minute past ten."""
    return making.accepted(
        turn_id=f"turn_{role}_{at}", role=role, phase=phase, objections=list(objections),
        accepted_at=f"2026-03-01T10:{at:02d}:00Z", **more,
    )  # fmt: skip


PLANNED = done("pm", "planning", 10, objection(1, severity="medium"))
BUILT = done("dev", "implementation", 20, objection(10))
CHECKED = done("qa", "verification", 30, objection(20), run_completion_request=True)


def run(*history: Object, staged: bool = False, **of_state: object) -> Make:
    """A run whose state says this; ``staged`` puts a result beside its turn."""

    def make(root: Path) -> None:
        making.make_run(root, of_state=making.state(**of_state), history=history)
        if staged:
            path = root / f".agentxchain/staging/{TURN}/turn-result.json"
            making.write(path, making.result())

    return make


def taking(**more: object) -> Object:
    """The turns of a run in which one is under way."""
    return {TURN: making.turn(**{"deadline_at": LATER, **more})}


def block(on: str, category: str, action: str, detail: str = "") -> Object:
    recovery = {"typed_reason": category, "owner": "human", "recovery_action": action}
    recovery["detail"] = detail or on
    reason = {"category": category, "recovery": recovery, "blocked_at": making.AT}
    return {"status": "blocked", "blocked_on": on, "blocked_reason": reason}


def failed(gate: str, phase: str) -> Object:
    return {"gate_id": gate, "phase": phase, "reasons": ["Nobody signed."]}


WAITS = {
    "status": "paused",
    "blocked_on": "human_approval:planning_done",
    "pending_phase_transition": {
        "from": "planning",
        "to": "implementation",
        "gate": "planning_done",
        "requested_by_turn": "turn_pm_10",
    },
}
NOT_TAKEN = f"Turn {TURN} was dispatched 136360s ago and no program took it."
GHOST = block(f"turn:failed_start:{TURN}", "ghost_turn", NOT_TAKEN, NOT_TAKEN) | {
    "active_turns": taking(status="failed_start", failed_start_reason="runtime_spawn_failed")
}
EVERYBODY = "all_repos_accepted"
PENDING = (EVERYBODY, "pending", ())
REACHED = (EVERYBODY, "satisfied", ALL)
SHARED = ("shared_human_gate", "pending", ())
EMPTY = "[object Object]"
BUILDING, CHECKING = making.state(phase="implementation"), making.state(phase="verification")


def at_work(root: Path) -> None:
    """One repository has planned, one is planning, one has not begun."""
    streams = house.everywhere(making.state())
    streams["hall"] = (BUILDING, (PLANNED,))
    streams["attic"] = (making.state(active_turns=taking()), ())
    partly = (EVERYBODY, "partially_satisfied", ("hall",))
    house.make_house(root, streams, barriers=(partly, PENDING, SHARED), context=EMPTY)


def torn(root: Path) -> None:
    """The state of one repository was cut off while it was written."""
    streams = {"hall": (BUILDING, (PLANNED,)), "attic": (making.state(), ())}
    partly = (EVERYBODY, "partially_satisfied", ("hall",))
    house.make_house(root, streams, barriers=(partly, PENDING, PENDING))
    (root / "repos/attic/.agentxchain/state.json").write_text('{"run_id": "run_')


def initiative(
    streams: dict[str, tuple[Object, tuple[Object, ...]]],
    *barriers: tuple[str, str, tuple[str, ...]],
    **of_state: object,
) -> Make:
    return lambda root: house.make_house(root, streams, barriers=barriers, **of_state)


CROSS_GATE = {
    "status": "paused",
    "pending_gate": {
        "gate_type": "phase_transition", "gate": "phase_transition:planning->implementation",
        "from": "planning", "to": "implementation", "required_repos": list(ALL),
        "requested_at": making.AT,
    },
}  # fmt: skip
COMPLETED = making.state(phase="verification", status="completed")
EACH_1 = ("OBJ-001",) * 3
EACH_10 = ("OBJ-001", "OBJ-010") * 3
EACH_20 = ("OBJ-001", "OBJ-010", "OBJ-020") * 3

PLACES = {
    "single: not begun": Stands(
        run(status="idle", run_id=None), "planning", "active", ("you",), "start the run",
    ),
    "single: a turn is given out": Stands(
        run(active_turns=taking()), "planning", "active", ("pm",), "take its turn",
    ),
    "single: its result is staged": Stands(
        run(active_turns=taking(), staged=True),
        "planning", "active", ("you",), "accept or reject the staged result of pm",
    ),
    "single: a gate waits": Stands(
        run(PLANNED, **WAITS), "planning", "active", ("you",), "approve or reject",
        gate="planning_done", open=("OBJ-001",),
    ),
    "single: the next phase was entered by itself": Stands(
        run(PLANNED, BUILT, phase="verification", next_recommended_role="qa"),
        "verification", "active", ("you",), "dispatch the next turn to qa",
        open=("OBJ-001", "OBJ-010"),
    ),
    "single: completed": Stands(
        run(PLANNED, BUILT, CHECKED, phase="verification", status="completed"),
        "completed", "completed", open=("OBJ-001", "OBJ-010", "OBJ-020"),
    ),
    "single: rejected once, given out again": Stands(
        run(active_turns=taking(attempt=2, last_rejection={"reason": "No doubt raised"})),
        "planning", "active", ("pm",), "take its turn",
    ),
    "single: rejected too often": Stands(
        run(active_turns=taking(status="failed", attempt=2),
            **block("escalation:retries-exhausted:pm", "retries_exhausted", "Decide.")),
        "planning", "blocked", ("you",), "decide", stuck=("E1:RUN_BLOCKED",),
    ),
    "single: the operator stopped it": Stands(
        run(PLANNED, phase="implementation", active_turns=taking(assigned_role="dev"),
            **block("escalation:operator:licence", "operator_escalation", "Ask the lawyer.")),
        "implementation", "blocked", ("you",), "ask the lawyer", open=("OBJ-001",),
        stuck=("E1:RUN_BLOCKED",),
    ),
    "single: objections stand, one escalated": Stands(
        run(PLANNED, BUILT,
            done("qa", "verification", 30, objection(30), objection(31, severity="blocking"),
                 objection(32, "escalated", "high")),
            phase="verification", last_gate_failure=failed("verification_done", "verification")),
        "verification", "active", ("you",), "dispatch the next turn to qa",
        open=("OBJ-031", "OBJ-032", "OBJ-001", "OBJ-010", "OBJ-030"), stuck=("D1:GATE_FAILED",),
    ),
    "single: the gate's files do not say so": Stands(
        run(PLANNED, last_gate_failure=failed("planning_done", "planning")),
        "planning", "active", ("you",), "dispatch the next turn to pm", open=("OBJ-001",),
        stuck=("D1:GATE_FAILED",),
    ),
    "single: two turns changed the same": Stands(
        run(PLANNED, BUILT, phase="implementation", staged=True, active_turns=taking(
            status="conflicted",
            conflict_state={"conflict_error": {"conflicting_files": ["src/lamp.py"]}})),
        "implementation", "active", ("you",), "resolve the conflict",
        open=("OBJ-001", "OBJ-010"), stuck=("C1:TURN_CONFLICTED",),
    ),
    "single: another role resolved objections": Stands(
        run(PLANNED, BUILT,
            done("qa", "verification", 30, objection(31, severity="blocking"), objection(32)),
            done("dev", "verification", 40, objection(31, "resolved"), objection(32, "resolved")),
            phase="verification", next_recommended_role="qa"),
        "verification", "active", ("you",), "dispatch the next turn to qa",
        open=("OBJ-001", "OBJ-010"), resolved=("OBJ-031", "OBJ-032"),
    ),
    "single: a turn that nobody took": Stands(
        run(**GHOST), "planning", "blocked", ("you",),
        "dispatch the turn of pm again: it failed to start",
        stuck=("B1:TURN_GHOST", "E1:RUN_BLOCKED"),
    ),
    "multi: begun": Stands(
        initiative(house.everywhere(making.state()), PENDING, PENDING, SHARED),
        "planning", "active", ("you",), "let the initiative take its next step",
    ),
    "multi: a barrier is reached by one": Stands(
        at_work, "planning", "active", ("attic",), "take its turn", open=("OBJ-001",),
        stuck=("C3:CONTEXT_EMPTY",),
    ),
    "multi: all are there, the gate waits": Stands(
        initiative(house.everywhere(BUILDING, (PLANNED,)), REACHED, PENDING, SHARED, **CROSS_GATE),
        "planning", "active", ("you",), "approve or reject the cross-repo gate",
        gate="from planning to implementation", open=EACH_1,
        stuck=("D9:phase_transition",),
    ),
    "multi: completed": Stands(
        initiative(house.everywhere(COMPLETED, (PLANNED, BUILT, CHECKED)),
                   REACHED, REACHED, REACHED, status="completed", phase="verification"),
        "completed", "completed", open=EACH_20,
    ),
    "multi: a shared gate that nothing asks for": Stands(
        initiative(house.everywhere(CHECKING, (PLANNED, BUILT)), REACHED, REACHED, SHARED,
                   phase="verification"),
        "verification", "active", ("you",), "no step is left", open=EACH_10,
        stuck=("D5:BARRIER_NO_GATE",),
    ),
    "multi: a state is torn": Stands(
        torn, "planning", "active", ("you",), "repair the state of attic", open=("OBJ-001",),
        stuck=("A3:CHILD_STATE",),
    ),
}  # fmt: skip


def looked(root: Path) -> tuple[model.Snapshot, tuple[str, ...]]:
    """What is read, and the causes of its standing still."""
    opened = open_folder(root)
    snapshot = opened.refresh(NOW)
    causes = opened.causes(DiagnosisContext(snapshot, Clock(NOW)))
    return snapshot, tuple(":".join(cause.key.split(":")[:2]) for cause in causes)


def objections(snapshot: model.Snapshot, *, open: bool) -> tuple[str, ...]:
    """The ids of the objections that stand, or of those that were resolved."""
    place = rows(snapshot, "objections")
    multi = snapshot.key.endswith("multi")
    number, ended = (1, 3) if multi else (0, 2)
    shown = ((row.cells[number], row.cells[ended] != "resolved") for row in place)
    return tuple(id for id, stands in shown if stands is open)


def waiting_gate(snapshot: model.Snapshot, multi: bool) -> str:
    """The gate that the panel says waits for a human."""
    shown = rows(snapshot, "gate")
    if multi:
        return shown[0].cells[0] if shown else ""
    return next((row.cells[1] for row in shown if row.cells[0] == "gate"), "")


@pytest.mark.parametrize("name", list(PLACES))
def test_where_it_stands_is_read_and_what_holds_it_is_named(name: str, tmp_path: Path) -> None:
    place, kind = PLACES[name], name.partition(":")[0]
    place.make(tmp_path / kind)
    snapshot, stuck = looked(tmp_path / kind)

    assert snapshot.phase == place.phase
    assert snapshot.status.value == place.status
    assert tuple(turn.participant for turn in snapshot.turns) == place.waited
    assert place.does in (snapshot.turns[0].what if snapshot.turns else "")
    assert waiting_gate(snapshot, kind == "multi") == place.gate
    assert ("GATE" in {need.code for need in snapshot.needs}) is bool(place.gate)
    assert objections(snapshot, open=True) == place.open
    assert objections(snapshot, open=False) == place.resolved
    assert stuck == place.stuck


def test_context_that_tells_agents_nothing_is_a_cause_while_they_work(tmp_path: Path) -> None:
    test_stuck.context(EMPTY)(tmp_path / "stuck")
    test_stuck.context("DEC-001 One lamp.")(tmp_path / "sound")
    assert "C3:CONTEXT_EMPTY" in looked(tmp_path / "stuck")[1]
    assert "C3:CONTEXT_EMPTY" not in looked(tmp_path / "sound")[1]
