"""A governed run as a Snapshot; and what initiatives show in the same way: the rail, findings, logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import NamedTuple

from acp_core import model
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.matters import idle_since, run_waiting
from acp_core.protocols.governed.read.gates import gates
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.rules import findings
from acp_core.protocols.governed.rules.findings import Trouble, staged_key
from acp_core.protocols.governed.schema import (
    YOU,
    LedgerLine,
    Loaded,
    Log,
    Role,
    RunEvent,
    decode,
)
from acp_core.protocols.governed.view import panels
from acp_core.protocols.governed.view.panels import TONES

RECHECK = timedelta(seconds=5)


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
    lost = is_lost(run.state, obstacles)
    pending, turns = run.pending, () if lost else run_waiting(run)
    done = run.status == "completed"
    events = timeline(_log_events(run))
    order = {name: place for place, name in enumerate(run.phases)}
    place = order.get(run.phase, 0)
    needs = ((findings.gate_need(pending),) if pending else ()) + trouble_needs(troubles)
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
        headline=LOST if lost else _headline(run, turns),
        summary=LOST if lost else _headline(run, ()),
        status=status_of(_status(run, lost)),
        phase="completed" if done else run.phase,
        source=model.Source(model.SourceState.STALE, f"{schema.STATE}: {run.state.reason}")
        if run.status == "unreadable"
        else model.Source(),
        verdict=verdict_of(troubles),
        progress=1.0 if done else place / len(run.phases),
        phases=rail(run.phases, run.phase, entered(run), completed=done, ended=ended(events)),
        participants=_participants(run, events),
        turns=turns,
        next_actions=tuple(model.NextAction(t.participant, t.what, True) for t in turns),
        events=events,
        documents=documents,
        gates=gates(run),
        findings=tuple(t.finding() for t in troubles),
        needs=needs,
        obstacles=obstacles,
        panels=(*panels.run_outcome(run), *panels.run_panels(run, now)),
        outcome=panels.PANELS_OF_RUN,
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
    since = idle_since(run)
    return (model.Need(f"step:{run.phase}:{sequence}", "STEP", what, YOU, since, schema.STEP),)


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
    events = ledger_events(schema.LEDGER, run.ledger)
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


# --- what runs and initiatives show alike: the rail, findings, the logs

LOST = "its state is lost."
"""The headline of what had begun, and has no state any more."""

_STATUS = {
    "blocked": model.Status.BLOCKED,
    "failed": model.Status.BLOCKED,
    "completed": model.Status.COMPLETED,
    "unreadable": model.Status.UNKNOWN,
    "unknown": model.Status.UNKNOWN,
}

_YOURS = ("operator_escalated", "escalation_resolved", "conflict_resolution_selected")
"""Lines of the existing program that name nobody, and tell what a human did."""


class LogEvent(NamedTuple):
    """An event before it has its place in the whole: ``file`` and ``line`` say where it stands."""

    file: str
    line: int
    kind: str
    actor: str
    at: datetime | None
    summary: str
    reply_to: str | None = None


def is_lost(state: Loaded, obstacles: tuple[model.Obstacle, ...]) -> bool:
    """Whether a state is missing that was there once: nothing is known then of who is waited for."""
    return state.missing and any(
        each.code == "A1" and (each.document or "").endswith("state.json") for each in obstacles
    )


def status_of(status: str) -> model.Status:
    """The common word for a run's or an initiative's status."""
    return _STATUS.get(status.partition(":")[0], model.Status.ACTIVE)


def ended(events: Sequence[model.Event]) -> datetime | None:
    """When what these are the events of was completed: the time of the last one that says so."""
    return next((each.at for each in reversed(events) if each.tone is model.Tone.DONE), None)


def rail(
    names: tuple[str, ...],
    current: str,
    entered: dict[str, datetime | None],
    *,
    completed: bool,
    ended: datetime | None = None,
) -> tuple[model.Phase, ...]:
    """The phases in order with where the run stands.

    Args:
        names: Of the phases.
        current: The name of the one that the run is in, or that it was completed in.
        entered: When it entered each phase, as far as that is known.
        completed: Whether it is completed.
        ended: When it was; None where no event says so.
    """
    place = names.index(current) if current in names else -1
    phases = []
    for index, name in enumerate(names):
        state = model.PhaseState.AHEAD
        if completed or index < place:
            state = model.PhaseState.DONE
        elif index == place:
            state = model.PhaseState.CURRENT
        left = next((entered.get(later) for later in names[index + 1 :] if later in entered), None)
        if name == current:
            left = ended if completed else None
        visits = (model.Visit(entered[name], left),) if name in entered else ()
        phases.append(model.Phase(name, name, state, visits))
    return tuple(phases)


def trouble_needs(troubles: list[Trouble]) -> tuple[model.Need, ...]:
    """A human is wanted wherever something keeps the run from going on."""
    return tuple(
        model.Need(
            t.key,
            t.code,
            t.message,
            t.participant,
            t.since,
            t.action or None,
        )
        for t in troubles
        if t.group and t.wanted
    )


def verdict_of(troubles: list[Trouble]) -> model.Verdict:
    """What the findings amount to."""
    severities = {t.severity for t in troubles}
    if model.Severity.ERROR in severities:
        return model.Verdict.INVALID
    return model.Verdict.WARNINGS if model.Severity.WARNING in severities else model.Verdict.VALID


def timeline(said: list[LogEvent]) -> tuple[model.Event, ...]:
    """The events of all logs, in the order of their times (of their places where none is told).

    None names a document: panels tell more of it than the line of a log, which is its source.
    """
    last: dict[str, float] = {}
    keyed = []
    for entry in said:
        # an entry without a time belongs right after the one before it in its own log
        at = entry.at.timestamp() if entry.at else last.get(entry.file, 0.0)
        last[entry.file] = at
        keyed.append((at, entry))
    keyed.sort(key=lambda pair: pair[0])
    ids: dict[str, int] = {}
    events = []
    for order, (_, e) in enumerate(keyed, 1):
        id = f"{PurePosixPath(e.file).stem}:{e.line}"
        ids[id] = ids.get(id, 0) + 1
        if ids[id] > 1:
            id = f"{id}:{ids[id]}"
        events.append(
            model.Event(
                id, order, e.file, e.kind, TONES.get(e.kind, model.Tone.OTHER), e.actor, e.at,
                "recorded" if e.at else "inferred", e.summary, e.reply_to, None, e.line,
            )
        )  # fmt: skip
    return tuple(events)


def ledger_events(file: str, log: Log) -> list[LogEvent]:
    """The lines of a decision ledger of either program as events."""
    events = []
    for number, value in log.lines:
        line = decode(LedgerLine, value)
        kind = line.kind or "decision"
        about = line.id or line.gate_id or line.objection_id or line.barrier or line.turn_id
        said = line.statement or line.comment or line.reason or "".join(line.reasons[:1])
        summary = ": ".join(filter(None, (about, said))) or kind
        who = line.who or (YOU if kind in _YOURS else "")
        events.append(LogEvent(file, number, kind, who, line.at, summary))
    return events
