"""The rules for an initiative's files, where it is stuck, and what one look at it leads to.

A look at all workstreams is pure: from what was read of an initiative to the coordinator's next
state, and lines of its ledger as sentences. Source: governed protocol specification, "Gates and
resync" (the three invariants), "How it works" and "File layout" (coordinator state, coordinator
decision ledger).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from acp_core import model
from acp_core.files.reading import read_bounded
from acp_core.files.transaction import Interrupted
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read.initiative import (
    OWN,
    Barrier,
    Initiative,
    Plan,
    PlannedBarrier,
    Workstream,
    folder,
    is_past_phase,
)
from acp_core.protocols.governed.read.own_writes import COORDINATOR_HOME, interrupted
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.rules.config import check_coordinator_config
from acp_core.protocols.governed.rules.findings import (
    Trouble,
    file_troubles,
    log_troubles,
    of_obstacles,
)
from acp_core.protocols.governed.rules.guard import crossing, is_tampered
from acp_core.protocols.governed.schema import (
    CoordinatorLine,
    Log,
    Object,
    RunState,
    decode,
    items,
    obj,
    objects,
    text,
)
from acp_core.protocols.governed.state import Move, format_time

ACTIVE, COMPLETED = "active", "completed"

RESYNC_FAILED, CROSSED = "blocked:resync_failed", "blocked:barrier_crossed"

PENDING, REACHED, APPROVED, REJECTED = "pending", "reached", "approved", "rejected"


def unreached(phase: str) -> Object:
    """The record of a barrier that nobody has reached."""
    return {
        "phase": phase,
        "status": PENDING,
        "reached_by": [],
        "reached_at": None,
        "approved_at": None,
        "approved_by": None,
        "comment": None,
    }


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
    return Seen(state, tuple(found), held)


def super_run_id(initiative: Initiative, plan: Plan) -> str:
    """The id that links the runs: the configuration's, else the one that `init` made."""
    return plan.super_run_id or initiative.record.super_run_id


def stamped(lines: Iterable[Object], at: str, run_id: str) -> Iterator[Object]:
    """Lines as the ledger holds them: the type, the time, the initiative, what it concerns."""
    for line in lines:
        yield {"type": line["type"], "at": at, "super_run_id": run_id} | line


def record(stream: Workstream, *, held_now: bool = False) -> Object:
    """What the coordinator keeps of a workstream; of one that cannot be read, what it knew."""
    known, run = stream.recorded, stream.readable
    recorded: Object = {"path": known.path or stream.name}
    if run is None:
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
        run = stream.readable
        if run is None or run.unfinished or run.status != "paused":
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
    record = unreached(barrier.phase) | recorded | {"phase": barrier.phase}
    if record["status"] == APPROVED:
        return record
    were = schema.strings(recorded, "reached_by")
    here = [
        stream.name
        for stream in initiative.workstreams
        if _is_at(stream, barrier, held) or (stream.name in were and stream.readable is None)
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
    run = stream.readable
    if run is None or run.state.value.get("phase") != barrier.phase:
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
        and (run := stream.readable)
        and not is_past_phase(run, named.phase)
        and not _waits(run, named.phase, barrier)
    ]


def _waits(run: Run, phase: str, barrier: str) -> bool:
    """Whether a run waits at a barrier, or is held there once the coordinator looks."""
    asks = run.status == "paused" and read_initiative.barrier_request(run) is not None
    return run.phase == phase and (asks or read_initiative.held_at(run.state.value) == barrier)


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


def has_crossed(stream: Workstream, barrier: str) -> bool:
    """Whether a workstream's state holds the barrier's approval."""
    run = stream.readable
    return run is not None and barrier in obj(run.state.value, "barrier_approvals")


def was_crossed(streams: Iterable[Workstream], barrier: str) -> bool:
    """Whether a barrier was crossed: all workstreams cross it or none, so that one tells."""
    return any(has_crossed(stream, barrier) for stream in streams)


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


_SENTENCES = {
    "workstream_linked": "{0.workstream} is linked: {0.run_id} in {0.phase}",
    "workstream_at_barrier": "{0.workstream} reached {0.barrier}",
    "barrier_reached": "all workstreams reached {0.barrier}: its gate needs your approval",
    "barrier_approved": "{0.barrier} approved{by}",
    "workstream_failed": "{0.workstream} failed: {0.reason}",
    "workstream_mended": "the state of {0.workstream} was rebuilt from its history{by}:"
    " {0.phase}, {0.status}",
    "coordinator_mended": "the coordinator's state was rebuilt from its ledger{by}",
    "workstream_recovered": "{0.workstream} has resumed",
    "barrier_crossed": "{0.workstream} crossed the unapproved {0.barrier}",
    "super_run_completed": "the initiative is completed",
}
"""What lines of the ledger tell; ``by`` is who decided, with the comment."""


def ledger_sentence(line: CoordinatorLine) -> str:
    """What a line of the ledger tells, safe to show."""
    barrier = line.barrier
    by = f" by {line.by}" if line.by else ""
    by += f": {line.comment}" if line.comment else ""
    match line.type:
        case "initiative_started":
            about = f": {line.description}" if line.description else ""
            return f"the initiative started{about}"
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
        case "hook":
            return f"{line.hook}: {line.outcome}" + (f": {line.detail}" if line.detail else "")
    sentence = _SENTENCES.get(line.type)
    return sentence.format(line, by=by) if sentence else line.type.replace("_", " ")


def ledger_actor(line: CoordinatorLine) -> str:
    """Who did it: a human, a workstream, or the coordinator by itself."""
    own = line.type in ("workstream_at_barrier", "workstream_failed")
    return clean_line(line.by, 80) or (line.workstream if own else "coordinator")


_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING


def check_initiative(initiative: Initiative, now: datetime) -> list[Trouble]:
    """Everything that is wrong with an initiative, its files first."""
    home = folder(initiative.layout)
    found = file_troubles(schema.MULTI_CONFIG, initiative.config)
    found += check_coordinator_config(initiative)
    found += _state(initiative, f"{home}/state.json")
    if initiative.layout != OWN and not initiative.state.reason:
        found += file_troubles(f"{home}/barriers.json", initiative.barriers_file)
    ledger = "ledger.jsonl" if initiative.layout == OWN else "decision-ledger.jsonl"
    found += log_troubles(f"{home}/{ledger}", initiative.ledger)
    found += log_troubles(f"{home}/history.jsonl", initiative.history)
    found += log_troubles(f"{home}/barrier-ledger.jsonl", initiative.barrier_ledger)
    found += _contexts(initiative)
    left = interrupted(initiative.root, COORDINATOR_HOME) if initiative.layout == OWN else None
    if left is not None:  # until it is finished, the files cannot agree
        stuck = of_obstacles(guard.of_initiative(initiative))
        return found + (stuck or [_interrupted(left)])
    found += check_coordinator(initiative)
    return found + _workstreams(initiative) + check_barriers(initiative)


def _state(initiative: Initiative, document: str) -> list[Trouble]:
    """What is wrong with the coordinator's state; the ledger makes one again that is lost."""
    found = file_troubles(document, initiative.state, bool(initiative.ledger.lines))
    if why_state_cannot_be_rebuilt(initiative):
        return found
    remedy = "Rebuild it from the ledger; a damaged file is kept."
    return [each._replace(action=schema.MEND_STATE, remedy=remedy) for each in found]


def _interrupted(left: Interrupted) -> Trouble:
    message = f"Interrupted, with {left.done} of {left.total} files written: {left.what}."
    remedy = "Resync: any command on the initiative completes it or rolls it back."
    return Trouble(
        "INTERRUPTED", _WARNING, message, remedy, ".coordinator/acp-journal.json",
        group="A6", since=left.at, action=schema.RESYNC,
    )  # fmt: skip


def _workstreams(initiative: Initiative) -> list[Trouble]:
    found = []
    begun = not initiative.state.reason
    for stream in initiative.workstreams:
        run = stream.run
        if run is None:
            message = f"The path of workstream {stream.name} leads out of the initiative."
            found.append(Trouble("PATH", _ERROR, message, document=schema.MULTI_CONFIG))
            continue
        if begun and run.state.reason:
            message = f"The state of workstream {stream.name} cannot be read: {schema.why(run.state.reason)}"
            remedy = "Correct the file; until then the initiative cannot proceed."
            action = ""
            if initiative.layout == OWN and not why_workstream_cannot_be_mended(stream):
                action, remedy = schema.MEND, "Restore it, or rebuild it."
            trouble = Trouble(
                "CHILD_STATE", _ERROR, message, remedy, group="A3", participant=stream.name,
                action=action,
                explains=tuple(t.key for t in file_troubles(schema.STATE, run.state)),
            )  # fmt: skip
            found.append(trouble)
            continue
        known, real = clean_line(stream.recorded.run_id, 80), run.record.run_id
        if known and real and known != real:
            message = f"Workstream {stream.name} runs {real}; the coordinator knows {known}."
            remedy = "Restore that run, or start the initiative again with the other."
            found.append(Trouble("RUN_ID", _ERROR, message, remedy, group="A4"))
        if initiative.layout == OWN and begun:
            found += _linked(initiative, stream.name, run.record)
        if initiative.status == "completed" and run.status != "completed":
            message = f"The initiative is completed while workstream {stream.name} is {run.status}."
            remedy = "Approve that run's completion."
            found.append(Trouble("COMPLETED_EARLY", _WARNING, message, remedy, group="D3"))
    on = initiative.record.blocked_reason
    if initiative.status.startswith("blocked") and initiative.layout != OWN:
        message = f"The initiative is {initiative.status}" + (f": {on}" if on else "")
        remedy = "Fix the failure, then resync."
        found.append(Trouble("INITIATIVE_BLOCKED", _WARNING, message, remedy, group="E2"))
    return found


def _linked(initiative: Initiative, name: str, state: RunState) -> list[Trouble]:
    wanted, given = initiative.settings.super_run_id, state.super_run_id
    if not wanted or given == wanted or not state.run_id:
        return []
    message = f"Workstream {name} has the super_run_id “{given}” instead of “{wanted}”."
    remedy = "Write the initiative's id into its state; until then it cannot cross a barrier."
    return [Trouble("SUPER_RUN_ID", _ERROR, message, remedy, schema.MULTI_CONFIG, group="A7")]


def _contexts(initiative: Initiative) -> list[Trouble]:
    home = initiative.root / folder(initiative.layout) / "context"
    try:
        names = sorted(entry.name for entry in home.iterdir())[:200]
    except OSError:
        return []
    bad = []
    for name in names:
        path = schema.inside(home, f"{name}/COORDINATOR_CONTEXT.md")
        try:
            if path and "[object Object]" in read_bounded(path, 1 << 20).decode("utf-8", "replace"):
                bad.append(name)
        except OSError:
            continue
    if not bad:
        return []
    message = "The context documents tell the agents “[object Object]” instead of the decisions: "
    message += clean_line(", ".join(bad))
    remedy = "Write the decisions to TALK.md; the program writes no others."
    at_work = any(each.run and each.run.turns for each in initiative.workstreams)
    group = "C3" if at_work and initiative.status == "active" else ""
    return [Trouble("CONTEXT_EMPTY", _WARNING, message, remedy, group=group, wanted=False)]


_STATE = f"{folder(OWN)}/state.json"


# --- what is wrong with the barriers, and how an initiative gets stuck at them


def check_barriers(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the barriers."""
    found = list(_phases(initiative))
    if initiative.layout != OWN:
        return [*found, *_existing(initiative), *_diverged(initiative)]
    if not initiative.state.reason:
        found += [*_blocked(initiative), *_own(initiative)]
    return found


def _phases(initiative: Initiative) -> Iterator[Trouble]:
    """Barriers in phases that there are not: nobody can ever reach them."""
    for barrier in initiative.barriers:
        if barrier.phase not in initiative.phases:
            message = f"Barrier {barrier.name} names the unknown phase “{barrier.phase}”."
            remedy = "Name a phase of the workstreams."
            yield Trouble("BARRIER_PHASE", _ERROR, message, remedy, schema.MULTI_CONFIG, group="D8")


def _blocked(initiative: Initiative) -> Iterator[Trouble]:
    """The initiative's own block, with what failed as the ledger tells it."""
    if initiative.status == RESYNC_FAILED:
        failed = resync_failures(initiative)
        reasons = [f"{each.workstream}: {each.reason}".removeprefix(": ") for each in failed]
        message = "The last resync failed"
        if not was_crossed(initiative.workstreams, failed_barrier(initiative)):
            message += ", and no workstream crossed the barrier"
        remedy = "Fix the failure, then resync."
        if failed and all(_is_mended(initiative, each.workstream) for each in failed):
            message += f". The failure is fixed: {', '.join(each.workstream for each in failed)}"
            remedy = "Resync: all workstreams cross, or acp reports the obstacle."
        elif reasons:
            message += f": {'; '.join(reasons[:3])}"
        yield Trouble(
            "RESYNC_FAILED", _WARNING, message, remedy, _STATE, group="E2",
            action=schema.RESYNC, evidence=tuple(reasons[:20]),
        )  # fmt: skip
    elif initiative.status.startswith("blocked") and initiative.status != CROSSED:
        message = f"The initiative is {initiative.status}."
        yield Trouble("INITIATIVE_BLOCKED", _WARNING, message, document=_STATE, group="E2")


def _is_mended(initiative: Initiative, name: str) -> bool:
    """Whether a workstream of which a resync failed can be read again, and is not blocked."""
    return any(s.name == name and not failure(s) for s in initiative.workstreams)


def _own(initiative: Initiative) -> Iterator[Trouble]:
    for barrier in initiative.barriers:
        if barrier.phase not in initiative.phases:
            continue
        for name in barrier.required:
            stream = next((s for s in initiative.workstreams if s.name == name), None)
            if stream is not None and stream.run and not stream.run.state.reason:
                yield from _of_stream(initiative, barrier, stream, stream.run)


def _of_stream(
    initiative: Initiative, barrier: Barrier, stream: Workstream, run: Run
) -> Iterator[Trouble]:
    name, state = stream.name, run.state.value
    if barrier.phase not in run.phases:
        message = f"Workstream {name} can never reach barrier {barrier.name}: the workstream has no phase "
        remedy = "Add the phase to its configuration, or remove the barrier."
        yield Trouble(
            "BARRIER_UNREACHABLE", _ERROR, f"{message}“{barrier.phase}”.", remedy,
            schema.MULTI_CONFIG, group="D8",
        )  # fmt: skip
        return
    past = is_past_phase(run, barrier.phase)
    if past and barrier.status != "approved":
        yield from of_obstacles([crossing(initiative.root, name, barrier.name)])
    elif run.status == "failed" and barrier.status != "approved":
        message = (
            f"Workstream {name} failed before barrier {barrier.name}, which is waiting for it."
        )
        remedy = "Start another run there, or end the initiative."
        yield Trouble("BARRIER_UNREACHABLE", _WARNING, message, remedy, group="D8")
    crossed = past or barrier.name in obj(state, "barrier_approvals")
    if barrier.status == "approved" and not crossed and initiative.status != RESYNC_FAILED:
        message = f"Barrier {barrier.name} is approved, but workstream {name} did not cross it."
        remedy = "Resync: all workstreams cross, or acp reports the obstacle."
        yield Trouble(
            "APPROVED_NOT_CROSSED", _WARNING, message, remedy, _STATE, group="D11",
            since=barrier.approved_at, action=schema.RESYNC,
        )  # fmt: skip


def _existing(initiative: Initiative) -> Iterator[Trouble]:
    """What gets stuck in the existing program's layout, and is flagged nowhere in its files."""
    phases = initiative.phases
    here = phases.index(initiative.phase) if initiative.phase in phases else -1
    streams = {stream.name: stream for stream in initiative.workstreams}
    for barrier in initiative.barriers:
        if barrier.phase not in phases:
            continue
        place = phases.index(barrier.phase)
        for name in barrier.required:
            run = streams[name].run if name in streams else None
            if run and not run.state.reason and name in barrier.reached and _stuck(run, place):
                message = (
                    f"Barrier {barrier.name} counts workstream {name} as done while it is blocked."
                )
                remedy = f"Resolve what blocks {name} before the gate is approved."
                yield Trouble("BARRIER_FALSE", _WARNING, message, remedy, group="D4")
        if barrier.status == "satisfied" or place != here or initiative.status != "active":
            continue
        if initiative.pending or any(s.run and s.run.turns for s in initiative.workstreams):
            continue
        if barrier.kind == "shared_human_gate":
            message = f"Barrier {barrier.name} is waiting for a gate that no run ever requests."
            remedy = "The program cannot proceed alone here: approve the runs one by one."
            yield Trouble("BARRIER_NO_GATE", _WARNING, message, remedy, group="D5")
        elif barrier.status == "partially_satisfied" and set(barrier.required) == _accepted(
            initiative, barrier.phase
        ):
            message = (
                f"Barrier {barrier.name} is only partly satisfied, and no work is left to assign."
            )
            remedy = "Accept the missing results in their repositories manually."
            yield Trouble("BARRIER_STUCK", _WARNING, message, remedy, group="D6")


def _diverged(initiative: Initiative) -> Iterator[Trouble]:
    """Repositories whose run ended or stopped without the existing program's coordinator.

    Its table of repositories says how each stood when it last looked. In the last phase, runs are
    completed one by one before the initiative is; a block of the coordinator tells of its own.
    """
    if initiative.state.reason or initiative.status not in ("active", "paused"):
        return
    final = initiative.phases and initiative.phase == initiative.phases[-1]
    for stream in initiative.workstreams:
        run = stream.readable
        if run is None or stream.recorded.status == run.status:
            continue
        name = stream.name
        if run.status == "completed" and not final:
            message = f"Workstream {name} is completed while the initiative is in "
            message += f"{initiative.phase or 'no phase'}."
            remedy = "Resync, then start another run there if the later phases still need it."
            yield Trouble("REPO_COMPLETED", _WARNING, message, remedy, group="D3", participant=name)
        elif run.status == "blocked" and not _is_reported(initiative, stream, run):
            on = f" ({run.record.blocked_on})" if run.record.blocked_on else ""
            message = f"Workstream {name} is blocked{on}, but the coordinator does not know it."
            remedy = f"Resolve what blocks {name}, then resync."
            yield Trouble("REPO_BLOCKED", _WARNING, message, remedy, group="D4", participant=name)


def _is_reported(initiative: Initiative, stream: Workstream, run: Run) -> bool:
    """Whether a barrier's own rule says already that a workstream is blocked."""
    phases = initiative.phases
    return any(
        barrier.phase in phases
        and stream.name in barrier.required
        and stream.name in barrier.reached
        and _stuck(run, phases.index(barrier.phase))
        for barrier in initiative.barriers
    )


def _stuck(run: Run, place: int) -> bool:
    at = run.phases.index(run.phase) if run.phase in run.phases else -1
    return run.status == "blocked" and at == place


def _accepted(initiative: Initiative, phase: str) -> set[str]:
    return {
        stream.name
        for stream in initiative.workstreams
        if stream.run and any(line.value.get("phase") == phase for line in stream.run.history.lines)
    }


_LEDGER = f"{folder(OWN)}/ledger.jsonl"

_STATUSES = (
    ACTIVE,
    COMPLETED,
    RESYNC_FAILED,
    CROSSED,
)

_BARRIERS = (
    PENDING,
    REACHED,
    APPROVED,
    REJECTED,
)

_MOST = 50  # findings of the ledger


# --- what the coordinator keeps: its state and its ledger


def check_coordinator(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the coordinator's state and ledger."""
    if initiative.layout != OWN:
        return []
    found = [] if initiative.state.reason else list(_check_state(initiative))
    return found + list(_check_ledger(initiative))[:_MOST]


def _check_state(initiative: Initiative) -> Iterator[Trouble]:
    state, wanted = initiative.record, initiative.settings.super_run_id
    if state.status not in _STATUSES:
        yield _wrong(f"Unknown initiative status “{state.status}”.")
    if wanted and state.super_run_id != wanted:
        given = state.super_run_id
        yield _wrong(
            f"The coordinator's state belongs to “{given}”, the configuration to “{wanted}”."
        )
    names = {stream.name for stream in initiative.workstreams}
    if lost := sorted(names - {clean_line(name, 80) for name in state.workstreams}):
        yield _wrong(f"The coordinator's state lacks {', '.join(lost[:5])}.")
    for barrier in initiative.barriers:
        record = state.barriers.get(barrier.name)
        if record is None:
            yield _wrong(f"The coordinator's state lacks the barrier {barrier.name}.")
            continue
        if record.status not in _BARRIERS:
            known = ", ".join(_BARRIERS)
            yield _wrong(f"The barrier {barrier.name} must be one of: {known}.")
        if record.status == APPROVED:
            lacking = [k for k in ("approved_at", "approved_by") if not text(record.raw, k)]
            if lacking:
                yield _wrong(f"The approved barrier {barrier.name} lacks {', '.join(lacking)}.")
        if unknown := sorted({*record.reached_by} - names):
            named = clean_line(", ".join(unknown), 120)
            yield _wrong(
                f"The barrier {barrier.name} was reached by {named}, an unknown workstream."
            )


def _check_ledger(initiative: Initiative) -> Iterator[Trouble]:
    wanted = initiative.record.super_run_id
    for line in initiative.ledger.lines:
        lacking = [key for key in ("type", "at", "super_run_id") if not text(line.value, key)]
        message = f"the line lacks {', '.join(lacking)}" if lacking else ""
        recorded = text(line.value, "super_run_id", 120)
        if not lacking and wanted and recorded != wanted:
            message = f"the line belongs to the initiative “{recorded}”"
        if message:
            yield Trouble(
                "RECORD", model.Severity.WARNING, f"{_LEDGER}, line {line.number}: {message}.",
                "Check who wrote it; acp never rewrites an append-only log.", _LEDGER, line.number,
            )  # fmt: skip


def _wrong(message: str) -> Trouble:
    remedy = "Correct the file, or step the coordinator, which records what it finds."
    return Trouble("COORDINATOR_STATE", model.Severity.WARNING, message, remedy, _STATE)


# --- what can be mended


def why_state_cannot_be_rebuilt(initiative: Initiative) -> str:
    """Why the coordinator's state cannot be made again, "" where it can."""
    if initiative.layout != OWN:
        return "the agentxchain program maintains it"
    if not initiative.state.reason:
        return "it can be read"
    if initiative.config.reason:
        return f"{schema.MULTI_CONFIG}: {initiative.config.reason}"
    if initiative.ledger.problems:
        line, reason = initiative.ledger.problems[0]
        return f"its ledger, line {line}: {reason}"
    if not linked_workstreams(initiative.ledger):
        return "its ledger does not record its start"
    return ""


def linked_workstreams(ledger: Log) -> dict[str, Object]:
    """What the ledger tells of each workstream: its folder, its run, its last phase."""
    found: dict[str, Object] = {}
    for line in ledger.lines:
        value, name = line.value, line.value.get("workstream")
        if value.get("type") == "workstream_linked" and isinstance(name, str):
            found[name] = {key: value.get(key) for key in ("path", "run_id", "phase")}
        for moved in items(value, "workstreams") if value.get("type") == "resync" else ():
            of = found.get(text(moved, "workstream", 80))
            if of is not None:
                of["phase"] = moved.get("to")
    return found


def why_workstream_cannot_be_mended(stream: Workstream, *, crossed: bool = False) -> str:
    """Why a workstream's state cannot be made again, "" where it can.

    Args:
        stream: the workstream.
        crossed: whether it is past a barrier that nobody approved.
    """
    run, known = stream.run, stream.recorded
    if run is None:
        return "its path leads out of the initiative"
    if not run.state.reason and not crossed:
        return "its state is readable, and it crossed no closed barrier"
    if run.config.reason:
        return f"its configuration cannot be read: {schema.why(run.config.reason)}"
    for name, log in ((schema.HISTORY, run.history), (schema.LEDGER, run.ledger)):
        if log.problems:
            return f"{name}: {log.problems[0][1]}"
    if not known.run_id:
        return "the coordinator does not know its run"
    if known.phase not in run.phases and not crossed:
        return "the coordinator does not know its phase"
    return ""
