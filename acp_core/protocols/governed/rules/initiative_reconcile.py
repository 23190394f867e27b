"""One look at all workstreams: what the coordinator's state becomes, and what the ledger gets.

Pure: from what was read of an initiative to what is to be written, and lines of the ledger as
sentences for people. Source: governed protocol specification, "How it works" and "Gates and
resync". Standard library only.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read.initiative import (
    OWN,
    Initiative,
    Plan,
    PlannedBarrier,
    Workstream,
    is_past_phase,
)
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.guard import is_tampered
from acp_core.protocols.governed.schema import CoordinatorLine, Object, decode, obj, objects
from acp_core.protocols.governed.state import Move, format_time

ACTIVE, COMPLETED = "active", "completed"
RESYNC_FAILED, CROSSED = "blocked:resync_failed", "blocked:barrier_crossed"
PENDING, REACHED, APPROVED, REJECTED = "pending", "reached", "approved", "rejected"


class Seen(NamedTuple):
    """What a look leads to. ``held`` are the runs that are now held at a barrier."""

    state: Object
    lines: tuple[Object, ...]
    held: tuple[tuple[Workstream, Move], ...]


def inspect(initiative: Initiative, plan: Plan, now: datetime) -> Seen:
    """Look at every workstream once."""
    before, at = initiative.state.value, format_time(now)
    state = copy.deepcopy(before)
    run_id = super_run_id(initiative, plan)
    if before.get("status") == COMPLETED:
        return Seen(state, (), ())
    found: list[Object] = []
    held = tuple(_held(initiative, plan, now))
    names = {stream.name for stream, _ in held}
    recorded = objects(before.get("barriers"))
    state["barriers"] = {
        barrier.name: _barrier(
            initiative, plan, barrier, recorded.get(barrier.name, {}), names, at, found
        )
        for barrier in plan.barriers
    }
    state["workstreams"] = {
        stream.name: record(stream, held_now=stream.name in names)
        for stream in initiative.workstreams
    }
    found += _failures(initiative, plan)
    crossed = sorted(_crossed(initiative, plan, state))
    if crossed and before.get("status") != CROSSED:
        found += [{"type": "barrier_crossed", "barrier": b, "workstream": w} for w, b in crossed]
    state["status"] = _status(initiative, state, bool(crossed))
    if state["status"] == COMPLETED:
        found.append({"type": "super_run_completed", "workstreams": state["workstreams"]})
    state = {"schema_version": "1.0", "super_run_id": run_id} | state
    if {k: v for k, v in state.items() if k != "updated_at"} != {
        k: v for k, v in before.items() if k != "updated_at"
    }:
        state["updated_at"] = at
    return Seen(state, tuple(stamped(found, at, run_id)), held)


def super_run_id(initiative: Initiative, plan: Plan) -> str:
    """The id that links the runs: the configuration's, else the one that `init` made."""
    return plan.super_run_id or initiative.record.super_run_id


def stamped(lines: Sequence[Object], at: str, run_id: str) -> Iterator[Object]:
    """Lines as the ledger holds them: the type, the time, the initiative, what it concerns."""
    for line in lines:
        yield {"type": line["type"], "at": at, "super_run_id": run_id} | line


def record(stream: Workstream, *, held_now: bool = False) -> Object:
    """What the coordinator keeps of a workstream; of one that cannot be read, what it knew."""
    known, run = stream.recorded, stream.run
    recorded: Object = {"path": known.path or stream.name}
    if run is None or run.state.reason:
        for key in ("run_id", "phase"):
            recorded[key] = known.raw.get(key)
        return recorded | {"status": "unreadable", "last_turn": known.raw.get("last_turn")}
    state = run.state.value
    last = next(
        (line.value.get("turn_id") for line in reversed(run.history.lines)
         if line.value.get("run_id") == state.get("run_id")), None
    )  # fmt: skip
    status = (
        "blocked:barrier" if held_now or read_initiative.held_at(state) else state.get("status")
    )
    # another run in its place is an error that must not be taken over silently
    recorded |= {
        "run_id": known.raw.get("run_id") or state.get("run_id"),
        "phase": state.get("phase"),
    }
    return recorded | {"status": status, "last_turn": last}


def failure(stream: Workstream) -> str:
    """Why a workstream cannot go on by itself, "" where it can (a gate is no failure)."""
    run = stream.run
    if run is None:
        return "its path leads out of the initiative"
    if run.state.reason:
        return f"its state cannot be read: {schema.why(run.state.reason)}"
    if run.status == "failed":
        return "the run has failed"
    if run.status == "blocked" and not read_initiative.held_at(run.state.value) and not run.pending:
        return f"its run is blocked by {run.record.blocked_on}"
    return ""


def reported(initiative: Initiative) -> dict[str, str]:
    """The failures that the ledger tells last of each workstream, by name; "" once over."""
    reasons: dict[str, str] = {}
    for each in initiative.ledger.lines:
        line = decode(CoordinatorLine, each.value)
        if line.type in ("workstream_failed", "workstream_recovered"):
            reasons[line.workstream] = line.reason if line.type == "workstream_failed" else ""
    return reasons


def _held(initiative: Initiative, plan: Plan, now: datetime) -> Iterator[tuple[Workstream, Move]]:
    """The runs that wait at their own gate where a barrier stands: the barrier holds them now."""
    ends = plan.by_phase()
    for stream in initiative.workstreams:
        run = stream.run
        if run is None or run.state.reason or run.unfinished or run.status != "paused":
            continue
        if is_tampered(run):
            continue
        barrier = ends.get(str(run.state.value.get("phase")), "")
        asked = read_initiative.barrier_request(run)
        opened = initiative.record.barrier(barrier).status == APPROVED
        if barrier and asked and not opened and read_initiative.has_worked(run):
            yield stream, read_initiative.hold_at_barrier(run, asked, barrier, now)


def _barrier(
    initiative: Initiative,
    plan: Plan,
    barrier: PlannedBarrier,
    recorded: Object,
    held: set[str],
    at: str,
    found: list[Object],
) -> Object:
    """A barrier's record, with the lines about who reached it added to ``found``."""
    record: Object = {
        "phase": barrier.phase,
        "status": PENDING,
        "reached_by": [],
        "reached_at": None,
        "approved_at": None,
        "approved_by": None,
        "comment": None,
    } | recorded
    record["phase"] = barrier.phase
    if record["status"] == APPROVED:
        return record
    were = schema.strings(recorded, "reached_by")
    here = [
        stream.name
        for stream in initiative.workstreams
        if _is_at(stream, barrier, held) or (stream.name in were and _is_unreadable(stream))
    ]
    for stream in initiative.workstreams:
        if stream.name in here and stream.name not in were:
            asked = read_initiative.barrier_request(stream.run) if stream.run else None
            found.append(
                {"type": "workstream_at_barrier", "barrier": barrier.name, "phase": barrier.phase,
                 "workstream": stream.name, "turn_id": asked.turn if asked else ""}
            )  # fmt: skip
    record["reached_by"] = here
    everybody = len(here) == len(plan.streams)
    if everybody and record["status"] != REACHED:
        record |= {"status": REACHED, "reached_at": at}
        found.append(
            {"type": "barrier_reached", "barrier": barrier.name, "phase": barrier.phase,
             "workstreams": here}
        )  # fmt: skip
    elif not everybody and record["status"] == REACHED:
        record |= {"status": PENDING, "reached_at": None}
    return record


def _is_at(stream: Workstream, barrier: PlannedBarrier, held: set[str]) -> bool:
    run = stream.run
    if run is None or run.state.reason or run.state.value.get("phase") != barrier.phase:
        return False
    return stream.name in held or read_initiative.held_at(run.state.value) == barrier.name


def left(initiative: Initiative, barrier: str) -> list[str]:
    """Who is recorded at a barrier and is not there any more, though its run can be read.

    One that is past it has crossed it, which is damage (see ``write/guard``).
    """
    named = next((each for each in initiative.barriers if each.name == barrier), None)
    if named is None or initiative.layout != OWN:
        return []
    return [
        stream.name
        for stream in initiative.workstreams
        if stream.name in named.reached
        and stream.run is not None
        and not stream.run.state.reason
        and not is_past_phase(stream.run, named.phase)
        and not _waits(stream.run, named.phase, barrier)
    ]


def _waits(run: Run, phase: str, barrier: str) -> bool:
    """Whether a run waits at a barrier, or is held there once the coordinator looks."""
    asks = run.status == "paused" and read_initiative.barrier_request(run) is not None
    return run.phase == phase and (asks or read_initiative.held_at(run.state.value) == barrier)


def _is_unreadable(stream: Workstream) -> bool:
    return stream.run is None or bool(stream.run.state.reason)


def _failures(initiative: Initiative, plan: Plan) -> Iterator[Object]:
    """Lines about workstreams that failed since the last look, or that are well again."""
    known = reported(initiative)
    for stream in initiative.workstreams:
        reason, before = failure(stream), known.get(stream.name, "")
        if reason and reason != before:
            yield {"type": "workstream_failed", "workstream": stream.name, "reason": reason,
                   "phase": stream.phase, "barrier": _affected(initiative, plan, stream)}  # fmt: skip
        elif before and not reason:
            yield {"type": "workstream_recovered", "workstream": stream.name}


def _affected(initiative: Initiative, plan: Plan, stream: Workstream) -> str | None:
    """The barrier that a workstream reaches next, which waits for it: None after the last."""
    phases = (stream.run.phases if stream.run else ()) or initiative.phases
    at = phases.index(stream.phase) if stream.phase in phases else 0
    ends, record = plan.by_phase(), initiative.record
    ahead = (ends[phase] for phase in phases[at:] if phase in ends)
    return next((each for each in ahead if record.barrier(each).status != APPROVED), None)


def _crossed(initiative: Initiative, plan: Plan, state: Object) -> Iterator[tuple[str, str]]:
    for barrier in plan.barriers:
        if obj(state["barriers"], barrier.name).get("status") == APPROVED:
            continue
        for stream in initiative.workstreams:
            if stream.run is not None and is_past_phase(stream.run, barrier.phase):
                yield stream.name, barrier.name


def _status(initiative: Initiative, state: Object, crossed: bool) -> str:
    if crossed:
        return CROSSED
    if initiative.state.value.get("status") == RESYNC_FAILED:
        return RESYNC_FAILED
    done = all(s.run is not None and s.run.status == "completed" for s in initiative.workstreams)
    approved = all(record.get("status") == APPROVED for record in state["barriers"].values())
    return COMPLETED if done and approved else ACTIVE


class ResyncProblem(NamedTuple):
    """A workstream that cannot be resynced, and why."""

    workstream: str
    reason: str


def has_crossed(stream: Workstream, barrier: PlannedBarrier) -> bool:
    """Whether a workstream's state holds the barrier's approval."""
    run = stream.run
    if run is None or run.state.reason:
        return False
    return barrier.name in obj(run.state.value, "barrier_approvals")


def was_crossed(streams: Iterable[Workstream], barrier: str) -> bool:
    """Whether a barrier was crossed: all workstreams cross it or none, so that one tells."""
    return any(
        stream.run is not None
        and not stream.run.state.reason
        and barrier in obj(stream.run.state.value, "barrier_approvals")
        for stream in streams
    )


def resync_failures(initiative: Initiative) -> list[ResyncProblem]:
    """What failed in the latest resync, as the ledger tells it; none once one has succeeded."""
    return [ResyncProblem(each.workstream, each.reason) for each in _failed(initiative).failures]


def failed_barrier(initiative: Initiative) -> str:
    """The barrier of the latest resync, where that failed; "" where it did not."""
    return _failed(initiative).barrier


def _failed(initiative: Initiative) -> CoordinatorLine:
    """The ledger's line of the latest resync, an empty one where that did not fail."""
    for line in reversed(initiative.ledger.lines):
        if line.value.get("type") == "resync":
            break
        if line.value.get("type") == "resync_failed":
            return decode(CoordinatorLine, line.value)
    return CoordinatorLine()


def ledger_sentence(line: CoordinatorLine) -> str:
    """What a line of the ledger tells, safe to show."""
    name, barrier = line.workstream, line.barrier
    by = f" by {line.by}" if line.by else ""
    by += f": {line.comment}" if line.comment else ""
    match line.type:
        case "initiative_started":
            about = f": {line.description}" if line.description else ""
            return f"the initiative started{about}"
        case "workstream_linked":
            return f"{name} is linked: {line.run_id} in {line.phase}"
        case "workstream_at_barrier":
            return f"{name} reached {barrier}"
        case "barrier_reached":
            return f"all workstreams reached {barrier}: its gate needs your approval"
        case "barrier_approved":
            return f"{barrier} approved{by}"
        case "barrier_rejected":
            back = clean_line(", ".join(line.workstreams))
            return f"{barrier} rejected{by}; back at work: {back}"
        case "resync":
            crossed = ", ".join(each.workstream for each in line.crossings)
            return f"{crossed} crossed {barrier}" if line.crossings else "resynced"
        case "resync_failed":
            failed = "; ".join(
                f"{each.workstream}: {each.reason}".removeprefix(": ") for each in line.failures
            )
            if line.crossed:
                return f"the resync of the already crossed {barrier} failed: {failed}"
            return f"no workstream crossed {barrier}: {failed}"
        case "workstream_failed":
            return f"{name} failed: {line.reason}"
        case "workstream_mended":
            where = f"{line.phase}, {line.status}"
            return f"the state of {name} was rebuilt from its history{by}: {where}"
        case "coordinator_mended":
            return f"the coordinator's state was rebuilt from its ledger{by}"
        case "workstream_recovered":
            return f"{name} has resumed"
        case "barrier_crossed":
            return f"{name} crossed the unapproved {barrier}"
        case "super_run_completed":
            return "the initiative is completed"
        case "hook":
            return f"{line.hook}: {line.outcome}" + (f": {line.detail}" if line.detail else "")
        case kind:
            return kind.replace("_", " ")


def ledger_actor(line: CoordinatorLine) -> str:
    """Who did it: a human, a workstream, or the coordinator by itself."""
    own = line.type in ("workstream_at_barrier", "workstream_failed")
    return clean_line(line.by, 80) or (line.workstream if own else "coordinator")
