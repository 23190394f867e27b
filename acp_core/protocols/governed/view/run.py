"""A governed run as a Snapshot."""

from __future__ import annotations

from datetime import datetime, timedelta

from acp_core import model
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.gates import gates
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.rules import findings
from acp_core.protocols.governed.rules.findings import Trouble, staged_key
from acp_core.protocols.governed.schema import YOU, LedgerLine, Role, RunEvent, blocked_by, decode
from acp_core.protocols.governed.view import common, outcome, panels
from acp_core.protocols.governed.view.common import LogEvent

RECHECK = timedelta(seconds=5)
RESOLVED = "escalation_resolved"
"""What the ledger calls it that a human resolved what had blocked the run."""
_DECIDE = {
    "failed_start": "dispatch the turn of {} again: it failed to start",
    "stalled": "dispatch the turn of {} again: it has stalled",
    "failed_acceptance": "correct or reject the result of {}",
    "failed": "decide how to proceed after the last attempt of {}",
}
"""What you are to do about a turn that came to nothing, by its status."""


def run_snapshot(
    run: Run,
    key: str,
    now: datetime,
    troubles: list[Trouble],
    documents: tuple[model.Document, ...],
    obstacles: tuple[model.Obstacle, ...],
) -> model.Snapshot:
    """Everything that is shown of a run as of ``now``."""
    record, settings = run.record, run.settings
    lost = common.is_lost(run.state, obstacles)
    pending, turns = run.pending, () if lost else waiting(run)
    done = run.status == "completed"
    events = common.timeline(_log_events(run))
    order = {name: place for place, name in enumerate(run.phases)}
    place = order.get(run.phase, 0)
    needs = ((findings.gate_need(pending),) if pending else ()) + common.trouble_needs(troubles)
    needs += _staged_needs(run, troubles) + _step_need(run)
    due = [t.deadline for t in run.turns if t.deadline and t.deadline > now]
    at_work = run.unfinished and not any(t.code == "TRANSACTION" for t in troubles)
    if at_work or any(turn.running for turn in run.turns) or interrupted(run.root):
        due.append(now + RECHECK)  # no file says when a program has ended
    if any(each.key in ("obstacle:disk", "obstacle:git") for each in obstacles):
        due.append(now + RECHECK)  # nor when a disk or git can be used again
    return model.Snapshot(
        key=key,
        protocol="governed",
        dialect=record.schema_version or settings.schema_version,
        name=_name(run),
        objective=settings.goal,
        location=clean_line(key, 1000),
        as_of=now,
        headline=common.LOST if lost else _headline(run, turns),
        summary=common.LOST if lost else _headline(run, ()),
        status=common.status_of(_status(run, lost)),
        phase="completed" if done else run.phase,
        source=model.Source(model.SourceState.STALE, f"{schema.STATE}: {run.state.reason}")
        if run.status == "unreadable"
        else model.Source(),
        verdict=common.verdict_of(troubles),
        progress=1.0 if done else place / len(run.phases),
        phases=common.rail(
            run.phases, run.phase, entered(run), completed=done, ended=common.ended(events)
        ),
        participants=_participants(run, events),
        turns=turns,
        next_actions=tuple(model.NextAction(t.participant, t.what, True) for t in turns),
        events=events,
        documents=documents,
        gates=gates(run),
        findings=tuple(t.finding() for t in troubles),
        needs=needs,
        obstacles=obstacles,
        panels=(*outcome.of_run(run), *panels.run_panels(run, now)),
        outcome=outcome.RUN,
        since=record.phase_entered_at,
        started=record.created_at,
        changed=events[-1].at if events else None,
        recheck_at=min(due, default=None),
        run_id=record.run_id,
    )


def _name(run: Run) -> str:
    """The project's name; of a run in an initiative with its folder's, as others may bear the same."""
    folder = clean_line(run.root.name, 120)
    project = run.settings.project or folder
    linked = run.record.super_run_id != ""
    return f"{project} · {folder}" if linked and _plain(folder) not in _plain(project) else project


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def waiting(run: Run) -> tuple[model.Turn, ...]:
    """Who is waited for, to do what: you wherever a gate, a result or a block waits."""
    if run.status in ("completed", "unreadable") or run.record.barrier:
        return ()
    if run.pending is not None:
        return (common.gate_turn(run.pending),)
    found = [_turn(turn) for turn in run.turns]
    if run.status == "blocked":
        block, blocks = (
            run.record.block,
            f"resolve what blocks the run: {blocked_by(run.state.value)}",
        )
        what = block.action or blocks
        if block.action and block.action == block.reason:
            # it says what happened, not what to do
            what = found[0].what if found else blocks
        what = what[:1].lower() + what[1:]
        return (model.Turn(YOU, what, block.since),)
    if found:
        return tuple(found)
    if run.status == "paused":
        return (model.Turn(YOU, "unblock the run: it is paused without a pending gate"),)
    if run.status in ("idle", "absent"):
        return (model.Turn(YOU, "start the run"),)
    role = run.record.next_role or run.settings.route(run.phase).entry_role
    what = f"dispatch the next turn{f' to {role}' if role and role != 'human' else ''}"
    return (model.Turn(YOU, what, _idle_since(run)),)


def _turn(turn: ActiveTurn) -> model.Turn:
    if turn.status == "retrying" or (turn.lost and turn.status in AT_WORK and not turn.staged):
        return model.Turn(YOU, f"reassign the turn of {turn.role}", turn.since)
    if turn.status == "conflicted":
        return model.Turn(YOU, f"resolve the conflict of the turn of {turn.role}", turn.since)
    if turn.status in AT_WORK and not turn.staged:
        return model.Turn(
            turn.role or "an unknown role", "take its turn and stage the result", turn.since
        )
    if turn.staged:
        return model.Turn(YOU, f"accept or reject the staged result of {turn.role}", turn.since)
    what = _DECIDE.get(turn.status, "decide about the turn of {}")
    return model.Turn(YOU, what.format(turn.role), turn.since)


def _staged_needs(run: Run, troubles: list[Trouble]) -> tuple[model.Need, ...]:
    """Results that wait for a verdict; none can be given while the run is blocked."""
    if run.status == "blocked":
        return ()
    return tuple(
        model.Need(
            staged_key(turn),
            "STAGED",
            f"The result of {turn.role} needs your verdict",
            YOU,
            turn.since,
            _verdict_of(turn, troubles),
        )
        for turn in run.turns
        if turn.staged and turn.status in AT_WORK
    )


def _verdict_of(turn: ActiveTurn, troubles: list[Trouble]) -> str:
    """The act that settles a staged result: one that is not sound is never accepted."""
    wrong = [
        trouble
        for trouble in troubles
        if trouble.code == "RESULT"
        and trouble.severity == model.Severity.WARNING
        and f"/{turn.id}/" in (trouble.document or "")
    ]
    if not wrong:
        return schema.ACCEPT
    return (
        schema.CORRECT
        if any(each.remedy.startswith("Proposed") for each in wrong)
        else schema.REJECT
    )


def _step_need(run: Run) -> tuple[model.Need, ...]:
    """Nobody has a turn, and nothing but a human's step gives one out in a run of ours."""
    if not run.by_acp or run.turns or run.status not in ("idle", "active"):
        return ()
    sequence = run.record.turn_sequence
    what = "The run has not started" if run.status == "idle" else "No active turn"
    since = _idle_since(run)
    return (model.Need(f"step:{run.phase}:{sequence}", "STEP", what, YOU, since, schema.STEP),)


def _idle_since(run: Run) -> datetime | None:
    """Since when nobody has a turn: the last turn was accepted, or a human let the run go on."""
    times = [run.record.phase_entered_at]
    times += [turn.at for turn in run.accepted[-1:]]
    for line in reversed(run.ledger.lines):
        if _goes_on(line.value):
            times.append(decode(LedgerLine, line.value).at)
            break
    return max((at for at in times if at is not None), default=None)


def _goes_on(line: schema.Object) -> bool:
    """Whether a line of the ledger says that a human let the run go on."""
    kind = line.get("type")
    return kind in ("gate_approved", "gate_rejected") or line.get("decision") == RESOLVED


def _status(run: Run, lost: bool) -> str:
    if lost:
        return "unknown"
    return "active" if run.record.barrier else run.status


def _headline(run: Run, turns: tuple[model.Turn, ...]) -> str:
    if run.status == "completed":
        return "completed."
    if run.status == "unreadable":
        return "its state cannot be read."
    if barrier := run.record.barrier:
        return f"{run.phase}: waiting at the barrier {barrier} for the other workstreams."
    status = "not started" if run.status == "absent" else run.status
    waits = f"; waiting for {turns[0].participant} to {turns[0].what}" if turns else ""
    return f"{run.phase or 'no phase'}: {status}{waits}"


def entered(run: Run) -> dict[str, datetime | None]:
    """When the run entered each phase, as far as its state and events tell; the last time."""
    found: dict[str, datetime | None] = {}
    if run.phases and run.state.value.get("created_at"):
        found[run.phases[0]] = run.record.created_at
    for line in run.events.lines:
        if line.value.get("event_type") == "phase_entered":
            event = decode(RunEvent, line.value)
            found[event.to] = event.at
    if run.phase not in found:
        found[run.phase] = run.record.phase_entered_at
    return found


def _participants(run: Run, events: tuple[model.Event, ...]) -> tuple[model.Participant, ...]:
    last: dict[str, model.Event] = {event.actor: event for event in events}
    participants = []
    for name, role in [(YOU, Role()), *run.settings.roles.items()][:100]:
        id = clean_name(name, 80)
        event = last.get(id)
        participants.append(
            model.Participant(
                id,
                "human" if name == YOU else "agent",
                role.title or ("Approver" if name == YOU else ""),
                event.id if event else None,
                event.at if event else None,
            )
        )
    return tuple(participants)


def _log_events(run: Run) -> list[LogEvent]:
    events = common.ledger_events(schema.LEDGER, run.ledger)
    known = set()
    for line, turn in zip(run.history.lines, run.accepted, strict=True):
        known.add(turn.turn_id)
        summary = turn.summary or turn.turn_id
        events.append(
            LogEvent(schema.HISTORY, line.number, "turn_accepted", turn.role, turn.at, summary)
        )
    ledger = {(e.kind, e.at) for e in events if e.file == schema.LEDGER}
    for number, value in run.events.lines:
        event = decode(RunEvent, value)
        if (event.kind, event.at) in ledger:
            continue  # the ledger tells it with who decided, and the comment
        if event.kind == "turn_accepted" and event.turn_id in known:
            continue  # the history tells it with its summary
        about = (
            ("gate", event.gate),
            ("from", event.origin),
            ("to", event.to),
            ("reason", event.reason),
            ("category", event.category),
        )
        summary = ", ".join(
            [event.kind.replace("_", " "), *(f"{name} {each}" for name, each in about if each)]
        )
        events.append(LogEvent(schema.EVENTS, number, event.kind, event.role, event.at, summary))
    return events
