"""What the coordinator writes into the runs of its workstreams: they cross a barrier, or are mended.

The resync after a barrier's approval: every workstream crosses, or none. First all are checked, then
all are written as one, then all are read again. What failed stands in the ledger; the coordinator is
then ``blocked:resync_failed`` until a resync succeeds.

A workstream's lost state is made again: its history tells which turns were accepted and what the
last one asked for; the coordinator tells the run, its phase, and which barriers it crossed. A turn
that was under way is lost: another is assigned. The damaged file is kept. A workstream that crossed
a barrier which nobody approved is taken back to it in the same way. Source: governed protocol
specification, "Invariant 1", "Invariant 2" and "Invariant 3: State coherence after resync" (a
corrupt state file needs a human). Standard library only.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, initiative, own_writes
from acp_core.protocols.governed.read.initiative import PlannedBarrier, Workstream
from acp_core.protocols.governed.read.run import Run
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
from acp_core.protocols.governed.rules.initiatives import why_workstream_cannot_be_mended
from acp_core.protocols.governed.schema import Object, obj, objects, text
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.write import restore
from acp_core.protocols.governed.write.initiative_opened import OpenedInitiative, Prepared, Writes


def mendable(opened: OpenedInitiative) -> list[str]:
    """The workstreams whose state is lost, or past a barrier that is shut, and can be made again."""
    return [s.name for s in opened.initiative.workstreams if not _why_not(opened, s)]


def _why_not(opened: OpenedInitiative, stream: Workstream) -> str:
    run = stream.run
    crossed = _crossed(opened, stream)
    if crossed and run is not None:
        turn = next((each for each in run.turns if each.running), None)
        if turn is not None:
            return f"the program of {turn.role} is running: stop it first (acp governed stop-turn)"
    return why_workstream_cannot_be_mended(stream, crossed=bool(crossed))


def prepare_mending(opened: OpenedInitiative, name: str, by: str, now: datetime) -> Prepared:
    """Make the state of a workstream again.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    stream = opened.stream(name)
    reason = _why_not(opened, stream)
    if reason or stream.run is None:
        raise Refused(f"cannot rebuild the state of {name}: {reason}")
    at = format_time(now)
    move = rebuilt_workstream(opened, stream, stream.run, now)
    writes = Writes(opened.root)
    writes.run(stream, move)
    mended = stream._replace(run=replace(stream.run, state=schema.Loaded(move.state), turns=()))
    before = opened.initiative.state.value
    records = obj(before, "workstreams") | {name: record(mended)}
    writes.state(before | {"workstreams": records, "updated_at": at})
    line: Object = {
        "type": "workstream_mended", "workstream": name, "by": by,
        "phase": move.state["phase"], "status": move.state["status"],
    }  # fmt: skip
    more = restore.set_apart(Path(stream.path), stream.run, now)
    line |= {"kept": f"{restore.KEPT}/{more[-1].path.name}"} if more else {}
    writes.ledger(list(stamped([line], at, super_run_id(opened.initiative, opened.plan))))
    how = f"the state of {name} from its history: {_summary(move.state)}"
    return Prepared(
        f"rebuild the state of {name}", (*more, *writes.all()), (f"made {how}",),
        would=(f"make {how}",),
    )  # fmt: skip


def rebuilt_workstream(
    opened: OpenedInitiative, stream: Workstream, run: Run, now: datetime
) -> Move:
    """The state that a workstream's history leads to, held before the barriers that are shut."""
    phase, run_id = _phase(opened, stream), stream.recorded.run_id
    crossed = {
        barrier.name: str(barrier_record.get("approved_at"))
        for barrier in opened.plan.barriers
        if (barrier_record := _record_of(opened, barrier.name)).get("status") == APPROVED
        and restore.is_before(run, barrier.phase, phase)
    }
    state = restore.state_in_phase(run, run_id, phase, now) | {
        "super_run_id": super_run_id(opened.initiative, opened.plan),
        "barriers": opened.plan.by_phase(),
    }
    if crossed:
        state["barrier_approvals"] = crossed
    barrier = opened.plan.by_phase().get(phase, "")
    here = replace(run, state=schema.Loaded(state), turns=())
    asked = restore.request_of_last_turn(
        run, restore.lines_of_run(run.history.lines, run_id), phase
    )
    reached = stream.name in schema.strings(_record_of(opened, barrier), "reached_by")
    if asked is None or not barrier or not (reached or _crossed(opened, stream)):
        return Move(state)
    return initiative.hold_at_barrier(here, asked, barrier, now)


def _phase(opened: OpenedInitiative, stream: Workstream) -> str:
    """Where the workstream belongs: at the first barrier that it crossed, else as last known."""
    crossed = (barrier.phase for barrier in _crossed(opened, stream))
    return next(crossed, stream.recorded.phase)


def _crossed(opened: OpenedInitiative, stream: Workstream) -> list[PlannedBarrier]:
    """The barriers that a workstream is past and nobody approved, in the order of their phases."""
    run = stream.run
    if run is None:
        return []
    found = [
        barrier
        for barrier in opened.plan.barriers
        if _record_of(opened, barrier.name).get("status") != APPROVED
        and initiative.is_past_phase(run, barrier.phase)
    ]
    return sorted(found, key=lambda barrier: run.phases.index(barrier.phase))


def _record_of(opened: OpenedInitiative, barrier: str) -> Object:
    return objects(opened.initiative.state.value.get("barriers")).get(barrier, {})


def _summary(state: Object) -> str:
    on = text(state, "blocked_on", 200)
    return f"{state['phase']}, {on or state['status']}"


def owed_barrier(opened: OpenedInitiative) -> PlannedBarrier | None:
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


def resync_problems(opened: OpenedInitiative, barrier: PlannedBarrier) -> list[ResyncProblem]:
    """Every reason why not all workstreams can cross now."""
    found = []
    run_id = super_run_id(opened.initiative, opened.plan)
    for stream in opened.initiative.workstreams:
        if not has_crossed(stream, barrier):
            reason = _resync_problem(stream, barrier, run_id)
            if reason:
                found.append(ResyncProblem(stream.name, reason))
    return found


def _resync_problem(stream: Workstream, barrier: PlannedBarrier, run_id: str) -> str:
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


def resync_crossing(
    opened: OpenedInitiative,
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


def resync_failing(
    opened: OpenedInitiative,
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
