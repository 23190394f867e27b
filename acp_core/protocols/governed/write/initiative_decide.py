"""What a human decides about an initiative, and the coordinator's own step. Every write of both.

The resync after a barrier's approval: every workstream crosses, or none. First all are checked,
then all are written as one, then all are read again. What failed stands in the ledger; the
coordinator is then ``blocked:resync_failed`` until a resync succeeds.

A workstream's lost state is made again: its history tells which turns were accepted and what the
last one asked for; the coordinator tells the run, its phase, and which barriers it crossed. A turn
that was under way is lost: another is assigned. The damaged file is kept. A workstream that crossed
a barrier which nobody approved is taken back to it in the same way. Source: governed protocol
specification, "Gates and resync" (its three invariants; a corrupt state file needs a human), "How
it works" and "File layout".
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.files.transaction import REPLACE, Transaction, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, initiative, own_writes
from acp_core.protocols.governed.read.initiative import (
    Initiative,
    Plan,
    PlannedBarrier,
    Workstream,
    read_initiative,
    read_plan,
)
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import guard, initiatives
from acp_core.protocols.governed.rules.initiatives import (
    ACTIVE,
    APPROVED,
    COMPLETED,
    CROSSED,
    REACHED,
    REJECTED,
    RESYNC_FAILED,
    ResyncProblem,
    has_crossed,
    ledger_sentence,
    linked_workstreams,
    record,
    super_run_id,
    unreached,
    was_crossed,
    why_state_cannot_be_rebuilt,
    why_workstream_cannot_be_mended,
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
from acp_core.protocols.governed.write import initiative_opened, opened, restore
from acp_core.protocols.governed.write import opened as write_opened
from acp_core.protocols.governed.write.initiative_opened import (
    LEDGER,
    STATE,
    InitiativePlan,
    OpenedInitiative,
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

Planning = Callable[[OpenedInitiative], InitiativePlan]


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


def plan_step(opened: OpenedInitiative, now: datetime) -> InitiativePlan:
    """Look at all workstreams and write down what changed."""
    seen, writes = observe(opened, now)
    messages = tuple(ledger_sentence(decode(CoordinatorLine, line)) for line in seen.lines)
    return InitiativePlan("check all workstreams", writes.all(), messages)


def plan_approval(opened: OpenedInitiative, decision: Decision, now: datetime) -> InitiativePlan:
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
        noted = opened.writes(now)
        after = _approved(opened, seen.state, barrier, decision, noted, now)
        return _noting(opened, barrier, after, reason, noted, now)

    return InitiativePlan(
        f"approve {barrier.name} and resync",
        prepared.writes,
        (f"approved {said[0]}", *said[1:]),
        tuple(_unmet(opened, barrier)),
        otherwise,
        (f"approve {said[0]}", *said[1:]),
    )


def _crossing(
    opened: OpenedInitiative, barrier: PlannedBarrier, state: Object, writes: Writes, now: datetime
) -> InitiativePlan:
    """All workstreams past an approved barrier; ``messages`` say what keeps them from it."""
    found, at = resync_problems(opened, barrier), format_time(now)
    if found:
        writes.state(resync_failing(opened, barrier, state, found, writes, at))
    else:
        approval = obj(obj(state, "barriers"), barrier.name)
        writes.state(resync_crossing(opened, barrier, state, approval, writes, at))
    return InitiativePlan("", writes.all(), tuple(_sentences(found)))


def _noting(
    opened: OpenedInitiative,
    barrier: PlannedBarrier,
    state: Object,
    reason: str,
    writes: Writes,
    now: datetime,
) -> tuple[Write, ...]:
    found = [ResyncProblem("", reason)]
    writes.state(resync_failing(opened, barrier, state, found, writes, format_time(now)))
    return writes.all()


def plan_rejection(
    opened: OpenedInitiative, decision: Decision, workstreams: Sequence[str], now: datetime
) -> InitiativePlan:
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
        if stream.readable is None:
            raise Refused(f"the state of {stream.name} cannot be read: repair it first")
        change = initiative.send_back_from_barrier(
            stream.readable, barrier.name, decision.by, decision.comment, at
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
    writes.ledger(line)
    how = f"{barrier.name}: {', '.join(sent)} back at work in {barrier.phase}"
    would = (f"reject {how}",)
    return InitiativePlan(f"reject {barrier.name}", writes.all(), (f"rejected {how}",), would=would)


def plan_resync(opened: OpenedInitiative, now: datetime) -> InitiativePlan:
    """Complete the crossing of an approved barrier that failed; then look at all workstreams."""
    barrier = owed_barrier(opened)
    before = opened.initiative.state.value
    if barrier is None:
        seen, writes = observe(_without_failure(opened), now)
        if before.get("status") == RESYNC_FAILED:
            line: Object = {"type": "resync", "barrier": None, "workstreams": []}
            writes.state(seen.state | {"updated_at": format_time(now)})
            writes.ledger(line)
        new = tuple(ledger_sentence(decode(CoordinatorLine, line)) for line in seen.lines)
        return InitiativePlan("resync", writes.all(), new or ("all workstreams are coherent",))
    prepared = _crossing(opened, barrier, before, opened.writes(now), now)
    messages: tuple[str, ...] = (f"all workstreams cross {barrier.name}",)
    if prepared.messages:
        crossed = initiatives.was_crossed(opened.initiative.workstreams, barrier.name)
        what = (
            "was already crossed and cannot be checked now" if crossed else "is still not crossed"
        )
        messages = (f"{barrier.name} {what}", *prepared.messages)
    return InitiativePlan(
        f"resync past {barrier.name}",
        prepared.writes,
        messages,
        otherwise=lambda reason: _noting(opened, barrier, before, reason, opened.writes(now), now),
    )


def step(root: Path, now: datetime) -> StepOutcome:
    """The coordinator's step: it holds who reached a barrier, opens gates, completes.

    Raises:
        Refused: the initiative cannot be acted on.
    """
    return carry_out_in_initiative(root, schema.COORDINATE, partial(plan_step, now=now), now)


def carry_out_in_initiative(
    root: Path, act: str, plan: Planning, now: datetime, *, crosses: bool = False
) -> StepOutcome:
    """Look, plan and write under the locks; then context documents and hooks.

    Args:
        root: the initiative.
        act: the name of the act, which nothing may stand in the way of.
        plan: what it does, of the initiative as it is then.
        now: the time.
        crosses: the workstreams are to cross the barrier by it: else it has failed.
    """
    warnings: list[str] = []
    failed: tuple[str, ...] = ()
    messages: list[str] = []
    look: Planning = partial(plan_step, now=now)
    for each in (look, plan, look):  # who arrived; the act; who is done now
        with hold_initiative(root) as (holder, opened):
            if holder.recovered:
                warnings.append(_recovered(holder.recovered))
            for stream in opened.initiative.workstreams:
                _seal(stream, holder)
            if each is plan or act == schema.COORDINATE:
                check(guard.of_initiative(opened.initiative), act)
            prepared = each(opened)
            warnings += prepared.warnings
            try:
                if prepared.writes:
                    holder.commit(prepared.what, prepared.writes)
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
        barrier = owed_barrier(opened)
        if opened.initiative.state.value.get("status") == RESYNC_FAILED and barrier and not failed:
            failed = tuple(_sentences(resync_problems(opened, barrier)))
            said = f"no obstacle is left at {barrier.name}: resync"
            if not failed and crosses:  # what was in the way is gone, but they did not cross
                failed = (said,)
            elif not failed:
                warnings.append(said)
    return StepOutcome(tuple(dict.fromkeys(messages)) or NOTHING, failed, tuple(warnings))


def _seal(stream: Workstream, holder: Transaction) -> None:
    """Take over what the existing program lawfully did in a workstream."""
    if run := stream.readable:
        seal_lawful(run, content(run.root, schema.STATE), holder)


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
    writes.ledger(line)
    return state | {"barriers": obj(state, "barriers") | {barrier.name: kept}, "updated_at": at}


def _sentences(found: Sequence[ResyncProblem]) -> list[str]:
    return [f"{each.workstream}: {each.reason}".removeprefix(": ") for each in found]


def _unmet(opened: OpenedInitiative, barrier: PlannedBarrier) -> Iterator[str]:
    """What a human should know before approving: it does not keep the gate shut."""
    from acp_core.protocols.governed.read.run import lacking

    for stream in opened.initiative.workstreams:
        run = stream.readable
        if run is None or run.phase != barrier.phase:
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


def plan_state(root: Path, by: str, now: datetime) -> InitiativePlan:
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
    writes = Writes(root, format_time(now), text(state, "super_run_id", 120))
    writes.state(state)
    writes.ledger(line)
    how = f"the coordinator's state from its ledger: {_summary(state)}"
    return InitiativePlan(
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
        prepared = plan_state(root, by, now)
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
    barriers = {barrier.name: unreached(barrier.phase) for barrier in plan.barriers}
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


def mendable(opened: OpenedInitiative) -> list[str]:
    """The workstreams whose state is lost, or past a barrier that is shut, and can be made again."""
    return [s.name for s in opened.initiative.workstreams if not _why_not_mendable(opened, s)]


def _why_not_mendable(opened: OpenedInitiative, stream: Workstream) -> str:
    run = stream.run
    crossed = _crossed(opened, stream)
    if crossed and run is not None:
        turn = next((each for each in run.turns if each.running), None)
        if turn is not None:
            return f"the program of {turn.role} is running: stop it first (acp governed stop-turn)"
    return why_workstream_cannot_be_mended(stream, crossed=bool(crossed))


def plan_mending(opened: OpenedInitiative, name: str, by: str, now: datetime) -> InitiativePlan:
    """Make the state of a workstream again.

    Raises:
        Refused: it is not lost, or cannot be made again.
    """
    stream = opened.stream(name)
    reason = _why_not_mendable(opened, stream)
    if reason or stream.run is None:
        raise Refused(f"cannot rebuild the state of {name}: {reason}")
    at = format_time(now)
    move = rebuilt_workstream(opened, stream, stream.run, now)
    writes = opened.writes(now)
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
    writes.ledger(line)
    how = f"the state of {name} from its history: {_workstream_summary(move.state)}"
    return InitiativePlan(
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


def _workstream_summary(state: Object) -> str:
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
    found = [b for b in approved if not all(_was_past(stream, b) for stream in streams)]
    found += [b for b in approved if not all(has_crossed(stream, b.name) for stream in streams)]
    return next(iter(found), None)


def _was_past(stream: Workstream, barrier: PlannedBarrier) -> bool:
    """Whether it has crossed; of one that cannot be read, as far as its last known phase tells."""
    run = stream.run
    if run is None or not run.state.reason:
        return has_crossed(stream, barrier.name)
    at, phases = stream.recorded.phase, run.phases
    known = at in phases and barrier.phase in phases
    return known and phases.index(at) > phases.index(barrier.phase)


def resync_problems(opened: OpenedInitiative, barrier: PlannedBarrier) -> list[ResyncProblem]:
    """Every reason why not all workstreams can cross now."""
    found = []
    run_id = super_run_id(opened.initiative, opened.plan)
    for stream in opened.initiative.workstreams:
        if not has_crossed(stream, barrier.name):
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
    by, comment = text(approval, "approved_by", 200), str(approval.get("comment") or "")
    approved_at = str(approval.get("approved_at"))
    moved = []
    records = dict(obj(state, "workstreams"))
    for stream in opened.initiative.workstreams:
        if has_crossed(stream, barrier.name) or stream.run is None:
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
    writes.ledger(line)
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
    failures = [problem._asdict() for problem in found]
    line: Object = {"type": "resync_failed", "barrier": barrier.name, "failures": failures}
    if was_crossed(opened.initiative.workstreams, barrier.name):
        line["crossed"] = True
    writes.ledger(line)
    return state | {"status": RESYNC_FAILED, "updated_at": at}
