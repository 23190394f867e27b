"""What runs and initiatives show alike: the rail, who is waited for, findings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from acp_core import model
from acp_core.protocols.governed.read.run import Pending
from acp_core.protocols.governed.rules.findings import Trouble
from acp_core.protocols.governed.schema import YOU, LedgerLine, Loaded, Log, decode, gate_called

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
TONES = {
    "gate_failure": model.Tone.REVISE,
    "gate_pending": model.Tone.REVIEW,
    "gate_approved": model.Tone.PASS,
    "gate_rejected": model.Tone.REVISE,
    "gate_failed": model.Tone.REVISE,
    "phase_entered": model.Tone.PASS,
    "turn_rejected": model.Tone.REVISE,
    "acceptance_failed": model.Tone.REVISE,
    "turn_conflicted": model.Tone.BLOCKED,
    "turn_start_failed": model.Tone.BLOCKED,
    "run_blocked": model.Tone.BLOCKED,
    "run_completed": model.Tone.DONE,
    "run_started": model.Tone.START,
    "run_initialized": model.Tone.START,
    "turn_dispatched": model.Tone.START,
    "turn_accepted": model.Tone.ACCEPT,
    "acceptance_projection": model.Tone.ACCEPT,
    "decision": model.Tone.DECIDE,
    "objection_raised": model.Tone.REVIEW,
    "objection_status": model.Tone.REVIEW,
    "barrier_reached": model.Tone.REVIEW,
    "barrier_approved": model.Tone.PASS,
    "barrier_rejected": model.Tone.REVISE,
    "barrier_transition": model.Tone.PASS,
    "phase_transition_approved": model.Tone.PASS,
    "initiative_started": model.Tone.START,
    "workstream_linked": model.Tone.START,
    "workstream_at_barrier": model.Tone.ACCEPT,
    "workstream_failed": model.Tone.BLOCKED,
    "workstream_recovered": model.Tone.PASS,
    "workstream_mended": model.Tone.PASS,
    "coordinator_mended": model.Tone.PASS,
    "resync": model.Tone.PASS,
    "resync_failed": model.Tone.BLOCKED,
    "barrier_crossed": model.Tone.BLOCKED,
    "super_run_completed": model.Tone.DONE,
}


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


def gate_turn(pending: Pending) -> model.Turn:
    """You are waited for at a gate."""
    to = f"to {pending.to}" if pending.to else "and the end of this phase"
    what = f"approve or reject the gate {gate_called(pending.gate)} {to}"
    return model.Turn(YOU, what, pending.since)


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
