"""An initiative over several repositories as a Snapshot, with its panels: its board, the open gate, barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from acp_core.model import (
    Document,
    Gate,
    Matter,
    NextAction,
    Panel,
    Participant,
    Row,
    Severity,
    Snapshot,
    Source,
    SourceState,
    Target,
    Tone,
    Turn,
)
from acp_core.model.matter import decision, verdicts
from acp_core.model.text import clean_line
from acp_core.protocols.governed.matters import initiative_waiting, run_waiting
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.initiative import OWN, Barrier, Initiative, Workstream, folder
from acp_core.protocols.governed.read.run import Run, lacking
from acp_core.protocols.governed.rules import findings
from acp_core.protocols.governed.rules.findings import Trouble
from acp_core.protocols.governed.rules.initiatives import ledger_actor, ledger_sentence
from acp_core.protocols.governed.schema import (
    APPROVE_BARRIER,
    START,
    YOU,
    AcceptedTurn,
    CoordinatorLine,
    LedgerLine,
    decode,
    gate_called,
    plain,
    status_called,
)
from acp_core.protocols.governed.view import run as view_run
from acp_core.protocols.governed.view.run import LogEvent, entered, shown_time

_MADE = re.compile(r"super_run_[0-9a-f]{12}\Z")


def initiative_snapshot(
    initiative: Initiative,
    key: str,
    now: datetime,
    troubles: list[Trouble],
    documents: tuple[Document, ...],
    obstacles: tuple[Matter, ...],
) -> Snapshot:
    """Everything that is shown of an initiative as of ``now``."""
    record, settings = initiative.record, initiative.settings
    phases, done = initiative.phases, initiative.status == "completed"
    place = phases.index(initiative.phase) if initiative.phase in phases else 0
    lost = view_run.is_lost(initiative.state, obstacles)
    turns = () if lost else initiative_waiting(initiative)
    if any(t.code in ("BARRIER_NO_GATE", "BARRIER_STUCK") for t in troubles):
        turns = (Turn(YOU, "decide how to proceed: no step is left"),)
    events = view_run.timeline(_log_events(initiative))
    needs = (
        *gate_needs(initiative),
        *start_needs(initiative, troubles),
        *view_run.trouble_needs(troubles),
    )
    return Snapshot(
        key=key,
        protocol="governed",
        dialect=f"{initiative.layout} {settings.schema_version}".strip(),
        name=_name(initiative),
        objective=settings.description or settings.goal,
        location=clean_line(key, 1000),
        as_of=now,
        headline=view_run.LOST if lost else _headline(initiative, turns),
        summary=view_run.LOST if lost else _headline(initiative, ()),
        status=view_run.status_of("unknown" if lost else initiative.status),
        phase="completed" if done else initiative.phase,
        source=Source(SourceState.STALE, initiative.state.reason)
        if initiative.status == "unreadable"
        else Source(),
        verdict=view_run.verdict_of(troubles),
        progress=1.0 if done else place / max(len(phases), 1),
        phases=view_run.rail(
            phases,
            initiative.phase,
            _entered(initiative),
            completed=done,
            ended=view_run.ended(events),
        ),
        participants=(
            Participant(YOU, "human", "Approver"),
            *(Participant(w.name, "agent", "workstream") for w in initiative.workstreams),
        ),
        turns=turns,
        next_actions=tuple(NextAction(t.participant, t.what, True) for t in turns),
        events=events,
        documents=documents,
        gates=_gates(initiative),
        findings=tuple(t.finding() for t in troubles),
        needs=needs,
        obstacles=obstacles,
        panels=(*view_run.initiative_outcome(initiative), *initiative_panels(initiative)),
        outcome=view_run.PANELS_OF_INITIATIVE,
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


def gate_needs(initiative: Initiative) -> tuple[Matter, ...]:
    """The need that an open cross-repo gate is; the existing program opens those of its layout."""
    pending = initiative.pending
    if pending is None or initiative.status.startswith("blocked"):
        return ()
    need = findings.gate_need(pending)
    if initiative.layout != OWN:
        way = verdicts(APPROVE_BARRIER if existing_program.is_there() else None)
    else:
        way = verdicts(APPROVE_BARRIER, (("barrier", pending.gate),))
    return (need._replace(verdicts=way),)


def start_needs(initiative: Initiative, troubles: list[Trouble]) -> tuple[Matter, ...]:
    """The need that an initiative is which is only written down; none where that has errors."""
    if initiative.layout != OWN or not initiative.state.missing or initiative.config.reason:
        return ()
    if any(t.severity is Severity.ERROR or t.code == "INTERRUPTED" for t in troubles):
        return ()
    text = "The initiative has not started"
    return (decision("start", "START", text, YOU, None, START),)


def _headline(initiative: Initiative, turns: tuple[Turn, ...]) -> str:
    if initiative.status == "completed":
        return "completed."
    if initiative.status == "unreadable":
        return "the coordinator's state cannot be read."
    status = "not started" if initiative.status == "absent" else status_called(initiative.status)
    behind = lagging(initiative)
    waits = f"; waiting for {turns[0].participant}: {turns[0].what}" if turns else ""
    lag = f"; {', '.join(behind[:5])} behind" if behind else ""
    return f"{initiative.phase or 'no phase'}: {status}{lag}{waits}"


def _gates(initiative: Initiative) -> tuple[Gate, ...]:
    return tuple(
        Gate(
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
    events = view_run.ledger_events(f"{home}/decision-ledger.jsonl", initiative.ledger)
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


_MOST = 200  # decisions or objections of one workstream

DECIDED = {
    "barrier_reached": "reached by all",
    "barrier_approved": "approved",
    "barrier_rejected": "rejected",
    "barrier_crossed": "crossed unapproved",
    "resync": "resynced",
    "resync_failed": "resync failed",
    "phase_transition_approved": "approved",
}

_OVER = ("approved", "satisfied")  # barriers at which nobody is missing any more
_COUNTED = ("pending", "partially_satisfied")  # the count of those who are there says the same


def initiative_panels(initiative: Initiative) -> tuple[Panel, ...]:
    """All panels, the most pressing first; those that are empty come last."""
    found = (
        board(initiative),
        _gate(initiative),
        _barriers(initiative),
        _objections(initiative),
        _governance(initiative),
        _decisions(initiative),
    )
    return tuple(sorted(found, key=lambda panel: not panel.rows))


def lagging(initiative: Initiative) -> list[str]:
    """The workstreams that the others wait for.

    A workstream that is held at a barrier is ahead of one at work in the same phase.
    """
    order = {name: 2 * place for place, name in enumerate(initiative.phases)}
    places = {}
    for stream in initiative.workstreams:
        place = order.get(stream.phase, -1) + (stream.status == "blocked:barrier")
        places[stream.name] = 2 * len(order) if stream.status == "completed" else place
    ahead = max(places.values(), default=0)
    unreadable = {s.name for s in initiative.workstreams if s.status == "unreadable"}
    return [name for name, place in places.items() if place < ahead and name not in unreadable]


def board(initiative: Initiative) -> Panel:
    """The workstreams below the phase in which they are, or the barrier at which they wait."""
    behind, rows = set(lagging(initiative)), []
    at_barrier = {name for b in initiative.barriers for name in _waiting_at(initiative, b)}
    for phase in initiative.phases:
        here = [
            stream
            for stream in initiative.workstreams
            if stream.phase == phase and stream.status != "completed"
        ]
        rows.append(Row((phase, "", "", "")))
        rows += [_row(s, s.name in behind) for s in here if s.name not in at_barrier]
        for barrier in initiative.barriers:
            if barrier.phase == phase:
                rows.append(_barrier_row(initiative, barrier))
                there = _waiting_at(initiative, barrier)
                rows += [_row(s, False) for s in here if s.name in there]
    done = [stream for stream in initiative.workstreams if stream.status == "completed"]
    if done:
        rows.append(Row(("completed", "", "", "")))
        rows += [_row(stream, False) for stream in done]
    lost = [s for s in initiative.workstreams if s.phase not in initiative.phases and s not in done]
    if lost:
        rows.append(Row(("in no phase", "", "", "")))
        rows += [_row(stream, True) for stream in lost]
    columns = ("workstream", "standing", "waiting for", "last accepted turn")
    empty = "No workstreams."
    return Panel(
        "board", "Board", "tree", columns, tuple(rows) if initiative.workstreams else (), empty,
        spare=1,
    )  # fmt: skip


def _waiting_at(initiative: Initiative, barrier: Barrier) -> set[str]:
    if initiative.layout != OWN:
        return set()
    return {
        stream.name
        for stream in initiative.workstreams
        if stream.run and stream.run.record.barrier == barrier.name
    }


def _row(stream: Workstream, behind: bool) -> Row:
    status = status_called(stream.status) + (", behind" if behind else "")
    waits = ""
    if stream.run and stream.status != "blocked:barrier":
        turn = next(iter(run_waiting(stream.run)), None)
        waits = f"{turn.participant}: {turn.what}" if turn else ""
    latest = stream.run.accepted[-1:] if stream.run else ()
    said = "".join(f"{turn.role}: {clean_line(turn.summary, 120)}" for turn in latest)
    tone = Tone.OTHER
    if stream.status == "blocked:barrier":
        tone = Tone.REVIEW
    elif stream.status == "completed":
        tone = Tone.DONE
    elif stream.readable is None or stream.status == "blocked":
        tone = Tone.BLOCKED
    elif behind:
        tone = Tone.REVISE
    return Row((stream.name, status, waits, said), depth=1, tone=tone)


def _barrier_row(initiative: Initiative, barrier: Barrier) -> Row:
    missing = [name for name in barrier.required if name not in barrier.reached]
    there = f"{len(barrier.reached)} of {len(barrier.required)} there"
    over = barrier.status in _OVER
    status = barrier.status
    if status in _COUNTED:
        status = there
    elif not over and missing:
        status = f"{plain(status)}, {there}"
    waits = "" if over else ", ".join(missing)
    target, tone = Target(), Tone.OTHER
    if over and _waiting_at(initiative, barrier):
        status, tone = f"{barrier.status}, not crossed", Tone.BLOCKED
    elif over:
        tone = Tone.PASS
    elif initiative.pending is not None and initiative.pending.gate == barrier.name:
        waits, tone = "your approval", Tone.REVIEW
        target = Target(action=APPROVE_BARRIER, given=(("barrier", barrier.name),))
    elif barrier.status == "rejected":
        tone = Tone.REVISE
    return Row((f"═ {barrier.name}", status, waits, barrier.comment), tone=tone, target=target)


def _gate(initiative: Initiative) -> Panel:
    """What speaks for and against opening the cross-repo gate, workstream by workstream."""
    rows: list[Row] = []
    pending = initiative.pending
    if pending is not None:
        own = initiative.layout == OWN
        can_be_done = own or existing_program.is_there()
        action = APPROVE_BARRIER if can_be_done else None
        given = (("barrier", pending.gate),) if own else ()
        head = (gate_called(pending.gate), f"ends {pending.phase}", "all workstreams are there", "")
        rows.append(Row(head, tone=Tone.REVIEW, target=Target(action=action, given=given)))
        for stream in initiative.workstreams:
            if stream.run is not None:
                rows += _evidence(stream.name, stream.run, pending.phase)
    columns = ("workstream", "item", "value", "evidence")
    return Panel("gate", "Cross-repo gate", "table", columns, tuple(rows), "No pending gate.")


def _evidence(name: str, run: Run, phase: str) -> Iterator[Row]:
    """What a workstream did in the phase that the gate ends; it may be ahead of it."""
    last = next((each for each in reversed(run.accepted) if each.phase == phase), AcceptedTurn())
    who = f"{last.role} {last.turn_id}".strip()
    yield Row((name, "latest accepted turn", who, last.summary))
    yield Row((name, "verification", last.verification or "no statement", last.evidence))
    for gate in lacking(run, phase):
        yield Row((name, "not met", gate.label, gate.evidence), tone=Tone.REVISE)
    for each in run.objections:
        if each.open:
            cells = (name, "open objection", f"{each.id} ({each.severity})", each.statement)
            yield Row(cells, tone=Tone.REVIEW)


def _barriers(initiative: Initiative) -> Panel:
    rows = tuple(
        Row(
            (b.name, plain(b.status),
             ", ".join(n for n in b.required if n not in b.reached and b.status not in _OVER),
             ", ".join(b.reached), b.phase, shown_time(b.approved_at), b.comment, plain(b.kind)),
            checked=b.status in _OVER,
        )
        for b in initiative.barriers
    )  # fmt: skip
    columns = ("barrier", "status", "missing", "reached by", "phase", "approved", "comment", "kind")
    return Panel("barriers", "Barriers", "table", columns, rows, "No barriers.")


def _objections(initiative: Initiative) -> Panel:
    rows = tuple(
        Row(
            (
                stream.name,
                each.id,
                each.severity,
                plain(each.status),
                each.statement,
                each.raised_by,
            ),
            tone=Tone.REVIEW,
        )
        for stream in initiative.workstreams
        for each in ([o for o in stream.run.objections if o.open][:_MOST] if stream.run else ())
    )
    columns = ("workstream", "id", "severity", "status", "statement", "raised by")
    return Panel(
        "objections",
        "Open objections",
        "table",
        columns,
        rows,
        "No open objections.",
        disagreement=True,
    )


def _governance(initiative: Initiative) -> Panel:
    """What was decided about the whole, as the coordinator's ledger tells it."""
    home = folder(initiative.layout)
    name = "ledger.jsonl" if initiative.layout == OWN else "decision-ledger.jsonl"
    rows = []
    for line in initiative.ledger.lines[-_MOST:]:
        each = decode(CoordinatorLine, line.value)
        if initiative.layout == OWN and each.type not in DECIDED:
            continue
        said = each.comment or each.statement or _failures(each)
        what = DECIDED.get(each.type) or each.category
        about = each.barrier or each.workstream_id
        rows.append(
            Row(
                (shown_time(each.at), about, what, each.who, said),
                tone=Tone.DECIDE,
                target=Target(document=f"{home}/{name}", line=line.number),
            )
        )
    columns = ("at", "barrier", "what", "by", "comment")
    return Panel(
        "governance", "Cross-repo decisions", "table", columns, tuple(reversed(rows)),
        "No cross-repo decisions yet.",
    )  # fmt: skip


def _failures(line: CoordinatorLine) -> str:
    return "; ".join(f"{each.workstream}: {each.reason}" for each in line.failures)


def _decisions(initiative: Initiative) -> Panel:
    rows = []
    for stream in initiative.workstreams:
        for line in stream.run.ledger.lines[-_MOST:] if stream.run else ():
            if "id" in line.value and "statement" in line.value:
                each = decode(LedgerLine, line.value)
                cells = (stream.name, each.category, each.id, each.role, each.statement)
                rows.append(Row(cells, tone=Tone.DECIDE))
    rows.sort(key=lambda row: row.cells[1])
    columns = ("workstream", "category", "id", "role", "statement")
    return Panel(
        "decisions", "Decisions of all workstreams", "table", columns, tuple(rows),
        "No decisions yet.",
    )  # fmt: skip
