"""What a run's own logs tell of a past that was not recorded: its phase, status, turns and gates.

Every event bears the phase and the status after it; the lines of history, ledger and events bear
their times, and no log is ever rewritten. What documents held is not told. Source: governed
protocol specification, "Files"; the events' shapes are the existing program's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from acp_core.model.past import Derivation, Evidence, Files
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.turn_files import bundle_folder
from acp_core.protocols.governed.schema import Object, exit_gate, number, obj, text
from acp_core.protocols.governed.state import initial

_LOGS = (schema.HISTORY, schema.LEDGER, schema.EVENTS)
_TIMES = ("accepted_at", "at", "timestamp", "created_at", "failed_at")
_TICK = timedelta(milliseconds=1)  # what a time in the files is rounded to
_STAYS = ("schema_version", "project_id", "provenance", "super_run_id", "barriers")
_DECIDED = ("gate_approved", "gate_rejected", "phase_entered", "run_completed")


class GovernedDerivation(Derivation):
    """Tells a run's state and logs as they were at a moment; of an initiative it tells nothing."""

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`. A configuration that is not known of then is taken as the first known."""
        contents = {name: data for name, (data, _) in evidence.there.items()}
        known = dict(evidence.known) | contents
        events = known.get(schema.EVENTS)
        if events is None or schema.CONFIG not in known or schema.MULTI_CONFIG in known:
            return {}
        files: Files = {schema.CONFIG: known[schema.CONFIG]}
        files |= {name: _until(known[name], evidence.at) for name in _LOGS if name in known}
        happened = [value for value in _lines(_until(events, evidence.at)) if value]
        config, last = _parsed(known[schema.CONFIG]), _parsed(known.get(schema.STATE, b""))
        state = _state(config, last, happened)
        files[schema.STATE] = _document(state)
        files |= _assignments(state)
        return {name: data for name, data in files.items() if name not in contents}


def _until(log: bytes, at: datetime) -> bytes:
    """A log as far as it had got: up to the first line that is later."""
    end = 0
    for raw in log.splitlines(keepends=True):
        when = schema.moment(_parsed(raw), *_TIMES)
        if when is not None and when > at + _TICK:
            break
        end += len(raw)
    return log[:end]


def _lines(log: bytes) -> Iterator[Object]:
    for raw in log.splitlines():
        yield _parsed(raw)


def _parsed(data: bytes) -> Object:
    """A JSON object, empty where there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _document(value: Object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _state(config: Object, last: Object, events: Iterable[Object]) -> Object:
    """The state to which the events lead. ``last`` is a state of the same run, for what stays."""
    state = initial(config, "")
    state |= {key: last[key] for key in _STAYS if key in last}
    for value in events:
        _feed(state, config, value)
    return state


def _feed(state: Object, config: Object, event: Object) -> None:
    """One event: what it says itself, and what follows from its kind."""
    kind, at, payload = event.get("event_type"), event.get("timestamp"), obj(event, "payload")
    state["run_id"] = event.get("run_id") or state["run_id"]
    for key in ("phase", "status"):
        if isinstance(event.get(key), str):
            state[key] = event[key]
    if kind == "run_started":
        state |= {"created_at": at, "phase_entered_at": at}
    elif kind == "phase_entered":
        state["phase_entered_at"] = at
    if kind in _DECIDED:
        state |= {"pending_phase_transition": None, "pending_run_completion": None}
    if kind == "gate_approved" and (gate := text(payload, "gate_id", 120)):
        state["phase_gate_status"][gate] = "passed"
    if kind == "gate_pending":
        _ask(state, config, payload, at)
    _block(state, event)
    _turn(state, config, event)


def _ask(state: Object, config: Object, payload: Object, at: object) -> None:
    """A gate waits for a human."""
    phase = text(payload, "from", 80) or text(state, "phase", 80)
    asked: Object = {
        "gate": text(payload, "gate_id", 120) or exit_gate(config, phase),
        "requested_by_turn": payload.get("requested_by_turn") or state["last_completed_turn_id"],
        "requested_at": at,
    }
    if text(payload, "gate_type", 40) == "run_completion":
        state["pending_run_completion"] = asked
    else:
        state["pending_phase_transition"] = asked | {"from": phase, "to": payload.get("to")}


def _block(state: Object, event: Object) -> None:
    """What blocks the run, as far as the events tell it; nothing once it goes on."""
    payload, at = obj(event, "payload"), event.get("timestamp")
    if state["status"] != "blocked":
        state |= {"blocked_on": None, "blocked_reason": None}
        return
    category = text(payload, "category", 80)
    on = text(payload, "blocked_on", 300) or state["blocked_on"] or category
    if category or not state["blocked_reason"]:
        recovery = {"typed_reason": category, "owner": "human", "recovery_action": "",
                    "turn_retained": False, "detail": text(payload, "reason", 300)}  # fmt: skip
        reason = {"category": category, "recovery": recovery, "blocked_at": at, "turn_id": None}
        state["blocked_reason"] = reason
    state["blocked_on"] = on or "unknown"


def _turn(state: Object, config: Object, event: Object) -> None:
    """What becomes of the turn that an event is about."""
    kind, at, about = event.get("event_type"), event.get("timestamp"), obj(event, "turn")
    id, active = text(about, "turn_id", 80), state["active_turns"]
    if kind == "turn_dispatched" and id:
        role = text(about, "role_id", 80)
        before = active.get(id, {"attempt": 1, "assigned_at": at})
        active[id] = before | {
            "turn_id": id, "run_id": state["run_id"], "assigned_role": role, "status": "dispatched",
            "runtime_id": obj(obj(config, "roles"), role).get("runtime"), "dispatched_at": at,
        }  # fmt: skip
    elif kind == "turn_accepted":
        active.pop(id, None)
        state["last_completed_turn_id"] = id or state["last_completed_turn_id"]
    elif id in active:
        reason = text(obj(event, "payload"), "reason", 500)
        _changed(active[id], str(kind), reason, obj(event, "payload"))


def _changed(turn: Object, kind: str, reason: str, payload: Object) -> None:
    """A turn that is still under way, after an event about it."""
    match kind:
        case "turn_rejected" if payload.get("retrying") is True:
            turn |= {"status": "retrying", "attempt": (number(turn, "attempt") or 1) + 1}
        case "turn_rejected":
            turn["status"] = "failed"
        case "turn_start_failed":
            turn |= {"status": "failed_start", "failed_start_reason": reason}
        case "acceptance_failed":
            turn |= {"status": "failed_acceptance", "failure_reason": reason}
        case "turn_conflicted":
            turn["status"] = "conflicted"


def _assignments(state: Object) -> Files:
    """The bundles of the turns under way: that they were there follows from their dispatch."""
    return {
        f"{bundle_folder(id)}/ASSIGNMENT.json": _document(
            {"run_id": state["run_id"], "turn_id": id, "role": turn["assigned_role"]}
        )
        for id, turn in state["active_turns"].items()
        if schema.is_id(id)
    }
