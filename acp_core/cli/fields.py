"""Snapshots as JSON: the fields that every ``--json`` shares. They are only ever added to.

Times are UTC in ISO 8601 with ``Z``; null stands for what is not known. ``key`` and
``path`` are exact; every other text is safe to show.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from acp_core.history.forecast import Outlook, Usual
from acp_core.model import (
    Cause,
    Document,
    Event,
    Finding,
    Need,
    Preview,
    Severity,
    Snapshot,
    Turn,
)

Fields = dict[str, Any]


def time(at: datetime | None) -> str | None:
    """A time as text."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def summary(snapshot: Snapshot) -> Fields:
    """What a row of the fleet says of a collaboration."""
    return {
        "key": snapshot.key,
        "name": snapshot.name,
        "protocol": snapshot.protocol,
        "dialect": snapshot.dialect,
        "objective": snapshot.objective,
        "status": snapshot.status.value,
        "phase": snapshot.phase,
        "round": snapshot.round,
        "progress": snapshot.progress,
        "headline": snapshot.headline,
        "verdict": snapshot.verdict.value,
        "doubt": snapshot.doubt,
        "source": {"state": snapshot.source.state.value, "note": snapshot.source.note},
        "waiting": [turn(each) for each in snapshot.turns],
        "causes": [cause(each) for each in snapshot.causes],
        "finding_counts": {each.value: snapshot.count(each) for each in Severity},
        "event_count": len(snapshot.events),
        "parts": list(snapshot.parts),
        "since": time(snapshot.since),
        "started": time(snapshot.started),
        "changed": time(snapshot.changed),
        "as_of": time(snapshot.as_of),
    } | _runners(snapshot)


def _runners(snapshot: Snapshot) -> Fields:
    """Who runs it now, and what that cost; nothing where nobody does, or of a moment of the past."""
    found = [
        {"participant": each.participant or None, "account": each.account or None}
        | ({"host": each.host} if each.host else {})
        for each in snapshot.runners
    ]
    cost = snapshot.cost
    costs = {"cost": cost.usd, "cost_unknown": list(cost.unknown)} if cost else {}
    hosts = {"hosts": list(snapshot.hosts)} if snapshot.hosts else {}
    return ({"runners": found} if found else {}) | costs | hosts


def outlook(forecast: Outlook, snapshot: Snapshot) -> Fields:
    """How long waits and the present phase usually take, in seconds; null where too little is known."""
    waits = zip(snapshot.turns, forecast.turns, strict=True)
    ends = forecast.ends
    return {
        "waiting": [
            {"participant": turn.participant, "usual": usual(each)} for turn, each in waits
        ],
        "phase": usual(forecast.phase),
        "phase_ends": None
        if ends is None
        else {
            "likely": time(ends.likely),
            "early": time(ends.early),
            "late": time(ends.late),
            "cases": ends.cases,
        },
    }


def usual(each: Usual | None) -> Fields | None:
    """A usual duration: median, first and third quartile, and of how many cases."""
    if each is None:
        return None
    return {"median": each.median, "low": each.low, "high": each.high, "cases": each.cases}


def detail(snapshot: Snapshot) -> Fields:
    """Everything that is known of a collaboration, its documents' texts left out."""
    return summary(snapshot) | {
        "phases": [
            {
                "id": phase.id,
                "label": phase.label,
                "state": phase.state.value,
                "visits": [
                    {"round": v.round, "entered": time(v.entered), "left": time(v.left)}
                    for v in phase.visits
                ],
            }
            for phase in snapshot.phases
        ],
        "participants": [
            {
                "id": each.id,
                "kind": each.kind,
                "role": each.role,
                "last_event": each.last_event,
                "last_seen": time(each.last_seen),
            }
            for each in snapshot.participants
        ],
        "next_actions": [
            {"participant": each.participant, "text": each.text, "waited": each.waited}
            for each in snapshot.next_actions
        ],
        "events": [event(each) for each in snapshot.events],
        "documents": [document(each) for each in snapshot.documents],
        "gates": [
            {
                "label": gate.label,
                "met": gate.met,
                "document": gate.document,
                "line": gate.line,
                "evidence": gate.evidence,
            }
            for gate in snapshot.gates
        ],
        "findings": [finding(each) for each in snapshot.findings],
        "notices": [
            {
                "code": each.code,
                "text": each.text,
                "document": each.document,
                "since": time(each.since),
            }
            for each in snapshot.notices
        ],
        "panels": [
            {
                "id": panel.id,
                "title": panel.title,
                "shape": panel.shape,
                "columns": list(panel.columns),
                "rows": [
                    {"cells": list(row.cells), "depth": row.depth, "checked": row.checked}
                    for row in panel.rows
                ],
            }
            for panel in snapshot.panels
        ],
        "lineage": [
            {
                "relation": link.relation,
                "location": link.location,
                "name": link.name,
                "found": link.found,
                "summary": link.summary,
            }
            for link in snapshot.lineage
        ],
    }


def turn(each: Turn) -> Fields:
    """Who is waited for."""
    return {"participant": each.participant, "what": each.what, "since": time(each.since)}


def event(each: Event) -> Fields:
    """One entry of the timeline."""
    return {
        "id": each.id,
        "order": each.order,
        "source": each.source,
        "kind": each.kind,
        "tone": each.tone.value,
        "actor": each.actor,
        "at": time(each.at),
        "at_source": each.at_source,
        "summary": each.summary,
        "reply_to": each.reply_to,
        "document": each.document,
        "line": each.line,
        "problem": each.problem,
    }


def document(each: Document) -> Fields:
    """One document, without its text."""
    return {
        "id": each.id,
        "title": each.title,
        "kind": each.kind,
        "group": each.group,
        "path": each.path,
        "size": each.size,
        "changed": time(each.changed),
        "version": each.version,
        "state": each.state,
        "note": each.note,
        "late": each.late,
    }


def finding(each: Finding) -> Fields:
    """Something that a validator says."""
    return {
        "code": each.code,
        "severity": each.severity.value,
        "message": each.message,
        "document": each.document,
        "line": each.line,
        "event": each.event,
        "explanation": each.explanation,
        "remedy": each.remedy,
        "action": each.action,
    }


def need(each: Need, *, acknowledged: bool = False) -> Fields:
    """A reason why a human is wanted."""
    return {
        "key": each.key,
        "code": each.code,
        "text": each.text,
        "participant": each.participant,
        "since": time(each.since),
        "action": each.action,
        "given": dict(each.given),
        "acknowledged": acknowledged,
    }


def cause(each: Cause) -> Fields:
    """Why it does not go on."""
    return {
        "key": each.key,
        "code": each.code,
        "headline": each.headline,
        "advice": each.advice,
        "evidence": list(each.evidence),
        "certain": each.certain,
        "wanted": each.wanted,
        "remedy": each.remedy,
        "given": dict(each.given),
        "others": list(each.others),
        "participant": each.participant,
        "since": time(each.since),
        "document": each.document,
        "line": each.line,
        "event": each.event,
    }


def needs(snapshot: Snapshot, still_open: Iterable[Need]) -> list[Fields]:
    """Every need of a collaboration, with whether the person has acknowledged it."""
    keys = {each.key for each in still_open}
    return [need(each, acknowledged=each.key not in keys) for each in snapshot.needs]


def preview(each: Preview) -> Fields:
    """What an action would do."""
    return {
        "sentence": each.sentence,
        "changes": [
            {"path": change.path, "verb": change.verb, "diff": change.diff}
            for change in each.changes
        ],
        "command": list(each.command),
        "warnings": list(each.warnings),
        "notes": list(each.notes),
        "refused": each.refused,
    }
