"""The panels of a run: active turns, decisions, objections, history of its gates."""

from __future__ import annotations

from datetime import datetime

from acp_core import model
from acp_core.model.format import age, dated
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Objection, Run
from acp_core.protocols.governed.rules.result_schema import SEVERITIES
from acp_core.protocols.governed.schema import obj, text
from acp_core.protocols.governed.state.gates import BY_A_HUMAN, MET, gates
from acp_core.protocols.governed.view.common import TONES
from acp_core.protocols.governed.view.limits import limits
from acp_core.protocols.governed.view.wording import plain

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
        evidence = next(
            (line for line in reversed(run.history.lines)
             if text(line.value, "turn_id", 80) == pending.turn), None
        )  # fmt: skip
        value = evidence.value if evidence else {}
        checked = obj(value, "verification")
        standing = [o for o in run.objections if o.open]
        told = (
            ("gate", pending.gate),
            ("from", pending.phase),
            ("to", pending.to or "completed"),
            ("requested by", f"{text(value, 'role', 80)} {pending.turn}".strip()),
            ("summary", text(value, "summary")),
            ("verification", text(checked, "status", 40)),
            ("evidence", text(checked, "evidence_summary")),
            ("open objections", ", ".join(o.id for o in standing) or "none"),
        )
        rows = [model.Row(cells, tone=model.Tone.REVIEW) for cells in told]
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
        "gate", "Pending gate", "table", ("What", "Is"), tuple(rows), "No gate waits."
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
    columns = ("Role", "Status", "Age", "Attempt", "Result", "Since", "Deadline", "Turn")
    return model.Panel("turns", "Active turns", "table", columns, rows, "No turn is under way.")


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
    columns = ("Id", "Severity", "Status", "Statement", "Raised by", "At", "Changed by", "At last")
    return model.Panel("objections", "Objections", "table", columns, rows, "Nobody objected.")


def _pressing(objection: Objection) -> tuple[bool, int]:
    """Open ones first, the most severe of them on top."""
    severe = objection.severity in SEVERITIES
    return not objection.open, -SEVERITIES.index(objection.severity) if severe else 0


def _more(value: schema.Object) -> str:
    """What a line says that keeps its words in an object of its own."""
    files = schema.strings(obj(value, "conflict"), "conflicting_files")
    if files:
        return f"both changed {', '.join(files[:10])}"
    return text(obj(value, "escalation"), "detail")


def _decisions(run: Run) -> model.Panel:
    rows = []
    for line in run.ledger.lines[-_MOST:]:
        value = line.value
        at = shown_time(schema.moment(value, "created_at", "at", "timestamp"))
        kind = text(value, "type", 60) or text(value, "decision", 60)
        if kind:
            names = ("gate_id", "objection_id", "turn_id", "blocked_on")
            about = next((t for name in names if (t := text(value, name, 120))), "")
            said = text(value, "comment") or text(value, "reason") or text(value, "statement")
            said = said or next(iter(schema.strings(value, "reasons")), "") or _more(value)
            cells = (about, plain(kind), text(value, "by", 80) or text(value, "role", 80),
                     text(value, "phase", 80), text({"": said}, ""), "", at)  # fmt: skip
            tone = TONES.get(kind, model.Tone.OTHER)
        else:
            cells = (text(value, "id", 40), text(value, "category", 40), text(value, "role", 80),
                     text(value, "phase", 80), text(value, "statement"),
                     text(value, "rationale"), at)  # fmt: skip
            tone = model.Tone.DECIDE
        target = model.Target(document=schema.LEDGER, line=line.number)
        rows.append(model.Row(cells, tone=tone, target=target))
    columns = ("Id", "What", "By", "Phase", "Statement", "Rationale", "At")
    return model.Panel(
        "decisions", "Decision ledger", "table", columns, tuple(rows), "Nothing was decided yet."
    )
