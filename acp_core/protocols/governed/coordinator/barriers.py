"""What a barrier makes of a workstream's run: it holds it, lets it cross, or sends it back.

Pure functions of a run's state; nothing here reads or writes files. A workstream reaches a barrier
when its work in the barrier's phase is accepted and it asks to leave that phase (in the last phase:
to complete). Source: governed protocol specification, "Gates and resync". Standard library only.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.run import Run
from acp_core.protocols.governed.schema import Object, obj, objects, text

HELD = "barrier:"
ACTION = "Approve the barrier with acp governed coordinator approve-barrier"


class Request(NamedTuple):
    """What a run asks for: to go to ``to``, or (None) to complete."""

    gate: str
    phase: str
    to: str | None
    turn: str
    at: str | None


class Change(NamedTuple):
    """A run's next state, with the lines that its ledger and its events get."""

    state: Object
    ledger: tuple[Object, ...]
    events: tuple[Object, ...]


def format_time(at: datetime) -> str:
    """A time as the files hold it, in UTC and milliseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def held_at(state: Object) -> str:
    """The barrier at which a run is held, "" where at none."""
    on = state.get("blocked_on")
    if state.get("status") != "blocked" or not isinstance(on, str) or not on.startswith(HELD):
        return ""
    return on.removeprefix(HELD)


def request(run: Run) -> Request | None:
    """What a run asks for, held at a barrier or (before it is held) at its own gate."""
    state = run.state.value
    if held_at(state):
        raw = obj(state, "barrier_request")
        return _request(run, raw, raw.get("to"))
    asked, done = obj(state, "pending_phase_transition"), obj(state, "pending_run_completion")
    if state.get("status") != "paused" or not (asked or done):
        return None
    return _request(run, asked or done, asked.get("to"))


def _request(run: Run, raw: Object, to: object) -> Request:
    phase, at = str(run.state.value.get("phase")), raw.get("requested_at")
    return Request(
        text(raw, "gate", 200) or exit_gate(run.config.value, phase),
        phase,
        to if isinstance(to, str) and to else None,
        text(raw, "requested_by_turn", 200),
        at if isinstance(at, str) else None,
    )


def exit_gate(config: Object, phase: str) -> str:
    """The gate that ends a phase; one without is named after it."""
    raw = objects(config.get("routing")).get(phase, {}).get("exit_gate")
    return raw if isinstance(raw, str) and raw else f"{phase}_exit"


def has_worked(run: Run) -> bool:
    """Whether a turn was accepted in the phase in which the run is."""
    state = run.state.value
    return any(
        line.value.get("phase") == state.get("phase")
        and line.value.get("run_id") == state.get("run_id")
        for line in run.history.lines
    )


def following(phases: Sequence[str], phase: str) -> str | None:
    """The phase after this one, None after the last.

    Raises:
        ValueError: it is none of them.
    """
    place = list(phases).index(phase)
    return phases[place + 1] if place + 1 < len(phases) else None


def hold(run: Run, barrier: str, now: datetime) -> Change:
    """The run that asked to leave its phase, held at a barrier: no local approval crosses it."""
    asked, at = request(run), format_time(now)
    new = copy.deepcopy(run.state.value)
    turn = asked.turn if asked else None
    detail = f"waits at the barrier {barrier} for the initiative's other workstreams"
    new |= {
        "status": "blocked",
        "blocked_on": f"{HELD}{barrier}",
        "blocked_reason": {
            "category": "barrier",
            "recovery": {
                "typed_reason": "barrier",
                "owner": "human",
                "recovery_action": ACTION,
                "turn_retained": False,
                "detail": detail,
            },
            "blocked_at": at,
            "turn_id": turn,
        },
        "pending_phase_transition": None,
        "pending_run_completion": None,
        "barrier_request": {
            "barrier": barrier,
            "gate_type": "phase_transition" if asked and asked.to else "run_completion",
            "gate": asked.gate if asked else "",
            "from": asked.phase if asked else new.get("phase"),
            "to": asked.to if asked else None,
            "requested_by_turn": turn,
            "requested_at": (asked.at if asked else None) or at,
        },
    }
    said = _event(new, "run_blocked", at, category="barrier", blocked_on=new["blocked_on"])
    return Change(new, (), (said,))


def cross(run: Run, barrier: str, by: str, comment: str, at: str) -> Change:
    """The run past the approved barrier: in its next phase, or completed after the last.

    Raises:
        ValueError: its configuration does not have the phase in which it is.
    """
    asked = request(run)
    new, phase = copy.deepcopy(run.state.value), str(run.state.value.get("phase"))
    to = following(tuple(obj(run.config.value, "routing")) or schema.PHASES, phase)
    gate = asked.gate if asked else exit_gate(run.config.value, phase)
    turn = asked.turn if asked else ""
    kind = "phase_transition" if to else "run_completion"
    decided = {"gate_id": gate, "gate_type": kind, "from": phase, "to": to}
    decided |= {"requested_by_turn": turn, "by": by, "comment": comment, "barrier": barrier}
    line = _line(new, "gate_approved", at, **decided)
    said = [
        _event(new, "gate_approved", at, **{k: v for k, v in decided.items() if k != "comment"})
    ]
    _released(new)
    new |= {"last_gate_failure": None, "next_recommended_role": None}
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {gate: "passed"}
    new["barrier_approvals"] = obj(new, "barrier_approvals") | {barrier: at}
    if to:
        new |= {"status": "active", "phase": to, "phase_entered_at": at}
        entered = {"from": phase, "to": to, "gate_id": gate, "trigger": "barrier_approved"}
        said.append(_event(new, "phase_entered", at, **entered, requested_by_turn=turn))
    else:
        new |= {"status": "completed", "completed_at": at}
        said.append(_event(new, "run_completed", at, completed_at=at, trigger="barrier_approved"))
    return Change(new, (line,), tuple(said))


def send_back(run: Run, barrier: str, by: str, comment: str, at: str) -> Change:
    """The run at work again in the same phase: the barrier was rejected."""
    asked, new = request(run), copy.deepcopy(run.state.value)
    gate = asked.gate if asked else ""
    decided = {
        "gate_id": gate,
        "gate_type": "phase_transition" if asked and asked.to else "run_completion",
        "from": new.get("phase"),
        "to": asked.to if asked else None,
        "requested_by_turn": asked.turn if asked else "",
        "by": by,
        "comment": comment,
        "barrier": barrier,
    }
    line = _line(new, "gate_rejected", at, **decided)
    _released(new)
    new["status"] = "active"
    new["next_recommended_role"] = _role_of(run, asked.turn if asked else "")
    new["phase_gate_status"] = obj(new, "phase_gate_status") | {gate: "failed"}
    told = {k: v for k, v in decided.items() if k != "comment"} | {"reason": comment}
    return Change(new, (line,), (_event(new, "gate_rejected", at, **told),))


def _released(state: Object) -> None:
    state |= {
        "blocked_on": None,
        "blocked_reason": None,
        "pending_phase_transition": None,
        "pending_run_completion": None,
    }
    state.pop("barrier_request", None)


def _role_of(run: Run, turn: str) -> str | None:
    """Who asked: it goes on with what the human found missing."""
    for line in reversed(run.history.lines):
        if line.value.get("turn_id") == turn:
            role = line.value.get("role")
            return role if isinstance(role, str) else None
    return None


def _line(state: Object, kind: str, at: str, **more: object) -> Object:
    """A line of the run's ledger that is no decision: it has a type, and never an ``id``."""
    return {
        "type": kind,
        "at": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
    } | more


def _event(state: Object, kind: str, at: str, **payload: object) -> Object:
    return {
        "event_type": kind,
        "timestamp": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
        "status": state.get("status"),
        "turn": None,
        "intent_id": None,
        "payload": payload,
    }
