"""What changed between two Snapshots, one change after the other: what ``acp watch`` prints.

Pure functions. The ``type`` of a change and its fields are the schema ``acp.watch/1``:
types and fields are only ever added.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from acp_core.cli import fields
from acp_core.model import Event, Finding, Need, Snapshot, Turn, format
from acp_core.model.sentence import continued, names_in


class Change(NamedTuple):
    """One change: its type, what it says in a line, when it was, and its own fields."""

    type: str
    text: str
    at: datetime
    fields: fields.Fields


def first(snapshot: Snapshot) -> Iterator[Change]:
    """How a collaboration stands when watching it begins."""
    yield Change("state", snapshot.headline, snapshot.as_of, {"state": fields.summary(snapshot)})
    for need in snapshot.needs:
        yield _need(need, snapshot, snapshot.as_of)


def between(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    """What is different in ``new``: events first, then what follows from them."""
    now = new.as_of
    yield from _events(old, new)
    if (old.phase, old.round) != (new.phase, new.round):
        yield Change("phase", _phase_text(old, new), now, _phase_fields(old, new))
    if _waited(old.turns) != _waited(new.turns):
        yield Change("waiting", _waiting_text(new), now, _waiting_fields(new))
    yield from _documents(old, new)
    yield from _findings(old, new)
    yield from _needs(old, new)
    if old.source != new.source:
        text = f"reading: {new.source.state.value}"
        note = new.source.note
        told = {"state": new.source.state.value, "note": note}
        yield Change("source", f"{text}, {note}" if note else text, now, told)
    if old.status is not new.status:
        told = {"status": new.status.value, "before": old.status.value}
        yield Change("status", f"{new.status.value}: {new.headline}", now, told)


def gone(snapshot: Snapshot, now: datetime) -> Change:
    """The collaboration is not there any more."""
    return Change("gone", "gone: the folder was removed, or is no longer a collaboration", now, {})


def _events(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.events is new.events:
        return
    had = len(old.events)
    grown = len(new.events) >= had and (had == 0 or _same(old.events[-1], new.events[had - 1]))
    if grown:
        added = list(new.events[had:])
    else:  # the log was cut or rewritten: say it, then what was not there before
        known = {event.id: event for event in old.events}
        added = [e for e in new.events if not (e.id in known and _same(known[e.id], e))]
        told = {"before": had, "event_count": len(new.events)}
        text = f"history changed: {format.count(had, 'event')} before, {len(new.events):,} now"
        yield Change("history", text, new.as_of, told)
    for event in added:
        yield Change("event", _event_text(event), event.at or new.as_of, _event_fields(event))


def _same(one: Event, other: Event) -> bool:
    return one is other or one == other


def _event_text(event: Event) -> str:
    reply = f" (replies to {event.reply_to})" if event.reply_to else ""
    problem = f" [{event.problem}]" if event.problem else ""
    return f"{event.id} {event.actor} {event.kind}: {event.summary}{reply}{problem}"


def _event_fields(event: Event) -> fields.Fields:
    return {"event": fields.event(event)}


def _phase_text(old: Snapshot, new: Snapshot) -> str:
    later = f", round {new.round}" if new.round and new.round > 1 else ""
    return f"phase: {old.phase or '-'} → {new.phase or '-'}{later}"


def _phase_fields(old: Snapshot, new: Snapshot) -> fields.Fields:
    return {"phase": new.phase, "round": new.round, "before": old.phase}


def _waited(turns: tuple[Turn, ...]) -> list[tuple[str, str]]:
    return [(turn.participant, turn.what) for turn in turns]


def _waiting_text(new: Snapshot) -> str:
    if not new.turns:
        return "waiting for no participant"
    whats = dict.fromkeys(turn.what for turn in new.turns)
    names = ", ".join(dict.fromkeys(turn.participant for turn in new.turns))
    return f"waiting for {names}: {'; '.join(whats)}"


def _waiting_fields(new: Snapshot) -> fields.Fields:
    return {"waiting": [fields.turn(each) for each in new.turns]}


def _documents(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.documents is new.documents:
        return
    before = {document.id: document for document in old.documents}
    for document in new.documents:
        was = before.pop(document.id, None)
        if was is document or document.group == "state":
            continue  # what the state files say shows as events and phases
        if was is None or was.state != document.state:
            what = document.state
        elif was.version != document.version:
            what = "changed"
        else:
            continue
        text = f"document: {document.id} {what}"
        if document.late:
            text += f" ({document.late})"
        told = {"what": what, "document": fields.document(document)}
        yield Change("document", text, document.changed or new.as_of, told)
    for document in before.values():
        told = {"what": "gone", "document": fields.document(document)}
        yield Change("document", f"document: {document.id} gone", new.as_of, told)


def _identity(finding: Finding) -> tuple[str, str, str | None, str | None]:
    """Findings that differ only in their line are the same one: text above it moved."""
    return finding.code, finding.message, finding.document, finding.event


def _findings(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    if old.findings is new.findings:
        return
    before = {_identity(finding): finding for finding in old.findings}
    after = {_identity(finding): finding for finding in new.findings}
    for key, finding in after.items():
        if key not in before:
            yield Change("finding", _finding_text(finding), new.as_of, _finding_fields(finding))
    for key, finding in before.items():
        if key not in after:
            text = f"cleared: {finding.code} {finding.message}"
            yield Change("finding_cleared", text, new.as_of, _finding_fields(finding))


def _finding_text(finding: Finding) -> str:
    place = finding.document or ""
    if place and finding.line:
        place += f":{finding.line}"
    return f"{finding.severity.value}: {finding.code} {place} {finding.message}".replace("  ", " ")


def _finding_fields(finding: Finding) -> fields.Fields:
    return {"finding": fields.finding(finding)}


def _needs(old: Snapshot, new: Snapshot) -> Iterator[Change]:
    before = {need.key: need for need in old.needs}
    for need in new.needs:
        if before.pop(need.key, None) is None:
            yield _need(need, new, new.as_of)
    for need in before.values():
        text = f"no longer needed: {continued(need.text, names_in(old))}"
        yield Change("need_met", text, new.as_of, {"need": {"key": need.key, "code": need.code}})


def _need(need: Need, snapshot: Snapshot, now: datetime) -> Change:
    told = fields.need(need)
    told.pop("acknowledged")  # it stands in a person's own notes, not in the collaboration
    text = f"needs you: {continued(need.text, names_in(snapshot))}"
    return Change("need", text, now, {"need": told})
