"""What a turn asks for, and the gate that it has to pass: asked, approved, rejected.

Source: governed protocol specification, "Phase model": every transition of a phase, and the
completion, pass through a human gate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from acp_core.model.errors import Refused
from acp_core.protocols.governed.schema import Object, number, obj, objects, text
from acp_core.protocols.governed.state import (
    Move,
    by_acp,
    copied,
    event,
    exit_gate,
    ledger_line,
    phases,
)
from acp_core.protocols.governed.state.blocks import blocked

NO_PROGRESS = 3  # turns in a row that may fail at one gate for the same reasons


class Predicate(NamedTuple):
    """A condition of a gate that no human decides: ``reason`` says why it is not met.

    ``unknown``: whether it is met cannot be found out at this moment.
    """

    kind: str  # "file" or "verification"
    name: str
    met: bool
    reason: str = ""
    missing: bool = False
    unknown: bool = False


class Request(NamedTuple):
    """What is asked for: to go to the phase ``to``, or ("") to complete the run."""

    kind: str
    gate: str
    phase: str
    to: str
    turn: str


def asked(
    config: Object,
    move: Move,
    result: Object,
    turn: Object,
    predicates: tuple[Predicate, ...],
    at: str,
) -> Move:
    """The run after a completed turn: the gate fails, waits for a human, or nothing is asked."""
    request, wrong = _request(config, move.state, result, turn)
    if request is None:
        return move
    unmet = [p for p in predicates if not p.met]
    reasons = wrong or [f"{p.name}: {p.reason}" for p in unmet]
    if reasons:
        return _failed(move, request, reasons, unmet, turn, at)
    new = copied(move.state)
    new |= {"last_gate_failure": None, "non_progress_signature": None, "non_progress_count": 0}
    move = move._replace(state=new)
    barrier = text(obj(new, "barriers"), request.phase, 200)
    if barrier:
        return _at_barrier(move, request, barrier, at)
    rule = objects(config.get("gates")).get(request.gate, {})
    if by_acp(new) or rule.get("requires_human_approval") is True:
        return waiting(move, request, at)
    return passed(move, request, at, "auto")


def _request(
    config: Object, state: Object, result: Object, turn: Object
) -> tuple[Request | None, list[str]]:
    order, phase = phases(config), text(state, "phase", 200)
    to = text(result, "phase_transition_request", 200)
    completes = result.get("run_completion_request") is True
    if not to and not completes:
        return None, []
    kind = "phase_transition" if to else "run_completion"
    request = Request(kind, exit_gate(config, phase), phase, to, str(turn.get("turn_id")))
    place = order.index(phase) if phase in order else -1
    if completes and place != len(order) - 1:
        return request, [
            f'the run can complete only in its last phase "{order[-1]}", not in "{phase}"'
        ]
    if to and (to not in order or order.index(to) != place + 1):
        return request, [f'"{to}" is not the phase after "{phase}"']
    return request, []


def _failed(
    move: Move, request: Request, reasons: list[str], unmet: list[Predicate], turn: Object, at: str
) -> Move:
    new = copied(move.state)
    failure = {
        "gate_type": request.kind,
        "gate_id": request.gate,
        "phase": request.phase,
        "from_phase": request.phase,
        "to_phase": request.to or None,
        "requested_by_turn": request.turn,
        "failed_at": at,
        "queued_request": False,
        "reasons": reasons,
        "missing_files": [p.name for p in unmet if p.missing],
        "missing_verification": any(p.kind == "verification" for p in unmet),
    }
    signature = f"{request.gate}::::{'; '.join(reasons)}"
    times = (number(new, "non_progress_count") or 0) if (
        new.get("non_progress_signature") == signature
    ) else 0  # fmt: skip
    new |= {
        "last_gate_failure": failure,
        "non_progress_signature": signature,
        "non_progress_count": times + 1,
    }
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {request.gate: "failed"}
    said = event(
        new, "gate_failed", at, turn, gate_id=request.gate, from_phase=request.phase,
        to_phase=request.to or None, reasons=reasons,
    )  # fmt: skip
    line = ledger_line(new, "gate_failure", at, **failure)
    move = move._replace(state=new).adding(ledger=(line,), events=(said,))
    if times + 1 < NO_PROGRESS:
        return move
    detail = f"{times + 1} consecutive turns failed at {request.gate}: {'; '.join(reasons)}"
    return blocked(move, f"non_progress:{request.gate}", "non_progress", detail, request.turn, at)


def waiting(move: Move, request: Request, at: str) -> Move:
    """The run after ``move``, paused at the gate that it asks to pass."""
    new = copied(move.state)
    new |= {"status": "paused", "blocked_on": f"human_approval:{request.gate}"}
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {request.gate: "pending"}
    payload: Object = {"gate_type": request.kind, "gate_id": request.gate}
    if request.to:
        new["pending_phase_transition"] = {
            "from": request.phase,
            "to": request.to,
            "gate": request.gate,
            "requested_by_turn": request.turn,
            "requested_at": at,
        }
        payload |= {"from": request.phase, "to": request.to}
    else:
        new["pending_run_completion"] = {
            "gate": request.gate,
            "requested_by_turn": request.turn,
            "requested_at": at,
        }
    said = event(new, "gate_pending", at, **payload)
    return move._replace(state=new).adding(events=(said,))


def _at_barrier(move: Move, request: Request, barrier: str, at: str) -> Move:
    """The run waits for the others of its initiative: no approval of its own opens the way."""
    new = copied(move.state)
    new["barrier_request"] = {
        "barrier": barrier,
        "gate_type": request.kind,
        "gate": request.gate,
        "from": request.phase,
        "to": request.to or None,
        "requested_by_turn": request.turn,
        "requested_at": at,
    }
    detail = f"waits at the barrier {barrier} for the initiative's other workstreams"
    action = "Approve the barrier with acp governed coordinator approve-barrier"
    return blocked(
        move._replace(state=new), f"barrier:{barrier}", "barrier", detail, request.turn, at,
        action=action,
    )  # fmt: skip


def passed(move: Move, request: Request, at: str, trigger: str) -> Move:
    """The gate is passed: the next phase begins, or the run is completed."""
    new = copied(move.state)
    new |= {
        "status": "active",
        "blocked_on": None,
        "blocked_reason": None,
        "pending_phase_transition": None,
        "pending_run_completion": None,
        "last_gate_failure": None,
        "next_recommended_role": None,
    }
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {request.gate: "passed"}
    if not request.to:
        new |= {"status": "completed", "completed_at": at}
        said = event(new, "run_completed", at, completed_at=at, trigger=trigger)
        return move._replace(state=new).adding(events=(said,))
    new |= {"phase": request.to, "phase_entered_at": at}
    payload: dict[str, Any] = {"from": request.phase, "to": request.to, "gate_id": request.gate}
    payload |= {"trigger": trigger, "requested_by_turn": request.turn}
    said = event(new, "phase_entered", at, **payload)
    return move._replace(state=new).adding(events=(said,))


def pending(state: Object, kind: str = "") -> Request:
    """The gate that waits for a human.

    Args:
        state: the run's.
        kind: only a gate of this kind, "phase_transition" or "run_completion".

    Raises:
        Refused: none waits.
    """
    to, done = obj(state, "pending_phase_transition"), obj(state, "pending_run_completion")
    if to and kind in ("", "phase_transition"):
        found = Request("phase_transition", text(to, "gate", 200), text(to, "from", 200),
                        text(to, "to", 200), text(to, "requested_by_turn", 200))  # fmt: skip
    elif done and kind in ("", "run_completion"):
        found = Request("run_completion", text(done, "gate", 200), text(state, "phase", 200), "",
                        text(done, "requested_by_turn", 200))  # fmt: skip
    elif (on := text(state, "blocked_on", 200)).startswith("barrier:"):
        raise Refused(
            f"The run waits at the barrier {on.removeprefix('barrier:')} of its initiative, and only "
            "that one's gate opens it: acp governed coordinator approve-barrier"
        )
    else:
        name = {"phase_transition": "phase transition", "run_completion": "run completion"}
        raise Refused(f"No pending {name.get(kind, 'gate')} to approve or reject")
    if state.get("status") not in ("paused", "blocked"):
        raise Refused(
            f'Cannot decide about the gate: status is "{state.get("status")}", expected "paused"'
            ' or "blocked"'
        )
    return found


def approved(
    state: Object, request: Request, by: str, comment: str, unmet: tuple[str, ...], at: str
) -> Move:
    """A human opens the gate. ``unmet`` are its predicates that did not hold at that moment."""
    line = _decided(state, "gate_approved", request, by, comment, at)
    if unmet:
        line["unmet"] = list(unmet)
    move = passed(Move(copied(state)), request, at, "human_approved")
    payload: dict[str, Any] = {"gate_id": request.gate, "gate_type": request.kind, "by": by}
    if request.to:
        payload |= {"from": request.phase, "to": request.to}
    payload["requested_by_turn"] = request.turn
    approval = event(move.state, "gate_approved", at, **payload)
    return move._replace(ledger=(line,), events=(approval, *move.events))


def rejected_gate(
    state: Object, request: Request, by: str, comment: str, role: str, at: str
) -> Move:
    """A human sends the phase back to work; the role that asked goes on.

    Raises:
        Refused: no comment says what is missing.
    """
    if not comment.strip():
        raise Refused("a rejection needs a comment that says what is missing")
    line = _decided(state, "gate_rejected", request, by, comment, at)
    new = copied(state)
    new |= {
        "status": "active",
        "blocked_on": None,
        "blocked_reason": None,
        "pending_phase_transition": None,
        "pending_run_completion": None,
        "next_recommended_role": role or None,
    }
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {request.gate: "failed"}
    said = event(
        new, "gate_rejected", at, gate_id=request.gate, gate_type=request.kind, reason=comment,
        by=by,
    )  # fmt: skip
    return Move(new, (line,), (said,))


def _decided(state: Object, kind: str, request: Request, by: str, comment: str, at: str) -> Object:
    return ledger_line(
        state, kind, at, gate_id=request.gate, gate_type=request.kind,
        **{"from": request.phase, "to": request.to or None},
        requested_by_turn=request.turn, by=by, comment=comment,
    )  # fmt: skip
