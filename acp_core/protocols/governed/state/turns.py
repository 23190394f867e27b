"""Turns: assigned, dispatched again, accepted, rejected.

Source: governed protocol specification, "Commands"; what a state holds at each moment follows
the shapes that the existing program writes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, items, number, obj, objects, strings, text
from acp_core.protocols.governed.schema.wording import blocked_by
from acp_core.protocols.governed.state import (
    Move,
    active_turn,
    copied,
    event,
    format_time,
    ledger_line,
    next_role,
    roles_of,
    routing,
    turns_of,
)
from acp_core.protocols.governed.state.blocks import blocked
from acp_core.protocols.governed.state.requests import Predicate, asked

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


def allowed_next(config: Object, phase: str) -> list[str]:
    """The roles that a turn in this phase may propose to come next."""
    return strings(routing(config, phase), "allowed_next_roles")
