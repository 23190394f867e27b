"""What a human decides about an initiative, and the coordinator's own step. Every write of both.

Each has a preparation (for showing what it would do) and is done under the locks. Source: governed
protocol specification, "Gates and resync", "How it works" and "File layout".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.files.transaction import REPLACE, Transaction, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import initiative, own_writes
from acp_core.protocols.governed.read.initiative import (
    Initiative,
    Plan,
    PlannedBarrier,
    Workstream,
    read_initiative,
    read_plan,
)
from acp_core.protocols.governed.rules import guard, initiative_reconcile
from acp_core.protocols.governed.rules.initiative_reconcile import (
    ACTIVE,
    APPROVED,
    COMPLETED,
    CROSSED,
    PENDING,
    REACHED,
    REJECTED,
    RESYNC_FAILED,
    ResyncProblem,
    ledger_sentence,
    record,
    stamped,
    super_run_id,
)
from acp_core.protocols.governed.rules.initiatives import (
    linked_workstreams,
    why_state_cannot_be_rebuilt,
)
from acp_core.protocols.governed.schema import (
    CoordinatorLine,
    Loaded,
    Log,
    Object,
    decode,
    obj,
    objects,
    strings,
    text,
)
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.write import initiative_opened, initiative_workstreams, opened
from acp_core.protocols.governed.write import opened as write_opened
from acp_core.protocols.governed.write.initiative_opened import (
    LEDGER,
    STATE,
    OpenedInitiative,
    Prepared,
    Writes,
    hold_initiative,
    observe,
    open_initiative,
    run_homes,
)
from acp_core.protocols.governed.write.opened import Failed, content, seal_lawful
from acp_core.protocols.kit.guard import check

NOTHING = ("nothing new",)
"""What a look tells that found nothing."""
Preparing = Callable[[OpenedInitiative, datetime], Prepared]


class StepOutcome(NamedTuple):
    """How a step of the coordinator ended: what is so now, what failed, what to know besides."""

    messages: tuple[str, ...]
    failed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Decision(NamedTuple):
    """Who decides about which barrier ("" for the one whose gate is open), with which comment."""

    barrier: str
    by: str
    comment: str


def prepare_step(opened: OpenedInitiative, now: datetime) -> Prepared:
    """Look at all workstreams and write down what changed."""
    seen, writes = observe(opened, now)
    messages = tuple(ledger_sentence(decode(CoordinatorLine, line)) for line in seen.lines)
    return Prepared("check all workstreams", writes.all(), messages)


def prepare_approval(opened: OpenedInitiative, decision: Decision, now: datetime) -> Prepared:
    """Approve an open cross-repo gate, and resync all workstreams.

    Raises:
        Refused: no such gate is open.
    """
    seen, writes = observe(opened, now)
    barrier, state = _open_gate(opened, seen.state, decision.barrier)
    opened = _with_held(opened, seen.held)
    state = _approved(opened, state, barrier, decision, writes, now)
    prepared = _crossing(opened, barrier, state, writes, now)
    how = f": all {len(opened.plan.streams)} workstreams cross it"
    if prepared.messages:  # what keeps them from it
        how = "; no workstream crosses it"
    said = (f"{barrier.name}{how}", *prepared.messages)

    def otherwise(reason: str) -> tuple[Write, ...]:
        noted = Writes(opened.root)
        after = _approved(opened, seen.state, barrier, decision, noted, now)
        return _noting(opened, barrier, after, reason, noted, now)

    return Prepared(
        f"approve {barrier.name} and resync",
        prepared.writes,
        (f"approved {said[0]}", *said[1:]),
        tuple(_unmet(opened, barrier)),
        otherwise,
        (f"approve {said[0]}", *said[1:]),
    )


def _crossing(
    opened: OpenedInitiative, barrier: PlannedBarrier, state: Object, writes: Writes, now: datetime
) -> Prepared:
    """All workstreams past an approved barrier; ``messages`` say what keeps them from it."""
    found, at = initiative_workstreams.resync_problems(opened, barrier), format_time(now)
    if found:
        writes.state(
            initiative_workstreams.resync_failing(opened, barrier, state, found, writes, at)
        )
    else:
        approval = obj(obj(state, "barriers"), barrier.name)
        writes.state(
            initiative_workstreams.resync_crossing(opened, barrier, state, approval, writes, at)
        )
    return Prepared("", writes.all(), tuple(_sentences(found)))


def _noting(
    opened: OpenedInitiative,
    barrier: PlannedBarrier,
    state: Object,
    reason: str,
    writes: Writes,
    now: datetime,
) -> tuple[Write, ...]:
    found = [ResyncProblem("", reason)]
    writes.state(
        initiative_workstreams.resync_failing(
            opened, barrier, state, found, writes, format_time(now)
        )
    )
    return writes.all()


def prepare_rejection(
    opened: OpenedInitiative, decision: Decision, workstreams: Sequence[str], now: datetime
) -> Prepared:
    """Reject an open cross-repo gate: the named workstreams (or all) go back to work.

    Raises:
        Refused: no such gate is open, a name is unknown, or no comment says what is missing.
    """
    if not decision.comment.strip():
        raise Refused("a rejection needs a comment that says what is missing")
    seen, writes = observe(opened, now)
    barrier, state = _open_gate(opened, seen.state, decision.barrier)
    opened = _with_held(opened, seen.held)
    chosen = [opened.stream(name) for name in dict.fromkeys(workstreams)]
    at, records = format_time(now), dict(obj(state, "workstreams"))
    sent = []
    for stream in chosen or opened.initiative.workstreams:
        if stream.run is None or stream.run.state.reason:
            raise Refused(f"the state of {stream.name} cannot be read: repair it first")
        change = initiative.send_back_from_barrier(
            stream.run, barrier.name, decision.by, decision.comment, at
        )
        writes.run(stream, change)
        records[stream.name] = record(stream) | {"status": change.state["status"]}
        sent.append(stream.name)
    kept = obj(obj(state, "barriers"), barrier.name)
    still = [name for name in kept["reached_by"] if name not in sent]
    rejected = kept | {"status": REJECTED, "reached_by": still, "reached_at": None}
    rejected["comment"] = decision.comment
    state = state | {
        "barriers": obj(state, "barriers") | {barrier.name: rejected},
        "workstreams": records,
        "updated_at": at,
    }
    writes.state(state)
    line = {
        "type": "barrier_rejected", "barrier": barrier.name, "phase": barrier.phase,
        "by": decision.by, "comment": decision.comment, "workstreams": sent,
    }  # fmt: skip
    writes.ledger(list(stamped([line], at, super_run_id(opened.initiative, opened.plan))))
    how = f"{barrier.name}: {', '.join(sent)} back at work in {barrier.phase}"
    would = (f"reject {how}",)
    return Prepared(f"reject {barrier.name}", writes.all(), (f"rejected {how}",), would=would)


def prepare_resync(opened: OpenedInitiative, now: datetime) -> Prepared:
    """Complete the crossing of an approved barrier that failed; then look at all workstreams."""
    barrier = initiative_workstreams.owed_barrier(opened)
    before = opened.initiative.state.value
    if barrier is None:
        seen, writes = observe(_without_failure(opened), now)
        if before.get("status") == RESYNC_FAILED:
            line: Object = {"type": "resync", "barrier": None, "workstreams": []}
            writes.state(seen.state | {"updated_at": format_time(now)})
            run_id = super_run_id(opened.initiative, opened.plan)
            writes.ledger(list(stamped([line], format_time(now), run_id)))
        new = tuple(ledger_sentence(decode(CoordinatorLine, line)) for line in seen.lines)
        return Prepared("resync", writes.all(), new or ("all workstreams are coherent",))
    prepared = _crossing(opened, barrier, before, Writes(opened.root), now)
    messages: tuple[str, ...] = (f"all workstreams cross {barrier.name}",)
    if prepared.messages:
        crossed = initiative_reconcile.was_crossed(opened.initiative.workstreams, barrier.name)
        what = (
            "was already crossed and cannot be checked now" if crossed else "is still not crossed"
        )
        messages = (f"{barrier.name} {what}", *prepared.messages)
    return Prepared(
        f"resync past {barrier.name}",
        prepared.writes,
        messages,
        otherwise=lambda reason: _noting(opened, barrier, before, reason, Writes(opened.root), now),
    )


def mend_workstream(root: Path, name: str, by: str, now: datetime) -> StepOutcome:
    """Make a workstream's lost state again. Raises as `mending.prepare_mending`."""
    from acp_core.protocols.governed.write.initiative_workstreams import prepare_mending

    return _do(root, schema.MEND, lambda opened, at: prepare_mending(opened, name, by, at), now)


def step(root: Path, now: datetime) -> StepOutcome:
    """The coordinator's step: it holds who reached a barrier, opens gates, completes.

    Raises:
        Refused: the initiative cannot be acted on.
    """
    return _do(root, schema.COORDINATE, prepare_step, now)


def approve(root: Path, decision: Decision, now: datetime) -> StepOutcome:
    """Approve a cross-repo gate. Raises as `prepare_approval`."""
    return _do(
        root, schema.APPROVE_BARRIER, lambda opened, at: prepare_approval(opened, decision, at), now,
        crosses=True,
    )  # fmt: skip


def reject(
    root: Path, decision: Decision, workstreams: Sequence[str], now: datetime
) -> StepOutcome:
    """Reject a cross-repo gate. Raises as `prepare_rejection`."""
    return _do(
        root, schema.REJECT_BARRIER,
        lambda opened, at: prepare_rejection(opened, decision, workstreams, at), now,
    )  # fmt: skip


def synchronise(root: Path, now: datetime) -> StepOutcome:
    """Resync after what failed was mended. Raises as `step`."""
    return _do(root, schema.RESYNC, prepare_resync, now, crosses=True)


def _do(
    root: Path, act: str, prepare: Preparing, now: datetime, *, crosses: bool = False
) -> StepOutcome:
    """Look, prepare and write under the locks; then context documents and hooks.

    Args:
        act: the name of the act, which nothing may stand in the way of.
        crosses: the workstreams are to cross the barrier by it: else it has failed.
    """
    warnings: list[str] = []
    failed: tuple[str, ...] = ()
    messages: list[str] = []
    for each in (prepare_step, prepare, prepare_step):  # who arrived; the act; who is done now
        with hold_initiative(root) as (holder, opened):
            if holder.recovered:
                warnings.append(_recovered(holder.recovered))
            for stream in opened.initiative.workstreams:
                _seal(stream, holder)
            if each is prepare:
                check(guard.of_initiative(opened.initiative), act)
            prepared = each(opened, now)
            warnings += prepared.warnings
            try:
                _commit(holder, prepared)
            except Failed as error:
                if prepared.otherwise is None:
                    raise
                failed = (str(error),)
                holder.commit(f"record why not: {prepared.what}", prepared.otherwise(str(error)))
            else:
                messages += prepared.messages
        warnings += initiative_opened.run_owed_hooks(
            root, now
        )  # each is told of the initiative as it then was
    with hold_initiative(root) as (_, opened):
        warnings += initiative_opened.write_context(opened)
        barrier = initiative_workstreams.owed_barrier(opened)
        if opened.initiative.state.value.get("status") == RESYNC_FAILED and barrier and not failed:
            failed = tuple(_sentences(initiative_workstreams.resync_problems(opened, barrier)))
            said = f"no obstacle is left at {barrier.name}: resync"
            if not failed and crosses:  # what was in the way is gone, but they did not cross
                failed = (said,)
            elif not failed:
                warnings.append(said)
    return StepOutcome(tuple(dict.fromkeys(messages)) or NOTHING, failed, tuple(warnings))


def _seal(stream: Workstream, holder: Transaction) -> None:
    """Take over what the existing program lawfully did in a workstream."""
    if stream.run is not None and not stream.run.state.reason:
        seal_lawful(stream.run, content(stream.run.root, schema.STATE), holder)


def _commit(holder: Transaction, prepared: Prepared) -> None:
    if prepared.writes:
        holder.commit(prepared.what, prepared.writes)


def _recovered(found: write_opened.Recovered) -> str:
    if found.completed:
        return f"completed the interrupted write: {found.what}"
    return f"rolled back the interrupted write: {found.what} ({found.reason})"


def _open_gate(opened: OpenedInitiative, state: Object, name: str) -> tuple[PlannedBarrier, Object]:
    """The barrier whose cross-repo gate is open.

    Raises:
        Refused: it is not, with who is missing.
    """
    kept = objects(state.get("barriers"))
    if name and opened.plan.barrier(name) is None:
        known = ", ".join(barrier.name for barrier in opened.plan.barriers) or "none"
        raise Refused(f"no barrier {name!r} (barriers: {known})")
    if state.get("status") == CROSSED:
        raise Refused("a workstream crossed an unapproved barrier: bring the workstream back first")
    for barrier in opened.plan.barriers:
        if kept[barrier.name].get("status") == REACHED and name in ("", barrier.name):
            return barrier, state
    if not name:
        raise Refused("no cross-repo gate is open")
    record = kept[name]
    if record.get("status") == APPROVED:
        raise Refused(f"{name} is already approved; continue with acp governed coordinator resync")
    missing = [s.name for s in opened.plan.streams if s.name not in record["reached_by"]]
    raise Refused(f"the gate of {name} is not open: {', '.join(missing)} not there yet")


def _with_held(
    opened: OpenedInitiative, changes: tuple[tuple[object, Move], ...]
) -> OpenedInitiative:
    """The initiative as it is once those are held that reached a barrier just now."""
    held_now = {id(stream): change for stream, change in changes}
    streams = tuple(
        stream._replace(
            run=replace(stream.run, state=stream.run.state._replace(value=change.state))
        )
        if stream.run is not None and (change := held_now.get(id(stream)))
        else stream
        for stream in opened.initiative.workstreams
    )
    return opened._replace(initiative=replace(opened.initiative, workstreams=streams))


def _without_failure(opened: OpenedInitiative) -> OpenedInitiative:
    state = opened.initiative.state
    if state.value.get("status") != RESYNC_FAILED:
        return opened
    cleared = state._replace(value=state.value | {"status": "active"})
    return opened._replace(initiative=replace(opened.initiative, state=cleared))


def _approved(
    opened: OpenedInitiative,
    state: Object,
    barrier: PlannedBarrier,
    decision: Decision,
    writes: Writes,
    now: datetime,
) -> Object:
    at = format_time(now)
    kept = obj(obj(state, "barriers"), barrier.name) | {
        "status": APPROVED,
        "approved_at": at,
        "approved_by": decision.by,
        "comment": decision.comment,
    }
    line = {
        "type": "barrier_approved", "barrier": barrier.name, "phase": barrier.phase,
        "by": decision.by, "comment": decision.comment,
    }  # fmt: skip
    writes.ledger(list(stamped([line], at, super_run_id(opened.initiative, opened.plan))))
    return state | {"barriers": obj(state, "barriers") | {barrier.name: kept}, "updated_at": at}


def _sentences(found: Sequence[ResyncProblem]) -> list[str]:
    return [f"{each.workstream}: {each.reason}".removeprefix(": ") for each in found]


def _unmet(opened: OpenedInitiative, barrier: PlannedBarrier) -> Iterator[str]:
    """What a human should know before approving: it does not keep the gate shut."""
    from acp_core.protocols.governed.read.gates import lacking

    for stream in opened.initiative.workstreams:
        run = stream.run
        if run is None or run.state.reason or run.phase != barrier.phase:
            continue
        for gate in lacking(run):
            yield f"{stream.name}: {gate.label} is not met ({gate.evidence})"
        objections = ", ".join(o.id for o in run.objections if o.open)
        if objections:
            yield f"{stream.name}: open objections {objections}"


# --- the coordinator looks by itself: after a turn of one of its runs was accepted, or again and again

EVERY = 2.0  # seconds between two looks at the files


def after_turn(run_root: str | Path) -> list[str]:
    """Let the coordinator above a run look at it; returns what it says, nothing where there is none.

    The run's lock must not be held. Never raises: what the coordinator cannot do now, its next
    step does.
    """
    real = os.path.realpath(run_root)
    for above in own_writes.coordinators_above(Path(run_root)):
        try:
            streams = open_initiative(above).initiative.workstreams
            if real not in {os.path.realpath(each.path) for each in streams}:
                continue
            done = step(above, datetime.now(UTC))
        except Refused as error:
            return [f"the coordinator could not check the initiative: {error}"]
        except OSError as error:
            return [f"the coordinator could not check the initiative: {error.strerror or error}"]
        return [*done.messages, *done.failed, *done.warnings] if done.messages != NOTHING else []
    return []


def poll(
    root: Path, *, every: float = EVERY, pause: Callable[[float], None] = time.sleep
) -> Iterator[StepOutcome]:
    """Step whenever a file of the initiative or of its runs changed, until it is completed.

    Args:
        root: the initiative.
        every: seconds between two looks at the files.
        pause: waits so long.

    Raises:
        Refused: the initiative cannot be acted on.
    """
    seen: dict[Path, Stamp | None] = {}
    while True:
        now = {path: stamp(path) for path in _signs(root)}
        if now != seen:
            done = step(root, datetime.now(UTC))
            if done.messages != NOTHING or done.failed:
                yield done
            seen = {path: stamp(path) for path in _signs(root)}
            if open_initiative(root).initiative.status == COMPLETED:
                return
        pause(every)


def _signs(root: Path) -> list[Path]:
    homes = [Path(each.path) for each in open_initiative(root).initiative.workstreams]
    found = [root / schema.MULTI_CONFIG, root / STATE, root / LEDGER]
    return found + [home / name for home in homes for name in (schema.STATE, schema.HISTORY)]


# --- its lost state, made again from its ledger and from what the workstreams are
# The ledger tells which runs were linked, who reached which barrier, what a human approved or
# rejected, and how the last resync ended; what only a workstream's state says is no proof of an
# approval. The damaged file is kept.

_EMPTY: Object = {
    "reached_by": [], "reached_at": None, "approved_at": None, "approved_by": None, "comment": None,
}  # fmt: skip


def prepare_state(root: Path, by: str, now: datetime) -> Prepared:
    """Make the coordinator's state again. Writes nothing.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    plan, initiative = read_plan(root), read_initiative(root)
    if reason := why_state_cannot_be_rebuilt(initiative):
        raise Refused(f"cannot rebuild the coordinator's state: {reason}")
    state = rebuilt_state(root, plan, initiative.ledger, now)
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


def mend_state(root: Path, by: str, now: datetime) -> StepOutcome:
    """Make the coordinator's state again, and let it look at all workstreams.

    Raises:
        Refused: as `prepare`, or a lock is held by another process.
    """
    homes = run_homes(read_initiative(root))
    with opened.hold_files(root, own_writes.COORDINATOR_HOME, homes) as holder:
        prepared = prepare_state(root, by, now)
        holder.commit(prepared.what, prepared.writes)
    seen = step(root, now)
    return seen._replace(
        messages=(
            *prepared.messages,
            *(t for t in seen.messages if t not in NOTHING),
        )
    )


def rebuilt_state(root: Path, plan: Plan, ledger: Log, now: datetime) -> Object:
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
