"""The state machine of a governed run: pure functions from a state to the next one.

Turns are assigned, dispatched again, accepted and rejected; what a turn asks for passes through a
gate, which a human opens; a block stops a run until a human has resolved it. Source: governed
protocol specification, "Repo-local governed run", "Phase model" (every transition of a phase, and
the completion, pass through a human gate) and "Commands"; the shapes are the existing program's.
Nothing here reads or writes files; what a step adds to which log stands in its `Move`.
"""

from __future__ import annotations

import copy
import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import (
    Object,
    blocked_by,
    exit_gate,
    is_id,
    items,
    number,
    obj,
    objects,
    roles_of,
    routing,
    text,
)

OPERATION_MARK = "ACP_GOVERNED_TURN"
"""The variable that tells an agent's program, and all that it starts, whose turn it is."""


class Move(NamedTuple):
    """What a step makes of a run: its state, and the lines that follow in its logs."""

    state: Object
    ledger: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()
    history: tuple[Object, ...] = ()

    def adding(self, *, ledger: tuple[Object, ...] = (), events: tuple[Object, ...] = ()) -> Move:
        """The same with more lines."""
        return self._replace(ledger=self.ledger + ledger, events=self.events + events)


def format_time(at: datetime) -> str:
    """A time as the files hold it, in milliseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def copied(state: Object) -> Object:
    """The state to change: nothing of it is shared with the one before."""
    return copy.deepcopy(state)


def event(
    state: Object, kind: str, at: str, turn: Object | None = None, **payload: object
) -> Object:
    """A line for the events, without its id, as of the state after the step."""
    of = None
    if turn:
        of = {"turn_id": turn.get("turn_id"), "role_id": turn.get("assigned_role")}
    return {
        "event_type": kind,
        "timestamp": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
        "status": state.get("status"),
        "turn": of,
        "intent_id": None,
        "payload": payload,
    }


def ledger_line(state: Object, kind: str, at: str, **more: object) -> Object:
    """A line for the ledger that is no decision: it has a type, and never an ``id``."""
    return {
        "type": kind,
        "at": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
        **more,
    }


def phases(config: Object) -> tuple[str, ...]:
    """The phases in order: the keys of the routing."""
    return tuple(obj(config, "routing"))


def by_acp(state: Object) -> bool:
    """Whether acp made the run, so that every transition and the completion need a human."""
    return obj(state, "provenance").get("created_by") == "acp"


def next_role(config: Object, state: Object) -> str:
    """The role whose turn comes next: the recommended one, else the phase's first.

    Raises:
        Refused: the configuration defines no role.
    """
    allowed = roles_of(config, str(state.get("phase")))
    if not allowed:
        raise Refused("the configuration defines no role")
    recommended = state.get("next_recommended_role")
    return recommended if isinstance(recommended, str) and recommended in allowed else allowed[0]


def turns_of(state: Object) -> dict[str, Object]:
    """The turns that are under way, by their ids, which become names of folders.

    Raises:
        Refused: an id is none, or a turn bears another one.
    """
    found = objects(state.get("active_turns"))
    for id, turn in found.items():
        if not is_id(id) or turn.get("turn_id") != id:
            raise Refused(f"the state names a turn {id!r}, which is not a turn id: correct it")
    return found


def active_turn(state: Object, turn_id: str | None = None) -> Object:
    """The turn that is under way.

    Raises:
        Refused: there is none, there are several and none is named, or it is another one.
    """
    turns = turns_of(state)
    if turn_id is not None:
        if turn_id not in turns:
            raise Refused(f"no active turn {turn_id}; active: {', '.join(turns) or 'none'}")
        return turns[turn_id]
    if not turns:
        raise Refused("no turn is active")
    if len(turns) > 1:
        raise Refused(f"several turns are active: name one of {', '.join(turns)}")
    return next(iter(turns.values()))


def initial(config: Object, at: str, *, super_run_id: str | None = None) -> Object:
    """The state of a run that has not begun."""
    order = phases(config)
    state: Object = {
        "schema_version": "1.1",
        "run_id": None,
        "project_id": text(obj(config, "project"), "id", 200),
        "status": "idle",
        "phase": order[0] if order else "planning",
        "accepted_integration_ref": None,
        "active_turns": {},
        "turn_sequence": 0,
        "last_completed_turn_id": None,
        "blocked_on": None,
        "blocked_reason": None,
        "escalation": None,
        "queued_phase_transition": None,
        "queued_run_completion": None,
        "last_gate_failure": None,
        "phase_gate_status": {exit_gate(config, phase): "pending" for phase in order},
        "budget_reservations": {},
        "budget_status": {"spent_usd": 0, "remaining_usd": None},
        "provenance": {
            "trigger": "manual",
            "parent_run_id": None,
            "trigger_reason": None,
            "intake_intent_id": None,
            "created_by": "acp",
        },
    }
    if super_run_id is not None:
        state["super_run_id"] = super_run_id
    return state


def begun(state: Object, run_id: str, at: str) -> Move:
    """The run begins in its first phase.

    Raises:
        Refused: it has begun already.
    """
    if state.get("status") != "idle":
        raise Refused(f'Cannot begin the run: status is "{state.get("status")}", expected "idle"')
    new = copied(state)
    new |= {"run_id": run_id, "status": "active", "created_at": at, "phase_entered_at": at}
    return Move(new, events=(event(new, "run_started", at, provenance=new.get("provenance")),))


def is_named(state: Object) -> bool:
    """Whether the run has an id: one that another program migrated may have none."""
    id = state.get("run_id")
    return isinstance(id, str) and bool(id)


def named(state: Object, run_id: str, at: str) -> Move:
    """The run with an id, and its turns with it: no result could be accepted without."""
    new = copied(state)
    new["run_id"] = run_id
    for turn in turns_of(new).values():
        turn["run_id"] = run_id
    return Move(new, events=(event(new, "run_named", at, provenance=new.get("provenance")),))


def blocked(
    move: Move,
    on: str,
    category: str,
    detail: str,
    turn_id: str | None,
    at: str,
    *,
    retained: bool = False,
    action: str = "Resolve it, then run acp governed unblock",
) -> Move:
    """The run after ``move``, blocked by ``on``."""
    new = copied(move.state)
    new |= {
        "status": "blocked",
        "blocked_on": on,
        "blocked_reason": {
            "category": category,
            "recovery": {
                "typed_reason": category,
                "owner": "human",
                "recovery_action": action,
                "turn_retained": retained,
                "detail": detail,
            },
            "blocked_at": at,
            "turn_id": turn_id,
        },
    }
    said = event(new, "run_blocked", at, category=category, blocked_on=on)
    return move._replace(state=new).adding(events=(said,))


def escalated(state: Object, reason: str, detail: str, by: str, at: str) -> Move:
    """A human stops the run.

    Raises:
        Refused: it is not active, or no reason is given.
    """
    if state.get("status") != "active":
        raise Refused(f'Cannot escalate run: status is "{state.get("status")}", expected "active"')
    if not reason.strip():
        raise Refused("an escalation needs a reason")
    new = copied(state)
    turn = next(iter(turns_of(new).values()), {})
    slug = re.sub(r"[^a-z0-9]+", "-", reason.lower()).strip("-")[:60] or "escalated"
    on = f"escalation:operator:{slug}"
    action = "Resolve the escalation, then run acp governed unblock"
    new["escalation"] = {
        "source": "operator",
        "raised_by": by,
        "from_role": turn.get("assigned_role"),
        "from_turn_id": turn.get("turn_id"),
        "reason": reason,
        "detail": detail or reason,
        "recovery_action": action,
        "escalated_at": at,
    }
    move = blocked(
        Move(new), on, "operator_escalation", detail or reason, turn.get("turn_id"), at,
        retained=bool(turn), action=action,
    )  # fmt: skip
    line = {
        "timestamp": at,
        "decision": "operator_escalated",
        "run_id": new.get("run_id"),
        "phase": new.get("phase"),
        "by": by,
        "reason": reason,
        "blocked_on": on,
        "escalation": new["escalation"],
    }
    said = event(move.state, "escalation_raised", at, source="operator", reason=reason)
    return move.adding(ledger=(line,), events=(said,))


def unblocked(state: Object, by: str, comment: str, at: str, *, drop_turn: bool = False) -> Move:
    """What blocked the run is resolved; a turn whose attempts were used up gets one more.

    Args:
        state: the blocked run.
        by, comment: who resolved it, and how.
        at: the time.
        drop_turn: give up the turn that is under way; the next step assigns another.

    Raises:
        Refused: the run is not blocked, or it waits at a gate or a barrier.
    """
    on = text(state, "blocked_on", 300)
    if not _is_stopped(state):
        raise Refused(f'Cannot unblock: status is "{state.get("status")}", expected "blocked"')
    if on.startswith("barrier:"):
        raise Refused(f"the run waits at the {on.replace(':', ' ')}: only an approval opens it")
    if obj(state, "pending_phase_transition") or obj(state, "pending_run_completion"):
        raise Refused("a gate is pending: approve or reject it")
    new = copied(state)
    turns = turns_of(new)
    for id, turn in turns.items():
        if drop_turn:
            del new["active_turns"][id]
        elif turn.get("status") == "failed":
            turn["status"] = "retrying"
            turn["attempt"] = (number(turn, "attempt") or 1) + 1
    new |= {"status": "active", "blocked_on": None, "blocked_reason": None, "escalation": None}
    new |= {"non_progress_signature": None, "non_progress_count": 0}
    first, reason = next(iter(turns.values()), {}), obj(state, "blocked_reason")
    line = {
        "timestamp": at,
        "decision": "escalation_resolved",
        "run_id": new.get("run_id"),
        "phase": new.get("phase"),
        "blocked_on": on,
        "question": obj(reason, "recovery").get("detail"),
        "asked_by_turn": reason.get("turn_id"),
        "escalation": state.get("escalation"),
        "resolved_via": "unblock",
        "turn_id": first.get("turn_id"),
        "role": first.get("assigned_role"),
        "by": by,
        "comment": comment,
        "turn_dropped": bool(drop_turn and turns),
    }
    said = event(new, "human_escalation_resolved", at, blocked_on=on, reason=comment)
    return Move(new, (line,), (said,))


def _is_stopped(state: Object) -> bool:
    """Whether something is to be let go on: blocked; paused with no gate, as a migration leaves it;
    or active, and yet saying what blocks it."""
    status = state.get("status")
    return status in ("blocked", "paused") or (status == "active" and bool(state.get("blocked_on")))


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

    @property
    def aim(self) -> str:
        """What opening the gate does."""
        return f"enter {self.to}" if self.to else "complete the run"


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


TURN_MINUTES = 120
RETRIES = 2
_ANSWER = "Answer it with acp governed unblock --comment ANSWER; the next turn reads the answer"
_WHY = 4_000  # characters of a question that the state holds
AGAIN = ("assigned", "retrying", "failed_start", "stalled", "failed_acceptance", "reissued")
"""Statuses of a turn that may be dispatched again."""
AT_END = "changed_at_end"
"""What had changed in the repository when a turn's last attempt ended: markers by file."""


class Observed(NamedTuple):
    """What was seen in the repository since the turn was assigned.

    ``files`` are the paths that changed; ``excluded`` those that a human said are not the
    agent's; ``known`` says that the repository could be looked at. ``doubt`` says which file could not be
    read at this moment, for a reason that says nothing of the file; "" where none.
    """

    files: tuple[str, ...] = ()
    markers: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    baseline: str = ""
    head: str = ""
    excluded: tuple[str, ...] = ()
    known: bool = True
    doubt: str = ""


def assigned(
    config: Object, state: Object, role: str | None, turn_id: str, baseline: Object, now: datetime
) -> Move:
    """A turn is given to a role (by default to the one that comes next).

    Raises:
        Refused: the run is not active, has a turn already, or the role may not take one here.
    """
    status, at = state.get("status"), format_time(now)
    if status == "blocked":
        raise Refused(
            f"Cannot assign turn: the run is blocked: {blocked_by(state)}. Resolve it and unblock"
            " the run first."
        )
    if status != "active":
        raise Refused(f'Cannot assign turn: status is "{status}", expected "active"')
    for id, turn in turns_of(state).items():
        raise Refused(f"Turn already assigned: {id} to {text(turn, 'assigned_role', 80)}")
    role = role or next_role(config, state)
    defined, phase = objects(config.get("roles")), str(state.get("phase"))
    if role not in defined:
        raise Refused(f'no role "{role}"; defined: {", ".join(defined) or "none"}')
    if role not in roles_of(config, phase):
        allowed = ", ".join(roles_of(config, phase))
        raise Refused(f'the role "{role}" takes no turn in phase "{phase}"; allowed: {allowed}')
    new = copied(state)
    sequence = (number(new, "turn_sequence") or 0) + 1
    turn = {
        "turn_id": turn_id,
        "run_id": new.get("run_id"),
        "assigned_role": role,
        "status": "dispatched",
        "attempt": 1,
        "assigned_at": at,
        "deadline_at": _deadline(config, phase, now),
        "runtime_id": defined[role].get("runtime"),
        "baseline": baseline,
        "assigned_sequence": sequence,
        "concurrent_with": [],
        "dispatched_at": at,
    }
    new["active_turns"] = {turn_id: turn}
    new["turn_sequence"] = sequence
    return Move(new, events=(event(new, "turn_dispatched", at, turn),))


def redispatched(
    config: Object, state: Object, turn_id: str, now: datetime, baseline: Object | None = None
) -> Move:
    """A turn whose program ended without a result, or that was rejected, is given out again.

    Args:
        config, state: the run's.
        turn_id: the turn.
        now: the time.
        baseline: how the repository stood, where it was taken anew.

    Raises:
        Refused: it is at work, or the run is not active.
    """
    if state.get("status") != "active":
        raise Refused(f'Cannot dispatch: status is "{state.get("status")}", expected "active"')
    new, at = copied(state), format_time(now)
    turn = active_turn(new, turn_id)
    turn["status"] = "dispatched"
    turn["dispatched_at"] = at
    turn["deadline_at"] = _deadline(config, str(new.get("phase")), now)
    if baseline is not None:
        turn["baseline"] = baseline
    for name in (AT_END, "started_at", "failed_at", "failure_reason", "failed_start_reason"):
        turn.pop(name, None)
    return Move(new, events=(event(new, "turn_dispatched", at, turn),))


def ended(move: Move, turn_id: str, observed: Observed) -> Move:
    """The run after an attempt that came to nothing, with what had changed in the repository then.

    What changes before the next attempt is somebody else's.
    """
    new = copied(move.state)
    turn = obj(obj(new, "active_turns"), turn_id)
    if observed.known and turn:
        turn[AT_END] = dict(observed.markers)
    return move._replace(state=new)


def _deadline(config: Object, phase: str, now: datetime) -> str:
    minutes = number(routing(config, phase), "timeout_minutes")
    if minutes is None or not 0 < minutes < 100_000:
        minutes = TURN_MINUTES
    return format_time(now + timedelta(minutes=minutes))


def failed_start(state: Object, turn_id: str, reason: str, now: datetime) -> Move:
    """The turn's program could not be started, or ended without a result."""
    new, at = copied(state), format_time(now)
    turn = active_turn(new, turn_id)
    turn |= {"status": "failed_start", "failed_start_reason": reason, "failed_at": at}
    return Move(new, events=(event(new, "turn_start_failed", at, turn, reason=reason),))


def acceptance_failed(
    state: Object, turn_id: str, stage: str, errors: tuple[str, ...], now: datetime
) -> Move:
    """The staged result did not pass: it stays where it is, to be mended or rejected."""
    new, at = copied(state), format_time(now)
    turn = active_turn(new, turn_id)
    reason = f"Validation failed at stage {stage}: {'; '.join(errors)}"
    turn |= {"status": "failed_acceptance", "failed_at": at, "failure_reason": reason}
    entry = event(
        new, "acceptance_failed", at, turn,
        reason=reason, error_code="validation_failed", stage=stage, errors=list(errors),
    )  # fmt: skip
    return Move(new, events=(entry,))


def accepted(
    config: Object,
    state: Object,
    result: Object,
    observed: Observed,
    predicates: tuple[Predicate, ...],
    known: dict[str, str],
    now: datetime,
) -> Move:
    """A checked turn result enters the history; what it asks for is looked at.

    Args:
        config: the configuration.
        state: the state with the turn.
        result: the turn result, as it was staged.
        observed: what changed in the repository.
        predicates: those of the gate that ends the phase.
        known: the status of every objection before, by its id.
        now: the time.

    Raises:
        Refused: the run or the turn cannot take a result now.
    """
    if state.get("status") not in ("active", "blocked"):
        status = state.get("status")
        raise Refused(f'Cannot accept a turn: status is "{status}", expected "active"')
    if state.get("status") == "blocked":
        on = text(state, "blocked_on", 200)
        raise Refused(f"the run is blocked by {on}: unblock it before a turn is accepted")
    at, new = format_time(now), copied(state)
    turn = active_turn(new, text(result, "turn_id", 200))
    if turn.get("status") == "conflicted":
        raise Refused("the turn conflicts with a turn accepted since: reject it")
    sequence = (number(new, "turn_sequence") or 0) + 1
    line = _history_line(result, turn, str(new.get("phase")), observed, sequence, at)
    del new["active_turns"][turn["turn_id"]]
    obj(new, "budget_reservations").pop(turn["turn_id"], None)
    spent = obj(new, "budget_status").get("spent_usd")
    usd = obj(result, "cost").get("usd")
    if isinstance(spent, int | float) and isinstance(usd, int | float):
        new["budget_status"]["spent_usd"] = round(spent + usd, 6)
    if observed.head:
        new["accepted_integration_ref"] = f"git:{observed.head}"
    proposed = result.get("proposed_next_role")
    new |= {
        "turn_sequence": sequence,
        "last_completed_turn_id": turn["turn_id"],
        "next_recommended_role": proposed if proposed in objects(config.get("roles")) else None,
    }
    ledger = (*_decisions(result, new, at), *_objections(result, new, known, at))
    entry = event(new, "turn_accepted", at, turn)
    move = Move(new, ledger, (), (line,))
    if result["status"] in ("needs_human", "blocked"):
        why = text(result, "needs_human_reason", _WHY) or text(result, "summary", _WHY)
        on = f"human:{clean_line(why, 300)}"
        move = blocked(move, on, "needs_human", why, turn["turn_id"], at, action=_ANSWER)
    elif result["status"] == "completed":
        move = asked(config, move, result, turn, predicates, at)
    entry["status"], entry["phase"] = move.state.get("status"), move.state.get("phase")
    return move._replace(events=(entry, *move.events))


def _history_line(
    result: Object, turn: Object, phase: str, observed: Observed, sequence: int, at: str
) -> Object:
    seen: Object = {
        "derived_by": "orchestrator" if observed.known else "none",
        "baseline_ref": f"git:{observed.baseline}" if observed.baseline else None,
        "accepted_ref": f"git:{observed.head}" if observed.head else None,
        "files_changed": list(observed.files),
        "file_markers": dict(observed.markers),
        "diff_summary": observed.summary,
    }
    if observed.excluded:
        seen["excluded"] = list(observed.excluded)
    line = {
        name: result.get(name)
        for name in ("turn_id", "run_id", "role", "runtime_id", "status", "summary", "decisions",
                     "objections", "files_changed")
    }  # fmt: skip
    line |= {
        "phase": phase,
        "artifacts_created": result.get("artifacts_created", []),
        "verification": result["verification"],
        "normalized_verification": verified(result),
        "artifact": result["artifact"],
        "intent_id": None,
        "observed_artifact": seen,
        "proposed_next_role": result["proposed_next_role"],
        "phase_transition_request": result.get("phase_transition_request"),
        "run_completion_request": result.get("run_completion_request") is True,
        "assigned_sequence": turn.get("assigned_sequence"),
        "accepted_sequence": sequence,
        "concurrent_with": [],
        "cost": result.get("cost") or {"input_tokens": 0, "output_tokens": 0, "usd": 0},
        "accepted_at": at,
    }
    for name in ("needs_human_reason", "proposed_changes", "delegations"):
        if result.get(name):
            line[name] = result[name]
    return line


def verified(result: Object) -> Object:
    """A turn's verification in one word: what the agent attests is never run again here."""
    verification = obj(result, "verification")
    status = text(verification, "status", 40)
    if status == "pass":
        count = len(items(verification, "machine_evidence"))
        reason = f"The agent attests {count} commands" if count else "The agent says so"
        return {"status": "attested_pass", "reason": reason, "reproducible": False}
    reason = "Agent skipped verification" if status == "skipped" else f"The agent says {status}"
    return {"status": status, "reason": reason, "reproducible": False}


def _decisions(result: Object, state: Object, at: str) -> list[Object]:
    return [
        {
            "id": decision["id"],
            "turn_id": result["turn_id"],
            "role": result["role"],
            "phase": state.get("phase"),
            "runtime_id": result["runtime_id"],
            "category": decision["category"],
            "statement": decision["statement"],
            "rationale": decision["rationale"],
            "objections_against": [],
            "status": "accepted",
            "overridden_by": None,
            "created_at": at,
        }
        | {name: decision[name] for name in ("durability", "overrides") if decision.get(name)}
        for decision in items(result, "decisions")
    ]


def _objections(result: Object, state: Object, known: dict[str, str], at: str) -> list[Object]:
    found = []
    for raw in items(result, "objections"):
        id = str(raw["id"])
        kind = "objection_status" if id in known else "objection_raised"
        if known.get(id) == raw["status"]:
            continue
        more = {"severity": raw["severity"], "statement": raw["statement"]}
        found.append(
            ledger_line(
                state, kind, at, objection_id=id, status=raw["status"], by=result["role"],
                turn_id=result["turn_id"], **more,
            )
        )  # fmt: skip
    return found


def most_attempts(config: Object) -> int:
    """How many attempts a turn has before it is escalated."""
    most = number(obj(config, "rules"), "max_turn_retries")
    return most if most is not None and 0 < most < 1000 else RETRIES


def rejected(
    config: Object,
    state: Object,
    turn_id: str,
    reason: str,
    by: str,
    stage: str,
    errors: tuple[str, ...],
    now: datetime,
) -> Move:
    """A turn is sent back; when its attempts are used up, the run is blocked.

    Raises:
        Refused: the run is not active.
    """
    if state.get("status") != "active":
        raise Refused(f'Cannot reject a turn: status is "{state.get("status")}", expected "active"')
    new, at = copied(state), format_time(now)
    turn = active_turn(new, turn_id)
    attempt, role = number(turn, "attempt") or 1, text(turn, "assigned_role", 80)
    again = attempt < most_attempts(config)
    turn["last_rejection"] = {
        "turn_id": turn_id,
        "attempt": attempt,
        "rejected_at": at,
        "reason": reason,
        "validation_errors": list(errors),
        "failed_stage": stage or None,
    }
    line = ledger_line(
        new, "turn_rejected", at, turn_id=turn_id, role=role, attempt=attempt, retrying=again,
        reason=reason, validation_errors=list(errors), by=by,
    )  # fmt: skip
    payload = {"attempt": attempt, "retrying": again, "reason": reason}
    payload |= {"failed_stage": stage or None, "validation_errors": list(errors)}
    if again:
        turn |= {"status": "retrying", "attempt": attempt + 1}
        return Move(new, (line,), (event(new, "turn_rejected", at, turn, **payload),))
    turn["status"] = "failed"
    entry = f"Turn rejected {attempt} times. Retries exhausted."
    new["escalation"] = {
        "from_role": role,
        "from_turn_id": turn_id,
        "reason": entry,
        "validation_errors": list(errors),
        "escalated_at": at,
    }
    on = f"escalation:retries-exhausted:{role}"
    move = blocked(Move(new, (line,)), on, "retries_exhausted", entry, turn_id, at, retained=True)
    payload["escalated"] = True
    said = event(move.state, "turn_rejected", at, turn, **payload)
    return move._replace(events=(said, *move.events))


def objection_marked(
    state: Object, known: dict[str, str], id: str, status: str, by: str, comment: str, now: datetime
) -> Move:
    """A human says what became of an objection.

    Raises:
        Refused: there is no such objection, or it has this status already.
    """
    if id not in known:
        raise Refused(f"no objection {id} (objections: {', '.join(known) or 'none'}")
    if known[id] == status:
        raise Refused(f"the objection {id} is already {status}")
    if known[id] in schema.RESOLVED and status in schema.RESOLVED:
        raise Refused(f"the objection {id} is already {known[id]}")
    at = format_time(now)
    line = ledger_line(
        state, "objection_status", at, objection_id=id, status=status, by=by, comment=comment
    )
    said = event(state, "objection_status", at, objection_id=id, to=status)
    return Move(copied(state), (line,), (said,))
