"""What is wrong with the barriers of an initiative, and how it gets stuck at them.

Source: governed protocol specification, "Gates and resync" (the three invariants).
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Barrier, Initiative, Workstream, folder
from acp_core.protocols.governed.read.links import is_past
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import initiative_reconcile
from acp_core.protocols.governed.rules.finding import Trouble, of_obstacles
from acp_core.protocols.governed.rules.guard import crossing
from acp_core.protocols.governed.schema import act_names, obj

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING
_STATE = f"{folder(OWN)}/state.json"


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
    if initiative.status == initiative_reconcile.RESYNC_FAILED:
        failed = initiative_reconcile.resync_failures(initiative)
        reasons = [f"{each.workstream}: {each.reason}".removeprefix(": ") for each in failed]
        message = "The last resync failed"
        if not initiative_reconcile.was_crossed(
            initiative.workstreams, initiative_reconcile.failed_barrier(initiative)
        ):
            message += ", and no workstream crossed the barrier"
        remedy = "Fix the failure, then resync."
        if failed and all(_is_mended(initiative, each.workstream) for each in failed):
            message += f". The failure is fixed: {', '.join(each.workstream for each in failed)}"
            remedy = "Resync: all workstreams cross, or acp reports the obstacle."
        elif reasons:
            message += f": {'; '.join(reasons[:3])}"
        yield Trouble(
            "RESYNC_FAILED", _WARNING, message, remedy, _STATE, group="E2",
            action=act_names.RESYNC, evidence=tuple(reasons[:20]),
        )  # fmt: skip
    elif (
        initiative.status.startswith("blocked")
        and initiative.status != initiative_reconcile.CROSSED
    ):
        message = f"The initiative is {initiative.status}."
        yield Trouble("INITIATIVE_BLOCKED", _WARNING, message, document=_STATE, group="E2")


def _is_mended(initiative: Initiative, name: str) -> bool:
    """Whether a workstream of which a resync failed can be read again, and is not blocked."""
    return any(
        s.name == name and not initiative_reconcile.failure(s) for s in initiative.workstreams
    )


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
    past = is_past(run, barrier.phase)
    if past and barrier.status != "approved":
        yield from of_obstacles([crossing(initiative.root, name, barrier.name)])
    elif run.status == "failed" and barrier.status != "approved":
        message = (
            f"Workstream {name} failed before barrier {barrier.name}, which is waiting for it."
        )
        remedy = "Start another run there, or end the initiative."
        yield Trouble("BARRIER_UNREACHABLE", _WARNING, message, remedy, group="D8")
    crossed = past or barrier.name in obj(state, "barrier_approvals")
    if (
        barrier.status == "approved"
        and not crossed
        and initiative.status != initiative_reconcile.RESYNC_FAILED
    ):
        message = f"Barrier {barrier.name} is approved, but workstream {name} did not cross it."
        remedy = "Resync: all workstreams cross, or acp reports the obstacle."
        yield Trouble(
            "APPROVED_NOT_CROSSED", _WARNING, message, remedy, _STATE, group="D11",
            since=barrier.approved_at, action=act_names.RESYNC,
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
        run = stream.run
        if run is None or run.state.reason or stream.recorded.status == run.status:
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
