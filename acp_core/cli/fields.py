"""Snapshots as JSON: the fields that every ``--json`` shares. They are only ever added to.

Times are UTC in ISO 8601 with ``Z``; null stands for what is not known. ``key`` and
``path`` are exact; every other text is safe to show.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from acp_core.model import Severity

if TYPE_CHECKING:
    from acp_core.history.forecast import Outlook, Usual
    from acp_core.model import Document, Event, Finding, Matter, Preview, Snapshot, Turn
    from acp_core.model.matter import Until

Fields = dict[str, Any]


def time(at: datetime | None) -> str | None:
    """A time as text."""
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def picked(each: object, names: str) -> Fields:
    """Some attributes, by their names (with blanks between them), as JSON has them.

    Times are written as text, enumerations as their values, tuples as lists.
    """
    return {name: _plain(getattr(each, name)) for name in names.split()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return time(value)
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def summary(snapshot: Snapshot) -> Fields:
    """What a row of the fleet says of a collaboration."""
    names = "objective status phase round progress headline verdict doubt"
    return (
        picked(snapshot, "key name protocol")
        | {"dialect": snapshot.dialect}
        | picked(snapshot, names)
        | {
            "source": picked(snapshot.source, "state note"),
            "waiting": [turn(each) for each in snapshot.turns],
            "causes": [cause(each) for each in snapshot.causes],
            "matters": [matter(each) for each in snapshot.matters],
            "finding_counts": {each.value: snapshot.count(each) for each in Severity},
            "event_count": len(snapshot.events),
        }
        | picked(snapshot, "parts since started changed as_of")
        | _runners(snapshot)
    )


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
    return {
        "waiting": [
            {"participant": turn.participant, "usual": usual(each)} for turn, each in waits
        ],
        "phase": usual(forecast.phase),
        "phase_ends": forecast.ends and picked(forecast.ends, "likely early late cases"),
    }


def usual(each: Usual | None) -> Fields | None:
    """A usual duration: median, first and third quartile, and of how many cases."""
    return each and picked(each, "median low high cases")


def detail(snapshot: Snapshot) -> Fields:
    """Everything that is known of a collaboration, its documents' texts left out."""
    return summary(snapshot) | {
        "phases": [
            picked(phase, "id label state")
            | {"visits": [picked(visit, "round entered left") for visit in phase.visits]}
            for phase in snapshot.phases
        ],
        "participants": [
            picked(each, "id kind role last_event last_seen") for each in snapshot.participants
        ],
        "next_actions": [picked(each, "participant text waited") for each in snapshot.next_actions],
        "events": [event(each) for each in snapshot.events],
        "documents": [document(each) for each in snapshot.documents],
        "gates": [picked(gate, "label met document line evidence") for gate in snapshot.gates],
        "findings": [finding(each) for each in snapshot.findings],
        "notices": [_notice(each) for each in snapshot.notices],
        "panels": [
            picked(panel, "id title shape columns")
            | {"rows": [picked(row, "cells depth checked") for row in panel.rows]}
            for panel in snapshot.panels
        ],
        "lineage": [
            picked(link, "relation location name found summary") for link in snapshot.lineage
        ],
    }


def turn(each: Turn) -> Fields:
    """Who is waited for."""
    return picked(each, "participant what since")


def event(each: Event) -> Fields:
    """One entry of the timeline."""
    names = "id order source kind tone actor at at_source summary reply_to document line problem"
    return picked(each, names)


def document(each: Document) -> Fields:
    """One document, without its text."""
    return picked(each, "id title kind group path size changed version state note late")


def finding(each: Finding) -> Fields:
    """Something that a validator says."""
    names = "code severity message document line event explanation remedy action"
    return picked(each, names)


def need(each: Matter, *, acknowledged: bool = False) -> Fields:
    """A reason why a human is wanted."""
    return (
        picked(each, "key code")
        | {"text": each.sentence, "participant": each.about.participant}
        | picked(each, "since")
        | {"action": each.remedy or None, "given": dict(each.given), "acknowledged": acknowledged}
    )


def _notice(each: Matter) -> Fields:
    about = {"text": each.sentence, "document": each.about.document}
    return {"code": each.code} | about | picked(each, "since")


def cause(each: Matter) -> Fields:
    """Why it does not go on."""
    return (
        picked(each, "key code")
        | {"headline": each.sentence, "advice": each.instruction}
        | picked(each, "evidence certain wanted")
        | {"remedy": each.remedy or None, "given": dict(each.given), "others": list(each.others)}
        | {"participant": each.about.participant}
        | picked(each, "since")
        | ({"until": until(each.until)} if each.until else {})
        | picked(each.about, "document line event")
    )


def matter(each: Matter) -> Fields:
    """What stands, and whose move it is: what every command says of it."""
    return (
        picked(each, "key code kind")
        | {"move": {"who": each.move.who.value, "name": each.move.name or None}}
        | picked(each, "sentence instruction since")
        | {
            "until": each.until and until(each.until),
            "about": picked(each.about, "participant document line event"),
        }
        | picked(each, "evidence certain")
        | {"because": each.because or None}
        | {"refuses_others": each.refuses is not None, "allows": sorted(each.refuses or ())}
        | {
            "verdicts": [
                {"action": verdict.act, "given": dict(verdict.given), "ends": verdict.ends}
                for verdict in each.verdicts
            ]
        }
    )


def until(each: Until) -> Fields:
    """When it ends by itself, and how exactly and from what that is known."""
    return picked(each, "at precision source")


def needs(snapshot: Snapshot, still_open: Iterable[Matter]) -> list[Fields]:
    """Every need of a collaboration, with whether the person has acknowledged it."""
    keys = {each.key for each in still_open}
    return [need(each, acknowledged=each.key not in keys) for each in snapshot.needs]


def preview(each: Preview) -> Fields:
    """What an action would do."""
    changes = [picked(change, "path verb diff") for change in each.changes]
    told = {"sentence": each.sentence, "changes": changes}
    return told | picked(each, "command warnings notes refused")
