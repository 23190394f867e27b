"""An initiative over several repositories as a Snapshot."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.initiative import OWN, Initiative, Workstream, folder
from acp_core.protocols.governed.rules import findings
from acp_core.protocols.governed.rules.findings import Trouble
from acp_core.protocols.governed.rules.initiative_reconcile import (
    CROSSED,
    RESYNC_FAILED,
    ledger_actor,
    ledger_sentence,
)
from acp_core.protocols.governed.schema import (
    APPROVE_BARRIER,
    START,
    YOU,
    CoordinatorLine,
    decode,
    gate_called,
    status_called,
)
from acp_core.protocols.governed.view import common, outcome
from acp_core.protocols.governed.view.board import initiative_panels, lagging
from acp_core.protocols.governed.view.common import LogEvent
from acp_core.protocols.governed.view.run import entered
from acp_core.protocols.governed.view.run import waiting as run_waiting

_MADE = re.compile(r"super_run_[0-9a-f]{12}\Z")
_ELSEWHERE = " with the agentxchain program, which is not installed"


def initiative_snapshot(
    initiative: Initiative,
    key: str,
    now: datetime,
    troubles: list[Trouble],
    documents: tuple[model.Document, ...],
    obstacles: tuple[model.Obstacle, ...],
) -> model.Snapshot:
    """Everything that is shown of an initiative as of ``now``."""
    record, settings = initiative.record, initiative.settings
    phases, done = initiative.phases, initiative.status == "completed"
    place = phases.index(initiative.phase) if initiative.phase in phases else 0
    lost = common.is_lost(initiative.state, obstacles)
    turns = () if lost else waiting(initiative)
    if any(t.code in ("BARRIER_NO_GATE", "BARRIER_STUCK") for t in troubles):
        turns = (model.Turn(YOU, "decide how to proceed: no step is left"),)
    events = common.timeline(_log_events(initiative))
    needs = (
        *gate_needs(initiative),
        *start_needs(initiative, troubles),
        *common.trouble_needs(troubles),
    )
    return model.Snapshot(
        key=key,
        protocol="governed",
        dialect=f"{initiative.layout} {settings.schema_version}".strip(),
        name=_name(initiative),
        objective=settings.description or settings.goal,
        location=clean_line(key, 1000),
        as_of=now,
        headline=common.LOST if lost else _headline(initiative, turns),
        summary=common.LOST if lost else _headline(initiative, ()),
        status=common.status_of("unknown" if lost else initiative.status),
        phase="completed" if done else initiative.phase,
        source=model.Source(model.SourceState.STALE, initiative.state.reason)
        if initiative.status == "unreadable"
        else model.Source(),
        verdict=common.verdict_of(troubles),
        progress=1.0 if done else place / max(len(phases), 1),
        phases=common.rail(
            phases,
            initiative.phase,
            _entered(initiative),
            completed=done,
            ended=common.ended(events),
        ),
        participants=(
            model.Participant(YOU, "human", "Approver"),
            *(model.Participant(w.name, "agent", "workstream") for w in initiative.workstreams),
        ),
        turns=turns,
        next_actions=tuple(model.NextAction(t.participant, t.what, True) for t in turns),
        events=events,
        documents=documents,
        gates=_gates(initiative),
        findings=tuple(t.finding() for t in troubles),
        needs=needs,
        obstacles=obstacles,
        panels=(*outcome.of_initiative(initiative), *initiative_panels(initiative)),
        outcome=outcome.INITIATIVE,
        parts=tuple(w.path for w in initiative.workstreams if w.run is not None),
        started=record.created_at,
        changed=record.updated_at or (events[-1].at if events else None),
        run_id=record.super_run_id,
    )


def _entered(initiative: Initiative) -> dict[str, datetime | None]:
    """When the initiative entered each phase: its last workstream did, or its gate was approved."""
    found: dict[str, datetime | None] = {}
    if initiative.layout == OWN:
        runs = [stream.run for stream in initiative.workstreams if stream.run]
        times = [entered(run) for run in runs]
        for phase in initiative.phases if times else ():
            known = [at for each in times if (at := each.get(phase)) is not None]
            if len(known) == len(times):
                found[phase] = max(known)
        return found
    if initiative.phases and initiative.state.value.get("created_at"):
        found[initiative.phases[0]] = initiative.record.created_at
    for each in initiative.history.lines:
        line = decode(CoordinatorLine, each.value)
        if line.type == "phase_transition_approved":
            found[line.to] = line.at
    return found


def _name(initiative: Initiative) -> str:
    """What a human called it: the project, its id where that was not made by acp, or the folder."""
    settings = initiative.settings
    chosen = "" if _MADE.match(settings.super_run_id) else settings.super_run_id
    return settings.project or chosen or clean_line(initiative.root.name, 120)


def gate_needs(initiative: Initiative) -> tuple[model.Need, ...]:
    """The need that an open cross-repo gate is; the existing program opens those of its layout."""
    pending = initiative.pending
    if pending is None or initiative.status.startswith("blocked"):
        return ()
    need = findings.gate_need(pending)
    if initiative.layout != OWN:
        return (replace(need, action=APPROVE_BARRIER if existing_program.is_there() else None),)
    return (replace(need, action=APPROVE_BARRIER, given=(("barrier", pending.gate),)),)


def start_needs(initiative: Initiative, troubles: list[Trouble]) -> tuple[model.Need, ...]:
    """The need that an initiative is which is only written down; none where that has errors."""
    if initiative.layout != OWN or not initiative.state.missing or initiative.config.reason:
        return ()
    if any(t.severity is model.Severity.ERROR or t.code == "INTERRUPTED" for t in troubles):
        return ()
    text = "The initiative has not started"
    return (model.Need("start", "START", text, YOU, None, START),)


def waiting(initiative: Initiative) -> tuple[model.Turn, ...]:
    """Who is waited for: you at a cross-repo gate or a block, else the workstreams."""
    if initiative.status in ("completed", "unreadable"):
        return ()
    if initiative.status.startswith("blocked"):
        what = "resolve what blocks the initiative"
        if initiative.status == RESYNC_FAILED:
            what = "fix what stops the workstreams from crossing, then resync"
        elif initiative.status == CROSSED:
            what = "bring back the workstream that crossed a barrier unapproved"
        return (model.Turn(YOU, what),)
    pending = initiative.pending
    if pending is not None:
        named = gate_called(pending.gate)
        what = f"approve or reject the cross-repo gate {named}, which ends {pending.phase}"
        return (model.Turn(YOU, what, pending.since),)
    if initiative.status == "absent":
        return (model.Turn(YOU, "start the initiative"),)
    found = []
    for stream in initiative.workstreams:
        found += _turns(initiative, stream)
    if not found and initiative.layout == OWN:
        return (model.Turn(YOU, "let the coordinator check who reached a barrier"),)
    on = "let the initiative take its next step"
    return tuple(found) or (
        model.Turn(YOU, on if existing_program.is_there() else f"{on}{_ELSEWHERE}"),
    )


def first_turn(initiative: Initiative, stream: Workstream) -> model.Turn | None:
    """What a workstream waits for, None where it waits at a barrier or is over."""
    return next(iter(_turns(initiative, stream)), None)


def _turns(initiative: Initiative, stream: Workstream) -> list[model.Turn]:
    run, own = stream.run, initiative.layout == OWN
    if run is None or run.state.reason:
        return [model.Turn(YOU, f"repair the state of {stream.name}")]
    if stream.status in ("blocked:barrier", "completed"):
        return []
    ends = {barrier.phase: barrier for barrier in initiative.barriers}
    if own and run.pending and ends.get(run.phase):
        what = f"step the coordinator: {stream.name} asks to leave {run.phase}"
        return [model.Turn(YOU, what, run.pending.since)]
    if not (own or run.pending or run.turns or run.status == "blocked"):
        return []
    found = []
    for turn in run_waiting(run):
        who = YOU if turn.participant == YOU else stream.name
        what = f"{stream.name}: {turn.what}" if who == YOU else turn.what
        found.append(model.Turn(who, what, turn.since))
    return found


def _headline(initiative: Initiative, turns: tuple[model.Turn, ...]) -> str:
    if initiative.status == "completed":
        return "completed."
    if initiative.status == "unreadable":
        return "the coordinator's state cannot be read."
    status = "not started" if initiative.status == "absent" else status_called(initiative.status)
    behind = lagging(initiative)
    waits = f"; waiting for {turns[0].participant}: {turns[0].what}" if turns else ""
    lag = f"; {', '.join(behind[:5])} behind" if behind else ""
    return f"{initiative.phase or 'no phase'}: {status}{lag}{waits}"


def _gates(initiative: Initiative) -> tuple[model.Gate, ...]:
    return tuple(
        model.Gate(
            f"{barrier.name}: {name}",
            name in barrier.reached,
            evidence=f"barrier of phase {barrier.phase}",
        )
        for barrier in initiative.barriers
        if barrier.phase == initiative.phase
        for name in barrier.required
    )


def _log_events(initiative: Initiative) -> list[LogEvent]:
    home = folder(initiative.layout)
    if initiative.layout == OWN:
        lines = [(n, decode(CoordinatorLine, value)) for n, value in initiative.ledger.lines]
        return [
            LogEvent(f"{home}/ledger.jsonl", number, line.type or "unknown", ledger_actor(line),
                     line.at, ledger_sentence(line))
            for number, line in lines
        ]  # fmt: skip
    events = common.ledger_events(f"{home}/decision-ledger.jsonl", initiative.ledger)
    for file, log in (
        ("history.jsonl", initiative.history),
        ("barrier-ledger.jsonl", initiative.barrier_ledger),
    ):
        for number, value in log.lines:
            line = decode(CoordinatorLine, value)
            about = (line.barrier_id, line.repo_id, line.workstream_id, line.new_status,
                     line.summary, line.to)  # fmt: skip
            parts = (line.type.replace("_", " "), " ".join(filter(None, about)))
            summary = ": ".join(filter(None, parts))
            actor = line.repo_id or "coordinator"
            events.append(LogEvent(f"{home}/{file}", number, line.type, actor, line.at, summary))
    return events
