"""A governed run as a Snapshot with its panels; and what initiatives show in the same way.

Budgets, policies, time limits, delegations, parallel turns, decisions for the whole repository and
open escalations are shown as limits; acp itself acts on none of them but the attempts of a turn.
Source: the shapes that the existing program writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from acp_core.model import (
    Document,
    Event,
    Matter,
    NextAction,
    Panel,
    Participant,
    Phase,
    PhaseState,
    Row,
    Severity,
    Snapshot,
    Source,
    SourceState,
    Status,
    Target,
    Tone,
    Turn,
    Verdict,
    Visit,
)
from acp_core.model.format import age, dated
from acp_core.model.matter import decision
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.matters import idle_since, run_waiting
from acp_core.protocols.governed.read.initiative import Initiative, Workstream
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import (
    AT_WORK,
    BY_A_HUMAN,
    MET,
    ActiveTurn,
    Objection,
    Run,
    gates_of_run,
)
from acp_core.protocols.governed.rules import findings
from acp_core.protocols.governed.rules.findings import Trouble, staged_key
from acp_core.protocols.governed.rules.results import SEVERITIES
from acp_core.protocols.governed.schema import (
    YOU,
    AcceptedTurn,
    Budget,
    Config,
    Escalation,
    LedgerLine,
    Loaded,
    Log,
    RepoDecision,
    Role,
    RunEvent,
    RunState,
    decode,
    plain,
)

RECHECK = timedelta(seconds=5)


def run_snapshot(
    run: Run,
    key: str,
    now: datetime,
    troubles: list[Trouble],
    documents: tuple[Document, ...],
    obstacles: tuple[Matter, ...],
) -> Snapshot:
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
    left = interrupted(run.root)
    if left:  # until that is finished, nothing else can be done
        ends = (schema.RECOVER, schema.TAKE_FILES)
        needs = tuple(each if each.remedy in ends else each._replace(verdicts=()) for each in needs)
    due = [t.deadline for t in run.turns if t.deadline and t.deadline > now]
    at_work = run.unfinished and not any(t.code == "TRANSACTION" for t in troubles)
    if at_work or any(turn.running for turn in run.turns) or left:
        due.append(now + RECHECK)  # no file says when a program has ended
    if any(each.key in ("obstacle:disk", "obstacle:git") for each in obstacles):
        due.append(now + RECHECK)  # nor when a disk or git can be used again
    return Snapshot(
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
        source=Source(SourceState.STALE, f"{schema.STATE}: {run.state.reason}")
        if run.status == "unreadable"
        else Source(),
        verdict=verdict_of(troubles),
        progress=1.0 if done else place / len(run.phases),
        phases=rail(run.phases, run.phase, entered(run), completed=done, ended=ended(events)),
        participants=_participants(run, events),
        turns=turns,
        next_actions=tuple(NextAction(t.participant, t.what, True) for t in turns),
        events=events,
        documents=documents,
        gates=gates_of_run(run),
        findings=tuple(t.finding() for t in troubles),
        needs=needs,
        obstacles=obstacles,
        panels=(*run_outcome(run), *run_panels(run, now)),
        outcome=PANELS_OF_RUN,
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


def _staged_needs(run: Run, troubles: list[Trouble]) -> tuple[Matter, ...]:
    """Results that wait for a verdict; none can be given while the run is blocked."""
    if run.status == "blocked":
        return ()
    return tuple(
        decision(
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
        and trouble.severity == Severity.WARNING
        and f"/{turn.id}/" in (trouble.document or "")
    ]
    if not wrong:
        return schema.ACCEPT
    return (
        schema.CORRECT
        if any(each.remedy.startswith("Proposed") for each in wrong)
        else schema.REJECT
    )


def _step_need(run: Run) -> tuple[Matter, ...]:
    """Nobody has a turn, and nothing but a human's step gives one out in a run of ours."""
    if not run.by_acp or run.turns or run.status not in ("idle", "active"):
        return ()
    sequence = run.record.turn_sequence
    what = "The run has not started" if run.status == "idle" else "No active turn"
    since = idle_since(run)
    return (decision(f"step:{run.phase}:{sequence}", "STEP", what, YOU, since, schema.STEP),)


def _status(run: Run, lost: bool) -> str:
    if lost:
        return "unknown"
    return "active" if run.record.barrier else run.status


def _headline(run: Run, turns: tuple[Turn, ...]) -> str:
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


def _participants(run: Run, events: tuple[Event, ...]) -> tuple[Participant, ...]:
    last: dict[str, Event] = {event.actor: event for event in events}
    participants = []
    for name, role in [(YOU, Role()), *run.settings.roles.items()][:100]:
        id = clean_name(name, 80)
        event = last.get(id)
        participants.append(
            Participant(
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
    "blocked": Status.BLOCKED,
    "failed": Status.BLOCKED,
    "completed": Status.COMPLETED,
    "unreadable": Status.UNKNOWN,
    "unknown": Status.UNKNOWN,
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


def is_lost(state: Loaded, obstacles: tuple[Matter, ...]) -> bool:
    """Whether a state is missing that was there once: nothing is known then of who is waited for."""
    return state.missing and any(
        each.code == "A1" and (each.about.document or "").endswith("state.json")
        for each in obstacles
    )


def status_of(status: str) -> Status:
    """The common word for a run's or an initiative's status."""
    return _STATUS.get(status.partition(":")[0], Status.ACTIVE)


def ended(events: Sequence[Event]) -> datetime | None:
    """When what these are the events of was completed: the time of the last one that says so."""
    return next((each.at for each in reversed(events) if each.tone is Tone.DONE), None)


def rail(
    names: tuple[str, ...],
    current: str,
    entered: dict[str, datetime | None],
    *,
    completed: bool,
    ended: datetime | None = None,
) -> tuple[Phase, ...]:
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
        state = PhaseState.AHEAD
        if completed or index < place:
            state = PhaseState.DONE
        elif index == place:
            state = PhaseState.CURRENT
        left = next((entered.get(later) for later in names[index + 1 :] if later in entered), None)
        if name == current:
            left = ended if completed else None
        visits = (Visit(entered[name], left),) if name in entered else ()
        phases.append(Phase(name, name, state, visits))
    return tuple(phases)


def trouble_needs(troubles: list[Trouble]) -> tuple[Matter, ...]:
    """A human is wanted wherever something keeps the run from going on."""
    return tuple(
        decision(
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


def verdict_of(troubles: list[Trouble]) -> Verdict:
    """What the findings amount to."""
    severities = {t.severity for t in troubles}
    if Severity.ERROR in severities:
        return Verdict.INVALID
    return Verdict.WARNINGS if Severity.WARNING in severities else Verdict.VALID


def timeline(said: list[LogEvent]) -> tuple[Event, ...]:
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
            Event(
                id, order, e.file, e.kind, TONES.get(e.kind, Tone.OTHER), e.actor, e.at,
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


_MOST = 500  # rows of a panel: the latest


def run_panels(run: Run, now: datetime) -> tuple[Panel, ...]:
    """All panels of a run as of ``now``, the most pressing first; those that are empty come last."""
    found = (_gate(run), _turns(run, now), _objections(run), _decisions(run), limits(run))
    return tuple(sorted(found, key=lambda panel: not panel.rows))


def shown_time(at: datetime | None) -> str:
    """A time as the panels show it, in local time."""
    return dated(at) if at else ""


def _gate(run: Run) -> Panel:
    rows = []
    pending = run.pending
    if pending is not None:
        asked_by = (each for each in reversed(run.accepted) if each.turn_id == pending.turn)
        turn = next(asked_by, AcceptedTurn())
        objections = [o for o in run.objections if o.open]
        about = (
            ("gate", pending.gate),
            ("from", pending.phase),
            ("to", pending.to or "completed"),
            ("requested by", f"{turn.role} {pending.turn}".strip()),
            ("summary", turn.summary),
            ("verification", turn.verification),
            ("evidence", turn.evidence),
            ("open objections", ", ".join(o.id for o in objections) or "none"),
        )
        rows = [Row(cells, tone=Tone.REVIEW) for cells in about]
        rows += [
            Row(
                (MET[gate.met], f"{gate.label}: {gate.evidence}".rstrip(": ")),
                tone=Tone.PASS if gate.met else Tone.REVISE,
                target=Target(document=gate.document),
            )
            for gate in gates_of_run(run)
            if not gate.label.endswith(BY_A_HUMAN)
        ]
    return Panel(
        "gate", "Pending gate", "table", ("item", "value"), tuple(rows), "No pending gate."
    )


def _turns(run: Run, now: datetime) -> Panel:
    rows = tuple(
        Row(
            (t.role, t.status.replace("_", " "), age(t.since, now), str(t.attempt),
             "staged" if t.staged else "nothing yet",
             shown_time(t.since), shown_time(t.deadline), t.id),
            tone=Tone.BLOCKED if t.status in ("conflicted", "failed") else Tone.OTHER,
            ages=((2, t.since),) if t.since else (),
        )
        for t in run.turns
    )  # fmt: skip
    columns = ("role", "status", "age", "attempt", "result", "since", "deadline", "turn")
    return Panel("turns", "Active turns", "table", columns, rows, "No active turns.")


def _objections(run: Run) -> Panel:
    rows = tuple(
        Row(
            (o.id, o.severity, plain(o.status), o.statement, o.raised_by, shown_time(o.raised_at),
             "" if o.status == "raised" else o.changed_by, shown_time(o.changed_at)),
            checked=not o.open,
            tone=Tone.REVIEW if o.open else Tone.PASS,
        )
        for o in sorted(run.objections, key=_pressing)[:_MOST]
    )  # fmt: skip
    columns = ("id", "severity", "status", "statement", "raised by", "at", "changed by", "at last")
    return Panel(
        "objections", "Objections", "table", columns, rows, "No objections.", disagreement=True
    )


def _pressing(objection: Objection) -> tuple[bool, int]:
    """Open ones first, the most severe of them on top."""
    severe = objection.severity in SEVERITIES
    return not objection.open, -SEVERITIES.index(objection.severity) if severe else 0


def _outcome(line: LedgerLine) -> str:
    """What a line says of something that is no decision of a turn."""
    said = line.comment or line.reason or line.statement or "".join(line.reasons[:1])
    if not said and line.conflicts:
        return clean_line(f"both changed {', '.join(line.conflicts[:10])}")
    return said or line.escalation


def _decisions(run: Run) -> Panel:
    rows = []
    for number, value in run.ledger.lines[-_MOST:]:
        line = decode(LedgerLine, value)
        at = shown_time(line.at)
        if line.kind:
            about = line.gate_id or line.objection_id or line.turn_id or line.blocked_on
            cells = (about, plain(line.kind), line.who, line.phase, _outcome(line), "", at)
            tone = TONES.get(line.kind, Tone.OTHER)
        else:
            cells = (line.id, line.category, line.role, line.phase, line.statement,
                     line.rationale, at)  # fmt: skip
            tone = Tone.DECIDE
        target = Target(document=schema.LEDGER, line=number)
        rows.append(Row(cells, tone=tone, target=target))
    columns = ("id", "what", "by", "phase", "statement", "rationale", "at")
    return Panel("decisions", "Decision ledger", "table", columns, tuple(rows), "No decisions yet.")


OUTCOME = "outcome"

PANELS_OF_RUN = (OUTCOME, "decisions", "objections")

PANELS_OF_INITIATIVE = (OUTCOME, "governance", "decisions")

_MOST_GATES = 50  # decisions about gates that are listed

_MOST_FILES = 50

_FILES_WIDTH = 400  # characters of the list of files


def run_outcome(run: Run) -> tuple[Panel, ...]:
    """The outcome of a completed run: its last result, its gates, what is left open; else nothing."""
    if run.status != "completed":
        return ()
    rows = (
        *_result(run), *_approvals(run), *_left_open(run), *_final_gate(run), *_changed(run),
    )  # fmt: skip
    return (Panel(OUTCOME, "Outcome", "table", ("item", "outcome"), rows),)


def initiative_outcome(initiative: Initiative) -> tuple[Panel, ...]:
    """The outcome of a completed initiative, workstream by workstream; else nothing."""
    if initiative.status != "completed":
        return ()
    rows = [_workstream(each) for each in initiative.workstreams]
    rows += [
        Row(
            (f"gate {barrier.name}", plain(barrier.status), barrier.comment),
            tone=Tone.PASS,
        )
        for barrier in initiative.barriers
    ]
    columns = ("workstream", "status", "last accepted result")
    return (Panel(OUTCOME, "Outcome", "table", columns, tuple(rows)),)


def _result(run: Run) -> Iterator[Row]:
    last = next(reversed(run.accepted), AcceptedTurn())
    if last.summary:
        yield Row(("Result", last.summary), tone=Tone.DONE)
    if last.verification or last.evidence:
        said = ": ".join(filter(None, (last.verification, last.evidence)))
        yield Row(("Verification", said))


def _approvals(run: Run) -> Iterator[Row]:
    """The gates that a person approved, oldest first."""
    approved = (each for each in run.ledger.lines if each.value.get("type") == "gate_approved")
    for line in list(approved)[-_MOST_GATES:]:
        each = decode(LedgerLine, line.value)
        by = f" by {each.who}" if each.who else ""
        at = f", {shown_time(each.at)}" if each.at else ""
        comment = f": {each.comment}" if each.comment else ""
        said = f"{each.gate_id} approved{by}{at}{comment}"
        target = Target(document=schema.LEDGER, line=line.number)
        yield Row(("Gate", said), tone=Tone.PASS, target=target)


def _final_gate(run: Run) -> Iterator[Row]:
    """What the gate that ends the last phase demands, as the files are now."""
    for gate in gates_of_run(run):
        if not gate.label.endswith(BY_A_HUMAN):
            tone = Tone.PASS if gate.met else Tone.REVISE
            said = MET[gate.met] + (f": {gate.evidence}" if gate.evidence else "")
            target = Target(document=gate.document)
            yield Row((gate.label, said), tone=tone, target=target)


def _left_open(run: Run) -> Iterator[Row]:
    left = [each for each in run.objections if each.open]
    if not left:
        yield Row(("Open objections", "none"))
    for each in left:
        said = f"{each.id}, {each.severity}: {each.statement}"
        yield Row(("Open objection", said), tone=Tone.REVIEW)


def _changed(run: Run) -> Iterator[Row]:
    """The files that accepted turns changed."""
    changed = (each.observed_files or each.files for each in run.accepted)
    files = list(dict.fromkeys(name for each in changed for name in each))
    if files:
        more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
        yield Row(("Files", clean_line(", ".join(files[:_MOST_FILES]), _FILES_WIDTH) + more))


def _workstream(stream: Workstream) -> Row:
    last = next(reversed(stream.run.accepted), AcceptedTurn()) if stream.run else AcceptedTurn()
    checked = f" (verification: {last.verification})" if last.verification else ""
    done = stream.status == "completed"
    tone = Tone.DONE if done else Tone.BLOCKED
    return Row((stream.name, plain(stream.status), last.summary + checked), tone=tone)


_MOST_LIMITS = 200  # rows of one kind


def limits(run: Run) -> Panel:
    """The panel, a row for each limit and for each thing that waits."""
    config, state = run.settings, run.record
    rows = [
        *_escalations(run.root),
        *_budget(config.budget, state),
        *_rules(config),
        *_policies(config),
        *_parallel(config),
        *_delegations(state),
        *_repo_decisions(run.root),
    ]
    columns = ("item", "value", "about")
    return Panel(
        "limits", "Limits", "table", columns, tuple(rows[: 3 * _MOST_LIMITS]), "No limits."
    )


def _budget(budget: Budget, state: RunState) -> Iterator[Row]:
    spent, most = state.spent, budget.of_run
    if most or (spent and spent != "0"):
        of = f"{spent or '0'} of {most} USD" if most else f"{spent} USD"
        over = budget.on_exceed.replace("_", " ")
        yield Row(("spent", of, f"when used up: {over}" if over else ""))
    if budget.of_turn:
        yield Row(("of one turn", f"{budget.of_turn} USD", ""))
    for turn, held in list(state.budget_reservations.items())[:_MOST_LIMITS]:
        about = f"{held.role} {_line(turn)}".strip()
        yield Row(("reserved", f"{held.reserved or '?'} USD", about))


def _rules(config: Config) -> Iterator[Row]:
    if (most := config.max_turn_retries) is not None:
        yield Row(("attempts of a turn", _line(str(most)), "then the run is blocked"))
    if config.mandatory_objections:
        yield Row(("objections", "mandatory", "every role raises at least one"))
    for phase, route in list(config.routing.items())[:_MOST_LIMITS]:
        if (minutes := route.timeout_minutes) is not None:
            about = _line(f"{phase} {route.timeout_action}".strip())
            yield Row(("time of a turn", _line(f"{minutes} min"), about))
    for name, value in list(config.timeouts.items())[:_MOST_LIMITS]:
        yield Row(("time limit", _value(value), _line(name)))


def _policies(config: Config) -> Iterator[Row]:
    for policy in config.policies[:_MOST_LIMITS]:
        yield Row(("policy", policy.action, f"{policy.name}: {_value(policy.raw)}"))
    for kind, approval in (
        ("phase transitions", config.phase_approval),
        ("run completion", config.completion_approval),
    ):
        if usual := approval.default or approval.action:
            yield Row(("approval", plain(usual), kind))
        for rule in approval.rules[:_MOST_LIMITS]:
            moved = f"{rule.from_phase} → {rule.to_phase}"
            yield Row(("approval", plain(rule.action), moved))


def _parallel(config: Config) -> Iterator[Row]:
    for phase, route in list(config.routing.items())[:_MOST_LIMITS]:
        if (most := route.max_concurrent_turns) > 1:
            yield Row(("turns at once", _line(str(most)), f"{_line(phase)}; acp gives out one"))


def _delegations(state: RunState) -> Iterator[Row]:
    for each in state.delegations[:_MOST_LIMITS]:
        about = f"{each.id} {each.parent_role or '?'} to {each.to_role}: {each.charter}".strip()
        yield Row(("delegation", each.status or "queued", about))
    if review := state.pending_delegation_review:
        yield Row(("delegation", "waits for its review", _value(review)))


def _escalations(root: Path) -> Iterator[Row]:
    """Escalations to a human that nobody has resolved."""
    waiting: dict[str, tuple[int, Escalation]] = {}
    for line in _log(root, schema.ESCALATIONS).lines:
        each = decode(Escalation, line.value)
        if line.value.get("kind") == "raised":
            waiting[each.id] = (line.number, each)
        else:
            waiting.pop(each.id, None)
    for at, each in list(waiting.values())[:_MOST_LIMITS]:
        yield Row(
            ("escalation", plain(each.type) or "open", f"{each.id}: {each.detail}"),
            tone=Tone.BLOCKED,
            target=Target(document=schema.ESCALATIONS, line=at),
        )


def _repo_decisions(root: Path) -> Iterator[Row]:
    for line in _log(root, schema.REPO_DECISIONS).lines[-_MOST_LIMITS:]:
        decision = decode(RepoDecision, line.value)
        about = f"{decision.id}: {decision.statement}"
        yield Row(
            ("for all runs", decision.status or "holds", about),
            tone=Tone.DECIDE,
            target=Target(document=schema.REPO_DECISIONS, line=line.number),
        )


def _log(root: Path, name: str) -> schema.Log:
    path = schema.inside(root, name)
    return schema.read_log(path) if path else schema.Log(())


def _line(text: str) -> str:
    return clean_line(text, 200)


def _value(value: object) -> str:
    try:
        return _line(json.dumps(value, ensure_ascii=False))
    except (ValueError, RecursionError):
        return "?"


_KINDS = {
    Tone.REVISE: (
        "gate_failure",
        "gate_rejected",
        "gate_failed",
        "turn_rejected",
        "acceptance_failed",
        "barrier_rejected",
    ),
    Tone.REVIEW: ("gate_pending", "objection_raised", "objection_status", "barrier_reached"),
    Tone.PASS: (
        "gate_approved",
        "phase_entered",
        "barrier_approved",
        "barrier_transition",
        "phase_transition_approved",
        "workstream_recovered",
        "workstream_mended",
        "coordinator_mended",
        "resync",
    ),
    Tone.BLOCKED: (
        "turn_conflicted",
        "turn_start_failed",
        "run_blocked",
        "workstream_failed",
        "resync_failed",
        "barrier_crossed",
    ),
    Tone.DONE: ("run_completed", "super_run_completed"),
    Tone.START: (
        "run_started",
        "run_initialized",
        "turn_dispatched",
        "initiative_started",
        "workstream_linked",
    ),
    Tone.ACCEPT: ("turn_accepted", "acceptance_projection", "workstream_at_barrier"),
    Tone.DECIDE: ("decision",),
}
TONES = {kind: tone for tone, kinds in _KINDS.items() for kind in kinds}
"""The tone of each kind of line."""
