"""Figures of a collaboration as JSON, the same in `acp stats` and in a report."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.cli import fields
from acp_core.history.measured import Change, Point
from acp_core.history.metrics import Metrics, Span


def figures(each: Metrics, findings: Sequence[Point], counts: Sequence[Change]) -> fields.Fields:
    """A collaboration's figures as JSON; null: not recorded."""
    return {
        "name": each.name,
        "status": each.status,
        "lead": _span(each.lead),
        "phases": [
            {
                "phase": phase.phase,
                "total": _span(phase.total),
                "rounds": [{"round": n, "time": _span(span)} for n, span in phase.rounds],
            }
            for phase in each.phases
        ],
        "participants": [
            {
                "participant": person.participant,
                "turns": person.turns,
                "waited_for_now": person.waiting,
                "median_seconds": person.median,
                "longest_seconds": person.longest,
                "waited_for": _span(person.total),
                "parked": _span(person.parked),
                "critical": _span(person.critical),
                "critical_share": person.share,
            }
            for person in each.people
        ],
        "events": each.events,
        "rounds": each.rounds,
        "reviews": each.reviews,
        "counts": [count._asdict() for count in each.counts],
        "findings": {"errors": each.errors, "warnings": each.warnings},
        "findings_over_time": [
            {"at": fields.time(point.at), "errors": point.errors, "warnings": point.warnings}
            for point in findings
        ],
        "counts_over_time": [
            {"at": fields.time(change.at), "what": change.what, "count": change.new}
            for change in counts
        ],
        "human_acts": each.human_acts,
        "retries": each.retries,
        "tokens": {"in": each.tokens[0], "out": each.tokens[1]} if each.tokens else None,
        "cost": each.cost,
        "estimated": each.estimated,
        **({"cost_unknown": list(each.unpriced)} if each.unpriced else {}),
        **({"uncertain": each.doubt} if each.doubt else {}),
    }


def _span(span: Span | None) -> fields.Fields | None:
    return None if span is None else {"seconds": span.seconds, "working_seconds": span.working}
