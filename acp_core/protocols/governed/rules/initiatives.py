"""The rules for an initiative's files, and the states in which an initiative is stuck.

Source: governed protocol specification, "Gates and resync" (the three invariants).
"""

from __future__ import annotations

from datetime import datetime

from acp_core import model
from acp_core.files.reading import read_bounded
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.act.journal import COORDINATOR, Interrupted, interrupted
from acp_core.protocols.governed.initiative import OWN, Initiative, folder
from acp_core.protocols.governed.rules.finding import Trouble, file_troubles, log_troubles

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING


def check_initiative(initiative: Initiative, now: datetime) -> list[Trouble]:
    """Everything that is wrong with an initiative, its files first."""
    home = folder(initiative.layout)
    found = file_troubles(schema.MULTI_CONFIG, initiative.config)
    found += file_troubles(f"{home}/state.json", initiative.state, bool(initiative.ledger.lines))
    if initiative.layout != OWN and not initiative.state.reason:
        found += file_troubles(f"{home}/barriers.json", initiative.barriers_file)
    names = ("ledger.jsonl",) if initiative.layout == OWN else ("decision-ledger.jsonl",)
    found += log_troubles(f"{home}/{names[0]}", initiative.ledger)
    found += log_troubles(f"{home}/history.jsonl", initiative.history)
    found += log_troubles(f"{home}/barrier-ledger.jsonl", initiative.barrier_ledger)
    found += _contexts(initiative)
    left = interrupted(initiative.root, COORDINATOR) if initiative.layout == OWN else None
    if left is not None:  # until it is finished, the files cannot agree
        return [*found, _interrupted(left)]
    return found + _workstreams(initiative) + _barriers(initiative)


def _interrupted(left: Interrupted) -> Trouble:
    message = f"Interrupted, with {left.done} of {left.total} files written: {left.what}."
    remedy = "Resync: any command on the initiative completes it, or takes it back."
    return Trouble(
        "INTERRUPTED", _WARNING, message, remedy, ".coordinator/acp-journal.json",
        group="A6", since=left.at,
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
            message = f"The state of workstream {stream.name} cannot be read: {run.state.reason}"
            remedy = "Mend that file; until then the initiative cannot go on."
            found.append(Trouble("CHILD_STATE", _ERROR, message, remedy, group="A3"))
            continue
        told = schema.text(stream.recorded, "run_id", 80)
        real = schema.text(run.state.value, "run_id", 80)
        if told and real and told != real:
            message = f"Workstream {stream.name} runs {real}; the coordinator knows {told}."
            found.append(Trouble("RUN_ID", _ERROR, message, group="A4"))
        if initiative.layout == OWN and begun:
            found += _linked(initiative, stream.name, run.state.value)
        if initiative.status == "completed" and run.status != "completed":
            message = f"The initiative is completed while workstream {stream.name} is {run.status}."
            remedy = "Approve that run's completion."
            found.append(Trouble("COMPLETED_EARLY", _WARNING, message, remedy, group="D3"))
    on = schema.text(initiative.state.value, "blocked_reason", 400)
    if initiative.status.startswith("blocked"):
        message = f"The initiative is {initiative.status}" + (f": {on}" if on else "")
        remedy = "Mend what failed, then resync."
        found.append(Trouble("INITIATIVE_BLOCKED", _WARNING, message, remedy, group="E2"))
    return found


def _linked(initiative: Initiative, name: str, state: schema.Object) -> list[Trouble]:
    wanted = schema.text(initiative.config.value, "super_run_id", 120)
    told = schema.text(state, "super_run_id", 120)
    if not wanted or told == wanted or not state.get("run_id"):
        return []
    message = f"Workstream {name} bears super_run_id “{told}” instead of “{wanted}”."
    return [Trouble("SUPER_RUN_ID", _ERROR, message, document=schema.MULTI_CONFIG)]


def _barriers(initiative: Initiative) -> list[Trouble]:
    found = []
    phases = initiative.phases
    here = phases.index(initiative.phase) if initiative.phase in phases else -1
    streams = {stream.name: stream for stream in initiative.workstreams}
    for barrier in initiative.barriers:
        if barrier.phase not in phases:
            message = f"Barrier {barrier.name} is in phase “{barrier.phase}”, which is none."
            found.append(Trouble("BARRIER_PHASE", _ERROR, message, document=schema.MULTI_CONFIG))
            continue
        place = phases.index(barrier.phase)
        done = barrier.status in ("satisfied", "approved")
        for name in barrier.required:
            stream = streams.get(name)
            run = stream.run if stream else None
            if run is None or run.state.reason:
                continue
            ahead = run.phase in phases and phases.index(run.phase) > place
            if initiative.layout == OWN and ahead and barrier.status != "approved":
                message = f"Workstream {name} crossed barrier {barrier.name} unapproved."
                found.append(Trouble("BARRIER_CROSSED", _ERROR, message, group="A5"))
            if initiative.layout != OWN and name in barrier.reached and _blocked_there(run, place):
                message = (
                    f"Barrier {barrier.name} counts workstream {name} as done while it is blocked."
                )
                found.append(Trouble("BARRIER_FALSE", _WARNING, message, group="D4"))
        if initiative.layout == OWN or done or place != here or initiative.status != "active":
            continue
        turns = sum(len(s.run.turns) for s in initiative.workstreams if s.run)
        if turns or initiative.pending:
            continue
        if barrier.kind == "shared_human_gate":
            message = f"Barrier {barrier.name} waits for a gate that nothing ever asks for."
            remedy = "The program cannot go on by itself here: approve the runs one by one."
            found.append(Trouble("BARRIER_NO_GATE", _WARNING, message, remedy, group="D5"))
        elif barrier.status == "partially_satisfied" and set(barrier.required) == _accepted(
            initiative, barrier.phase
        ):
            message = f"Barrier {barrier.name} is half satisfied and no work is left to assign."
            found.append(Trouble("BARRIER_STUCK", _WARNING, message, group="D6"))
    return found


def _blocked_there(run: object, place: int) -> bool:
    status, phase = getattr(run, "status", ""), getattr(run, "phase", "")
    phases = getattr(run, "phases", ())
    return status == "blocked" and phase in phases and phases.index(phase) == place


def _accepted(initiative: Initiative, phase: str) -> set[str]:
    return {
        stream.name
        for stream in initiative.workstreams
        if stream.run and any(line.value.get("phase") == phase for line in stream.run.history.lines)
    }


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
    return [Trouble("CONTEXT_EMPTY", _WARNING, message + schema.text({"": ", ".join(bad)}, ""))]
