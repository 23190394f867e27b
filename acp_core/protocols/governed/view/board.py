"""The panels of an initiative: its board, the open gate, barriers, objections and decisions."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.gates import lacking
from acp_core.protocols.governed.read.initiative import OWN, Barrier, Initiative, Workstream, folder
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import (
    APPROVE_BARRIER,
    AcceptedTurn,
    CoordinatorLine,
    LedgerLine,
    decode,
    gate_called,
    plain,
    status_called,
)
from acp_core.protocols.governed.view.panels import shown_time
from acp_core.protocols.governed.view.run import waiting as run_waiting

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


def initiative_panels(initiative: Initiative) -> tuple[model.Panel, ...]:
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


def board(initiative: Initiative) -> model.Panel:
    """The workstreams below the phase in which they are, or the barrier at which they wait."""
    behind, rows = set(lagging(initiative)), []
    at_barrier = {name for b in initiative.barriers for name in _waiting_at(initiative, b)}
    for phase in initiative.phases:
        here = [
            stream
            for stream in initiative.workstreams
            if stream.phase == phase and stream.status != "completed"
        ]
        rows.append(model.Row((phase, "", "", "")))
        rows += [_row(s, s.name in behind) for s in here if s.name not in at_barrier]
        for barrier in initiative.barriers:
            if barrier.phase == phase:
                rows.append(_barrier_row(initiative, barrier))
                there = _waiting_at(initiative, barrier)
                rows += [_row(s, False) for s in here if s.name in there]
    done = [stream for stream in initiative.workstreams if stream.status == "completed"]
    if done:
        rows.append(model.Row(("completed", "", "", "")))
        rows += [_row(stream, False) for stream in done]
    lost = [s for s in initiative.workstreams if s.phase not in initiative.phases and s not in done]
    if lost:
        rows.append(model.Row(("in no phase", "", "", "")))
        rows += [_row(stream, True) for stream in lost]
    columns = ("workstream", "standing", "waiting for", "last accepted turn")
    empty = "No workstreams."
    return model.Panel(
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


def _row(stream: Workstream, behind: bool) -> model.Row:
    status = status_called(stream.status) + (", behind" if behind else "")
    waits = ""
    if stream.run and stream.status != "blocked:barrier":
        turn = next(iter(run_waiting(stream.run)), None)
        waits = f"{turn.participant}: {turn.what}" if turn else ""
    latest = stream.run.accepted[-1:] if stream.run else ()
    said = "".join(f"{turn.role}: {clean_line(turn.summary, 120)}" for turn in latest)
    tone = model.Tone.OTHER
    if stream.status == "blocked:barrier":
        tone = model.Tone.REVIEW
    elif stream.status == "completed":
        tone = model.Tone.DONE
    elif stream.run is None or stream.run.state.reason or stream.status == "blocked":
        tone = model.Tone.BLOCKED
    elif behind:
        tone = model.Tone.REVISE
    return model.Row((stream.name, status, waits, said), depth=1, tone=tone)


def _barrier_row(initiative: Initiative, barrier: Barrier) -> model.Row:
    missing = [name for name in barrier.required if name not in barrier.reached]
    there = f"{len(barrier.reached)} of {len(barrier.required)} there"
    over = barrier.status in _OVER
    status = barrier.status
    if status in _COUNTED:
        status = there
    elif not over and missing:
        status = f"{plain(status)}, {there}"
    waits = "" if over else ", ".join(missing)
    target, tone = model.Target(), model.Tone.OTHER
    if over and _waiting_at(initiative, barrier):
        status, tone = f"{barrier.status}, not crossed", model.Tone.BLOCKED
    elif over:
        tone = model.Tone.PASS
    elif initiative.pending is not None and initiative.pending.gate == barrier.name:
        waits, tone = "your approval", model.Tone.REVIEW
        target = model.Target(action=APPROVE_BARRIER, given=(("barrier", barrier.name),))
    elif barrier.status == "rejected":
        tone = model.Tone.REVISE
    return model.Row(
        (f"═ {barrier.name}", status, waits, barrier.comment), tone=tone, target=target
    )


def _gate(initiative: Initiative) -> model.Panel:
    """What speaks for and against opening the cross-repo gate, workstream by workstream."""
    rows: list[model.Row] = []
    pending = initiative.pending
    if pending is not None:
        own = initiative.layout == OWN
        can_be_done = own or existing_program.is_there()
        action = APPROVE_BARRIER if can_be_done else None
        given = (("barrier", pending.gate),) if own else ()
        head = (gate_called(pending.gate), f"ends {pending.phase}", "all workstreams are there", "")
        rows.append(
            model.Row(head, tone=model.Tone.REVIEW, target=model.Target(action=action, given=given))
        )
        for stream in initiative.workstreams:
            if stream.run is not None:
                rows += _evidence(stream.name, stream.run, pending.phase)
    columns = ("workstream", "item", "value", "evidence")
    return model.Panel("gate", "Cross-repo gate", "table", columns, tuple(rows), "No pending gate.")


def _evidence(name: str, run: Run, phase: str) -> Iterator[model.Row]:
    """What a workstream did in the phase that the gate ends; it may be ahead of it."""
    last = next((each for each in reversed(run.accepted) if each.phase == phase), AcceptedTurn())
    who = f"{last.role} {last.turn_id}".strip()
    yield model.Row((name, "latest accepted turn", who, last.summary))
    yield model.Row((name, "verification", last.verification or "no statement", last.evidence))
    for gate in lacking(run, phase):
        yield model.Row((name, "not met", gate.label, gate.evidence), tone=model.Tone.REVISE)
    for each in run.objections:
        if each.open:
            cells = (name, "open objection", f"{each.id} ({each.severity})", each.statement)
            yield model.Row(cells, tone=model.Tone.REVIEW)


def _barriers(initiative: Initiative) -> model.Panel:
    rows = tuple(
        model.Row(
            (b.name, plain(b.status),
             ", ".join(n for n in b.required if n not in b.reached and b.status not in _OVER),
             ", ".join(b.reached), b.phase, shown_time(b.approved_at), b.comment, plain(b.kind)),
            checked=b.status in _OVER,
        )
        for b in initiative.barriers
    )  # fmt: skip
    columns = ("barrier", "status", "missing", "reached by", "phase", "approved", "comment", "kind")
    return model.Panel("barriers", "Barriers", "table", columns, rows, "No barriers.")


def _objections(initiative: Initiative) -> model.Panel:
    rows = tuple(
        model.Row(
            (
                stream.name,
                each.id,
                each.severity,
                plain(each.status),
                each.statement,
                each.raised_by,
            ),
            tone=model.Tone.REVIEW,
        )
        for stream in initiative.workstreams
        for each in ([o for o in stream.run.objections if o.open][:_MOST] if stream.run else ())
    )
    columns = ("workstream", "id", "severity", "status", "statement", "raised by")
    return model.Panel(
        "objections",
        "Open objections",
        "table",
        columns,
        rows,
        "No open objections.",
        disagreement=True,
    )


def _governance(initiative: Initiative) -> model.Panel:
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
            model.Row(
                (shown_time(each.at), about, what, each.who, said),
                tone=model.Tone.DECIDE,
                target=model.Target(document=f"{home}/{name}", line=line.number),
            )
        )
    columns = ("at", "barrier", "what", "by", "comment")
    return model.Panel(
        "governance", "Cross-repo decisions", "table", columns, tuple(reversed(rows)),
        "No cross-repo decisions yet.",
    )  # fmt: skip


def _failures(line: CoordinatorLine) -> str:
    return "; ".join(f"{each.workstream}: {each.reason}" for each in line.failures)


def _decisions(initiative: Initiative) -> model.Panel:
    rows = []
    for stream in initiative.workstreams:
        for line in stream.run.ledger.lines[-_MOST:] if stream.run else ():
            if "id" in line.value and "statement" in line.value:
                each = decode(LedgerLine, line.value)
                cells = (stream.name, each.category, each.id, each.role, each.statement)
                rows.append(model.Row(cells, tone=model.Tone.DECIDE))
    rows.sort(key=lambda row: row.cells[1])
    columns = ("workstream", "category", "id", "role", "statement")
    return model.Panel(
        "decisions", "Decisions of all workstreams", "table", columns, tuple(rows),
        "No decisions yet.",
    )  # fmt: skip
