"""A workstream's lost state, made again from its history and from what the coordinator knows.

The history tells which turns were accepted and what the last one asked for; the coordinator tells
the run, its phase, and which barriers it crossed. A turn that was under way is lost: another is
assigned. The damaged file is kept. A workstream that crossed a barrier which nobody approved is taken
back to it in the same way. Source: governed protocol specification, "Invariant 3" (a corrupt state
file needs a human), "Invariant 1" and "Invariant 2".
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import initiative
from acp_core.protocols.governed.read.initiative import PlannedBarrier, Workstream
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.initiative_reconcile import (
    APPROVED,
    record,
    stamped,
    super_run_id,
)
from acp_core.protocols.governed.rules.initiatives import why_workstream_cannot_be_mended
from acp_core.protocols.governed.schema import Object, obj, objects, text
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.write import rebuild, restore
from acp_core.protocols.governed.write.initiative_opened import Opened, Prepared, Writes


def mendable(opened: Opened) -> list[str]:
    """The workstreams whose state is lost, or past a barrier that is shut, and can be made again."""
    return [s.name for s in opened.initiative.workstreams if not _why_not(opened, s)]


def _why_not(opened: Opened, stream: Workstream) -> str:
    run = stream.run
    crossed = _crossed(opened, stream)
    if crossed and run is not None:
        turn = next((each for each in run.turns if each.running), None)
        if turn is not None:
            return f"the program of {turn.role} is running: stop it first (acp governed stop-turn)"
    return why_workstream_cannot_be_mended(stream, crossed=bool(crossed))


def prepare_mending(opened: Opened, name: str, by: str, now: datetime) -> Prepared:
    """Make the state of a workstream again.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    stream = opened.stream(name)
    reason = _why_not(opened, stream)
    if reason or stream.run is None:
        raise Refused(f"cannot rebuild the state of {name}: {reason}")
    at = format_time(now)
    move = rebuilt(opened, stream, stream.run, now)
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
    line |= {"kept": f"{restore.HOME}/{more[-1].path.name}"} if more else {}
    writes.ledger(list(stamped([line], at, super_run_id(opened.initiative, opened.plan))))
    how = f"the state of {name} from its history: {_summary(move.state)}"
    return Prepared(
        f"rebuild the state of {name}", (*more, *writes.all()), (f"made {how}",),
        would=(f"make {how}",),
    )  # fmt: skip


def rebuilt(opened: Opened, stream: Workstream, run: Run, now: datetime) -> Move:
    """The state that a workstream's history leads to, held before the barriers that are shut."""
    phase, run_id = _phase(opened, stream), stream.recorded.run_id
    crossed = {
        barrier.name: str(barrier_record.get("approved_at"))
        for barrier in opened.plan.barriers
        if (barrier_record := _record_of(opened, barrier.name)).get("status") == APPROVED
        and rebuild.is_before(run, barrier.phase, phase)
    }
    state = rebuild.base(run, run_id, phase, now) | {
        "super_run_id": super_run_id(opened.initiative, opened.plan),
        "barriers": opened.plan.by_phase(),
    }
    if crossed:
        state["barrier_approvals"] = crossed
    barrier = opened.plan.by_phase().get(phase, "")
    here = replace(run, state=schema.Loaded(state), turns=())
    asked = rebuild.requested(run, rebuild.of_run(run.history.lines, run_id), phase)
    reached = stream.name in schema.strings(_record_of(opened, barrier), "reached_by")
    if asked is None or not barrier or not (reached or _crossed(opened, stream)):
        return Move(state)
    return initiative.hold_at_barrier(here, asked, barrier, now)


def _phase(opened: Opened, stream: Workstream) -> str:
    """Where the workstream belongs: at the first barrier that it crossed, else as last known."""
    crossed = (barrier.phase for barrier in _crossed(opened, stream))
    return next(crossed, stream.recorded.phase)


def _crossed(opened: Opened, stream: Workstream) -> list[PlannedBarrier]:
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


def _record_of(opened: Opened, barrier: str) -> Object:
    return objects(opened.initiative.state.value.get("barriers")).get(barrier, {})


def _summary(state: Object) -> str:
    on = text(state, "blocked_on", 200)
    return f"{state['phase']}, {on or state['status']}"
