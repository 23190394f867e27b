"""Blocks: what stops a run until a human has resolved it, and how it goes on.

Source: governed protocol specification, "Commands"; the shapes are the existing program's.
"""

from __future__ import annotations

import re

from acp_core.model.errors import Refused
from acp_core.protocols.governed.schema import Object, number, obj, text
from acp_core.protocols.governed.state import Move, copied, event, ledger_line, turns_of


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


def talked(state: Object, by: str, at: str) -> Object:
    """The ledger's line for a word of a human in TALK.md."""
    return ledger_line(state, "talk", at, by=by)
