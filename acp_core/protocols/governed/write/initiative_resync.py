"""The resync of all workstreams after a barrier's approval: every one of them crosses, or none.

First all are checked, then all are written as one, then all are read again. What failed stands in
the ledger; the coordinator is then ``blocked:resync_failed`` until a resync succeeds. Source:
governed protocol specification, "Invariant 3: State coherence after resync". Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path

from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, initiative, own_writes
from acp_core.protocols.governed.read.initiative import PlannedBarrier, Workstream
from acp_core.protocols.governed.rules.initiative_reconcile import (
    ACTIVE,
    APPROVED,
    RESYNC_FAILED,
    ResyncProblem,
    has_crossed,
    record,
    stamped,
    super_run_id,
    was_crossed,
)
from acp_core.protocols.governed.schema import Object, obj, text
from acp_core.protocols.governed.write.initiative_opened import Opened, Writes


def owed(opened: Opened) -> PlannedBarrier | None:
    """The approved barrier that not every workstream has crossed, or None.

    A barrier that a workstream must have crossed to be where the coordinator last saw it is named
    only where no other is owed: an unreadable state is no sign that it never crossed that one.
    """
    record = opened.initiative.record
    approved = [b for b in opened.plan.barriers if record.barrier(b.name).status == APPROVED]
    streams = opened.initiative.workstreams
    for crossed in (_was_past, has_crossed):
        for barrier in approved:
            if not all(crossed(stream, barrier) for stream in streams):
                return barrier
    return None


def _was_past(stream: Workstream, barrier: PlannedBarrier) -> bool:
    """Whether it has crossed; of one that cannot be read, as far as its last known phase tells."""
    run = stream.run
    if run is None or not run.state.reason:
        return has_crossed(stream, barrier)
    at, phases = stream.recorded.phase, run.phases
    known = at in phases and barrier.phase in phases
    return known and phases.index(at) > phases.index(barrier.phase)


def problems(opened: Opened, barrier: PlannedBarrier) -> list[ResyncProblem]:
    """Every reason why not all workstreams can cross now."""
    found = []
    run_id = super_run_id(opened.initiative, opened.plan)
    for stream in opened.initiative.workstreams:
        if not has_crossed(stream, barrier):
            reason = _problem(stream, barrier, run_id)
            if reason:
                found.append(ResyncProblem(stream.name, reason))
    return found


def _problem(stream: Workstream, barrier: PlannedBarrier, run_id: str) -> str:
    run = stream.run
    if run is None:
        return "its path leads out of the initiative"
    if run.config.reason:
        return f"its configuration cannot be read: {schema.why(run.config.reason)}"
    if run.state.reason:
        return f"its state cannot be read: {schema.why(run.state.reason)}"
    state, known = run.state.value, stream.recorded.raw.get("run_id")
    if state.get("super_run_id") != run_id:
        return f"its state lacks the super_run_id {run_id}"
    if known and state.get("run_id") != known:
        other = clean_line(stream.recorded.run_id, 80)
        return f"its run is {run.record.run_id or 'none'}, and not {other}"
    if initiative.held_at(state) != barrier.name or state.get("phase") != barrier.phase:
        return f"the workstream is not at the barrier ({run.phase}: {run.status})"
    if run.unfinished:
        return existing_program.transaction_refusal(run.unfinished)
    if run.turns:
        return f"the turn {run.turns[0].id} is active"
    if barrier.phase not in (tuple(obj(run.config.value, "routing")) or schema.PHASES):
        return f"its configuration has no phase {clean_line(barrier.phase, 80)}"
    for name, log in ((schema.LEDGER, run.ledger), (schema.EVENTS, run.events)):
        for number, reason in log.problems:
            if number == 0:
                return f"{name} cannot be read: {schema.why(reason)}"
    home = Path(stream.path) / own_writes.RUN_HOME
    if not os.access(home, os.W_OK):
        return f"{own_writes.RUN_HOME} cannot be written"
    return ""


def crossing(
    opened: Opened,
    barrier: PlannedBarrier,
    state: Object,
    approval: Object,
    writes: Writes,
    at: str,
) -> Object:
    """All workstreams past the barrier; returns the coordinator's state after it.

    Args:
        opened: the initiative; `problems` found none.
        barrier: the approved barrier.
        state: the coordinator's state with the approval.
        approval: the barrier's record in it.
        writes: gets the workstreams' states and lines.
        at: the time of the resync.
    """
    run_id = super_run_id(opened.initiative, opened.plan)
    by, comment = text(approval, "approved_by", 200), str(approval.get("comment") or "")
    approved_at = str(approval.get("approved_at"))
    moved = []
    records = dict(obj(state, "workstreams"))
    for stream in opened.initiative.workstreams:
        if has_crossed(stream, barrier) or stream.run is None:
            continue
        change = initiative.cross_barrier(stream.run, barrier.name, by, comment, approved_at)
        writes.run(stream, change)
        changed = record(stream) | {
            "phase": change.state["phase"],
            "status": change.state["status"],
        }
        records[stream.name] = changed
        moved.append({"workstream": stream.name, "from": barrier.phase, "to": changed["phase"]})
    state = state | {"workstreams": records, "status": ACTIVE, "updated_at": at}
    line = {"type": "resync", "barrier": barrier.name, "workstreams": moved}
    writes.ledger(list(stamped([line], at, run_id)))
    return state


def failing(
    opened: Opened,
    barrier: PlannedBarrier,
    state: Object,
    found: list[ResyncProblem],
    writes: Writes,
    at: str,
) -> Object:
    """The coordinator's state after a resync that failed; nothing of any workstream is written."""
    run_id = super_run_id(opened.initiative, opened.plan)
    failures = [problem._asdict() for problem in found]
    line: Object = {"type": "resync_failed", "barrier": barrier.name, "failures": failures}
    if was_crossed(opened.initiative.workstreams, barrier.name):
        line["crossed"] = True
    writes.ledger(list(stamped([line], at, run_id)))
    return state | {"status": RESYNC_FAILED, "updated_at": at}
