"""A workstream's lost state, made again from its history and from what the coordinator knows.

The history tells which turns were accepted and what the last one asked for; the coordinator tells
the run, its phase, and which barriers it crossed. A turn that was under way is lost: another is
assigned. The damaged file is kept. Source: governed protocol specification, "Invariant 3" (a
corrupt state file needs a human).
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import REPLACE, Write
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.coordinator import barriers
from acp_core.protocols.governed.coordinator.opened import Opened, Prepared, Writes
from acp_core.protocols.governed.coordinator.reconcile import (
    APPROVED,
    record,
    stamped,
    super_run_id,
)
from acp_core.protocols.governed.read.initiative import Workstream
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Line, Object, number, obj, objects, text
from acp_core.protocols.governed.state import Move, exit_gate, format_time, initial
from acp_core.protocols.governed.state.requests import Request
from acp_core.protocols.governed.write import Refused


def mendable(opened: Opened) -> list[str]:
    """The workstreams whose state is lost and can be made again."""
    return [s.name for s in opened.initiative.workstreams if not why_not(s)]


def why_not(stream: Workstream) -> str:
    """Why a workstream's state cannot be made again, "" where it can."""
    run, known = stream.run, stream.recorded
    if run is None:
        return "its path leads out of the initiative"
    if not run.state.reason:
        return "its state can be read"
    if run.config.reason:
        return f"its configuration cannot be read: {schema.why(run.config.reason)}"
    for name, log in ((schema.HISTORY, run.history), (schema.LEDGER, run.ledger)):
        if log.problems:
            return f"{name}: {log.problems[0][1]}"
    if not isinstance(known.get("run_id"), str) or not known["run_id"]:
        return "the coordinator does not know its run"
    if known.get("phase") not in run.phases:
        return "the coordinator does not know its phase"
    return ""


def prepare_mending(opened: Opened, name: str, by: str, now: datetime) -> Prepared:
    """Make the state of a workstream again.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    stream = opened.stream(name)
    reason = why_not(stream)
    if reason or stream.run is None:
        raise Refused(f"the state of {name} is not made again: {reason}")
    at = format_time(now)
    move = rebuilt(opened, stream, stream.run, now)
    writes = Writes(opened.root)
    writes.run(stream, move)
    mended = stream._replace(run=stream.run._replace(state=schema.Loaded(move.state), turns=()))
    before = opened.initiative.state.value
    records = obj(before, "workstreams") | {name: record(mended)}
    writes.state(before | {"workstreams": records, "updated_at": at})
    line: Object = {
        "type": "workstream_mended", "workstream": name, "by": by,
        "phase": move.state["phase"], "status": move.state["status"],
    }  # fmt: skip
    kept, more = _damaged(stream, now)
    line |= {"kept": kept} if kept else {}
    writes.ledger(list(stamped([line], at, super_run_id(opened.initiative, opened.plan))))
    how = f"the state of {name} from its history: {_stands(move.state)}"
    return Prepared(
        f"make the state of {name} again", (*more, *writes.all()), (f"made {how}",),
        would=(f"make {how}",),
    )  # fmt: skip


def rebuilt(opened: Opened, stream: Workstream, run: Run, now: datetime) -> Move:
    """The state that a workstream's history leads to."""
    known, at = stream.recorded, format_time(now)
    phase, run_id = str(known["phase"]), str(known["run_id"])
    lines = [line for line in run.history.lines if line.value.get("run_id") == run_id]
    crossed = {
        barrier.name: str(kept.get("approved_at"))
        for barrier in opened.plan.barriers
        if (kept := _kept(opened, barrier.name)).get("status") == APPROVED
        and _is_before(run, barrier.phase, phase)
    }
    state = initial(run.config.value, at) | {
        "run_id": run_id,
        "status": "active",
        "phase": phase,
        "super_run_id": super_run_id(opened.initiative, opened.plan),
        "barriers": opened.plan.by_phase(),
        "created_at": _begun(run, run_id) or at,
        "phase_entered_at": _entered(run, run_id, phase) or at,
        "turn_sequence": max((number(line.value, "accepted_sequence") or 0 for line in lines),
                             default=0),
        "last_completed_turn_id": lines[-1].value.get("turn_id") if lines else None,
    }  # fmt: skip
    state["phase_gate_status"] |= {
        exit_gate(run.config.value, each): "passed"
        for each in run.phases
        if _is_before(run, each, phase)
    }
    if crossed:
        state["barrier_approvals"] = crossed
    barrier = opened.plan.by_phase().get(phase, "")
    here = run._replace(state=schema.Loaded(state), turns=())
    asked = _asked(here, lines)
    reached = stream.name in schema.strings(_kept(opened, barrier), "reached_by")
    if asked is None or not barrier or not reached:
        return Move(state)
    return barriers.hold(here, asked, barrier, now)


def _asked(run: Run, lines: list[Line]) -> Request | None:
    """What the last accepted turn of the phase asks for."""
    state = run.state.value
    last = lines[-1].value if lines else {}
    to = last.get("phase_transition_request")
    if last.get("phase") != state["phase"] or not (to or last.get("run_completion_request")):
        return None
    gate, turn = exit_gate(run.config.value, state["phase"]), text(last, "turn_id", 200)
    kind = "phase_transition" if to else "run_completion"
    return Request(kind, gate, state["phase"], to if isinstance(to, str) else "", turn)


def _kept(opened: Opened, barrier: str) -> Object:
    return objects(opened.initiative.state.value.get("barriers")).get(barrier, {})


def _is_before(run: Run, phase: str, other: str) -> bool:
    return phase in run.phases and run.phases.index(phase) < run.phases.index(other)


def _begun(run: Run, run_id: str) -> str:
    for line in run.events.lines:
        if line.value.get("event_type") == "run_started" and line.value.get("run_id") == run_id:
            return text(line.value, "timestamp", 40)
    return ""


def _entered(run: Run, run_id: str, phase: str) -> str:
    found = _begun(run, run_id) if run.phases[0] == phase else ""
    for line in run.events.lines:
        value = line.value
        entered = value.get("event_type") == "phase_entered" and value.get("run_id") == run_id
        if entered and obj(value, "payload").get("to") == phase:
            found = text(value, "timestamp", 40)
    return found


def _damaged(stream: Workstream, now: datetime) -> tuple[str, tuple[Write, ...]]:
    """Where the damaged file is kept, and the write that does so; nothing where it is missing."""
    if stream.run is None or stream.run.state.missing:
        return "", ()
    place = Path(stream.path) / schema.STATE
    try:
        data = read_bounded(place, schema.LOG_LIMIT)
    except Unreadable as error:
        raise Refused(f"{place} is {error.reason}: move it away first") from None
    name = f"state.json.damaged-{now:%Y%m%dT%H%M%SZ}"
    return f".agentxchain/{name}", (Write(place.parent / name, REPLACE, data),)


def _stands(state: Object) -> str:
    on = text(state, "blocked_on", 200)
    return f"{state['phase']}, {on or state['status']}"
