"""What a barrier makes of a workstream's run: it holds it, lets it cross, or sends it back.

Pure functions of a run's state; nothing here reads or writes files. A workstream reaches a barrier
when its work in the barrier's phase is accepted and it asks to leave that phase (in the last phase:
to complete). Source: governed protocol specification, "Gates and resync". Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Object, obj, text
from acp_core.protocols.governed.state import Move, copied, exit_gate, format_time
from acp_core.protocols.governed.state.blocks import blocked
from acp_core.protocols.governed.state.requests import Request, approved, rejected_gate

HELD = "barrier:"

ACTION = "Approve the barrier with acp governed coordinator approve-barrier"


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
    phase = str(run.state.value.get("phase"))
    gate = text(raw, "gate", 200) or exit_gate(run.config.value, phase)
    next_phase = to if isinstance(to, str) else ""
    kind = "phase_transition" if next_phase else "run_completion"
    return Request(kind, gate, phase, next_phase, text(raw, "requested_by_turn", 200))


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


def hold(run: Run, asked: Request, barrier: str, now: datetime) -> Move:
    """The run that asked to leave its phase, held at a barrier: no local approval crosses it."""
    at, new = format_time(now), copied(run.state.value)
    pending = obj(new, "pending_phase_transition") or obj(new, "pending_run_completion")
    new |= {
        "pending_phase_transition": None,
        "pending_run_completion": None,
        "barrier_request": {
            "barrier": barrier,
            "gate_type": asked.kind,
            "gate": asked.gate,
            "from": asked.phase,
            "to": asked.to or None,
            "requested_by_turn": asked.turn,
            "requested_at": pending.get("requested_at") or at,
        },
    }
    detail = f"waits at the barrier {barrier} for the initiative's other workstreams"
    return blocked(Move(new), f"{HELD}{barrier}", "barrier", detail, asked.turn, at, action=ACTION)


def cross(run: Run, barrier: str, by: str, comment: str, at: str) -> Move:
    """The run past the approved barrier: in its next phase, or completed after the last.

    Raises:
        ValueError: its configuration does not have the phase in which it is.
    """
    phase = str(run.state.value.get("phase"))
    to = following(tuple(obj(run.config.value, "routing")) or schema.PHASES, phase)
    asked = _asked(run)._replace(
        kind="phase_transition" if to else "run_completion", to=to or ""
    )  # where to follows from the configuration, whatever the request says
    move = approved(run.state.value, asked, by, comment, (), at)
    move.state.pop("barrier_request", None)
    move.state["barrier_approvals"] = obj(move.state, "barrier_approvals") | {barrier: at}
    return move._replace(ledger=tuple(line | {"barrier": barrier} for line in move.ledger))


def send_back(run: Run, barrier: str, by: str, comment: str, at: str) -> Move:
    """The run at work again in the same phase: the barrier was rejected.

    Raises:
        Refused: no comment says what is missing.
    """
    asked = _asked(run)
    move = rejected_gate(run.state.value, asked, by, comment, _role_of(run, asked.turn), at)
    move.state.pop("barrier_request", None)
    return move._replace(ledger=tuple(line | {"barrier": barrier} for line in move.ledger))


def _asked(run: Run) -> Request:
    phase = str(run.state.value.get("phase"))
    gate = exit_gate(run.config.value, phase)
    return request(run) or Request("run_completion", gate, phase, "", "")


def _role_of(run: Run, turn: str) -> str:
    """Who asked: it goes on with what the human found missing."""
    for line in reversed(run.history.lines):
        if line.value.get("turn_id") == turn:
            role = line.value.get("role")
            return role if isinstance(role, str) else ""
    return ""
