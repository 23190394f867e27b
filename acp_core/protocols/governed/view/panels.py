"""The panels of a run: active turns, decisions, objections, history of its gates."""

from __future__ import annotations

from datetime import datetime

from acp_core import model
from acp_core.model.format import age, dated
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.gates import BY_A_HUMAN, MET, gates
from acp_core.protocols.governed.read.run import Objection, Run
from acp_core.protocols.governed.rules.results import SEVERITIES
from acp_core.protocols.governed.schema import AcceptedTurn, LedgerLine, decode, plain
from acp_core.protocols.governed.view.common import TONES
from acp_core.protocols.governed.view.limits import limits

_MOST = 500  # rows of a panel: the latest


def run_panels(run: Run, now: datetime) -> tuple[model.Panel, ...]:
    """All panels of a run as of ``now``, the most pressing first; those that are empty come last."""
    found = (_gate(run), _turns(run, now), _objections(run), _decisions(run), limits(run))
    return tuple(sorted(found, key=lambda panel: not panel.rows))


def shown_time(at: datetime | None) -> str:
    """A time as the panels show it, in local time."""
    return dated(at) if at else ""


def _gate(run: Run) -> model.Panel:
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
        rows = [model.Row(cells, tone=model.Tone.REVIEW) for cells in about]
        rows += [
            model.Row(
                (MET[gate.met], f"{gate.label}: {gate.evidence}".rstrip(": ")),
                tone=model.Tone.PASS if gate.met else model.Tone.REVISE,
                target=model.Target(document=gate.document),
            )
            for gate in gates(run)
            if not gate.label.endswith(BY_A_HUMAN)
        ]
    return model.Panel(
        "gate", "Pending gate", "table", ("item", "value"), tuple(rows), "No pending gate."
    )


def _turns(run: Run, now: datetime) -> model.Panel:
    rows = tuple(
        model.Row(
            (t.role, t.status.replace("_", " "), age(t.since, now), str(t.attempt),
             "staged" if t.staged else "nothing yet",
             shown_time(t.since), shown_time(t.deadline), t.id),
            tone=model.Tone.BLOCKED if t.status in ("conflicted", "failed") else model.Tone.OTHER,
            ages=((2, t.since),) if t.since else (),
        )
        for t in run.turns
    )  # fmt: skip
    columns = ("role", "status", "age", "attempt", "result", "since", "deadline", "turn")
    return model.Panel("turns", "Active turns", "table", columns, rows, "No active turns.")


def _objections(run: Run) -> model.Panel:
    rows = tuple(
        model.Row(
            (o.id, o.severity, plain(o.status), o.statement, o.raised_by, shown_time(o.raised_at),
             "" if o.status == "raised" else o.changed_by, shown_time(o.changed_at)),
            checked=not o.open,
            tone=model.Tone.REVIEW if o.open else model.Tone.PASS,
        )
        for o in sorted(run.objections, key=_pressing)[:_MOST]
    )  # fmt: skip
    columns = ("id", "severity", "status", "statement", "raised by", "at", "changed by", "at last")
    return model.Panel(
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


def _decisions(run: Run) -> model.Panel:
    rows = []
    for number, value in run.ledger.lines[-_MOST:]:
        line = decode(LedgerLine, value)
        at = shown_time(line.at)
        if line.kind:
            about = line.gate_id or line.objection_id or line.turn_id or line.blocked_on
            cells = (about, plain(line.kind), line.who, line.phase, _outcome(line), "", at)
            tone = TONES.get(line.kind, model.Tone.OTHER)
        else:
            cells = (line.id, line.category, line.role, line.phase, line.statement,
                     line.rationale, at)  # fmt: skip
            tone = model.Tone.DECIDE
        target = model.Target(document=schema.LEDGER, line=number)
        rows.append(model.Row(cells, tone=tone, target=target))
    columns = ("id", "what", "by", "phase", "statement", "rationale", "at")
    return model.Panel(
        "decisions", "Decision ledger", "table", columns, tuple(rows), "No decisions yet."
    )
