"""The coordinator's lost state, made again from its ledger and from what the workstreams are.

The ledger tells which runs were linked, who reached which barrier, what a human approved or
rejected, and how the last resync ended; what only a workstream's state says is no proof of an
approval. The damaged file is kept. Source: governed protocol specification, "File layout" and
"Invariant 2".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Initiative, Plan, read_initiative, read_plan
from acp_core.protocols.governed.rules.initiative_reconcile import (
    ACTIVE,
    APPROVED,
    COMPLETED,
    PENDING,
    REACHED,
    REJECTED,
    RESYNC_FAILED,
    record,
    stamped,
)
from acp_core.protocols.governed.rules.initiatives import (
    linked_workstreams,
    why_state_cannot_be_rebuilt,
)
from acp_core.protocols.governed.schema import Loaded, Log, Object, strings, text
from acp_core.protocols.governed.state import format_time
from acp_core.protocols.governed.write import initiative_decide, journal
from acp_core.protocols.governed.write.initiative_decide import Done
from acp_core.protocols.governed.write.initiative_opened import STATE, Prepared, Writes, run_homes

_EMPTY: Object = {
    "reached_by": [], "reached_at": None, "approved_at": None, "approved_by": None, "comment": None,
}  # fmt: skip


def prepare(root: Path, by: str, now: datetime) -> Prepared:
    """Make the coordinator's state again. Writes nothing.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    plan, initiative = read_plan(root), read_initiative(root)
    if reason := why_state_cannot_be_rebuilt(initiative):
        raise Refused(f"cannot rebuild the coordinator's state: {reason}")
    state = rebuilt(root, plan, initiative.ledger, now)
    line: Object = {"type": "coordinator_mended", "by": by, "status": state["status"]}
    damaged, more = _damaged(root, initiative, now)
    line |= {"kept": damaged} if damaged else {}
    writes = Writes(root)
    writes.state(state)
    writes.ledger(list(stamped([line], format_time(now), text(state, "super_run_id", 120))))
    how = f"the coordinator's state from its ledger: {_summary(state)}"
    return Prepared(
        "rebuild the coordinator's state", (*more, *writes.all()), (f"made {how}",),
        would=(f"make {how}",),
    )  # fmt: skip


def mend(root: Path, by: str, now: datetime) -> Done:
    """Make the coordinator's state again, and let it look at all workstreams.

    Raises:
        Refused: as `prepare`, or a lock is held by another process.
    """
    homes = run_homes(read_initiative(root))
    with journal.held(root, own_writes.COORDINATOR_HOME, homes) as holder:
        prepared = prepare(root, by, now)
        holder.commit(prepared.what, prepared.writes)
    seen = initiative_decide.step(root, now)
    return seen._replace(
        messages=(
            *prepared.messages,
            *(t for t in seen.messages if t not in initiative_decide.NOTHING),
        )
    )


def rebuilt(root: Path, plan: Plan, ledger: Log, now: datetime) -> Object:
    """The state that the coordinator's ledger leads to."""
    linked = linked_workstreams(ledger)
    known = Loaded({"workstreams": linked})
    streams = read_initiative(root, known).workstreams
    barriers = {barrier.name: {"phase": barrier.phase, "status": PENDING} | _EMPTY
                for barrier in plan.barriers}  # fmt: skip
    for line in ledger.lines:
        barrier = barriers.get(text(line.value, "barrier", 80))
        if barrier is not None:
            barrier |= _changes_of(barrier, line.value)
    run_id = plan.super_run_id or text(ledger.lines[0].value, "super_run_id", 120)
    return {
        "schema_version": "1.0",
        "super_run_id": run_id,
        "status": _status(ledger),
        "barriers": barriers,
        "workstreams": {stream.name: record(stream) for stream in streams},
        "updated_at": format_time(now),
    }


def _changes_of(record: Object, line: Object) -> Object:
    """What a line of the ledger changes of its barrier's record."""
    at, reached = line.get("at"), strings(record, "reached_by")
    match line.get("type"):
        case "workstream_at_barrier":
            new = [name for name in [text(line, "workstream", 80)] if name not in reached]
            return {"reached_by": reached + new}
        case "barrier_reached":
            return {"status": REACHED, "reached_at": at, "reached_by": strings(line, "workstreams")}
        case "barrier_approved":
            who = {"approved_by": line.get("by"), "comment": line.get("comment")}
            return {"status": APPROVED, "approved_at": at} | who
        case "barrier_rejected":
            left = [name for name in reached if name not in strings(line, "workstreams")]
            return {"status": REJECTED, "reached_by": left, "reached_at": None,
                    "comment": line.get("comment")}  # fmt: skip
    return {}


def _status(ledger: Log) -> str:
    """The coordinator's own status; a crossing that nobody approved is seen by its next look."""
    found = ACTIVE
    for line in ledger.lines:
        kind = line.value.get("type")
        found = {"resync_failed": RESYNC_FAILED, "resync": ACTIVE,
                 "super_run_completed": COMPLETED}.get(str(kind), found)  # fmt: skip
    return found


def _damaged(root: Path, initiative: Initiative, now: datetime) -> tuple[str, tuple[Write, ...]]:
    """Where the damaged file is kept, and the write that does so; nothing where it is missing."""
    if initiative.state.missing:
        return "", ()
    place = root / STATE
    try:
        data = read_bounded(place, schema.LOG_LIMIT)
    except Unreadable as error:
        raise Refused(f"{place} is {error.reason}: move it away first") from None
    name = f"state.json.damaged-{now:%Y%m%dT%H%M%SZ}"
    return f".coordinator/{name}", (Write(place.parent / name, REPLACE, data),)


def _summary(state: Object) -> str:
    return ", ".join((str(state["status"]), *_barriers(state)))


def _barriers(state: Object) -> Iterator[str]:
    for name, barrier in schema.objects(state.get("barriers")).items():
        yield f"{name} {barrier['status']}"
