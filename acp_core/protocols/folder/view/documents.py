"""The documents of a Snapshot, and which of them changed after they were settled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files.text import clean_line
from acp_core.model import Document, Notice
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import README, Facts
from acp_core.protocols.folder.read.file import File
from acp_core.protocols.folder.state import Machine

TOLERANCE = 2.0  # seconds between an event and the file times that belong to it
_TRUSTED = 10.0  # seconds that the log's own file time may differ from its last event's time
_TITLES = {
    "proposal.md": "Proposal",
    "review.md": "Review",
    "decisions.md": "Decisions",
    "readiness.md": "Readiness",
    "conclusion.md": "Conclusion",
    README: "Readme",
    schema.PROTOCOL_FILE: "State",
    schema.LOG_FILE: "Log",
}
LINK_NOTE = "a symbolic link that leads out of the folder: its text is not shown"
_INFERRED = "by its file time"


class Settled(NamedTuple):
    """Until when a document could change: the words for it, and the event's time."""

    words: str
    at: datetime


def documents(facts: Facts) -> tuple[Document, ...]:
    """The five documents, the deliverables, README.md where there is one, and the state files."""
    last = facts.history.last
    trust = trusted_after(facts, schema.parse_time(last.at) if last else None)
    settled = _settled(facts.history.machine)
    shown = [
        _document(file, _TITLES[name], "markdown", "document", settled.get(name), trust)
        for name, file in facts.files.items()
    ]
    readme = facts.others[README]
    if not readme.missing:
        shown.append(_document(readme, _TITLES[README], "markdown", "document", None, trust))
    for declared in facts.deliverables:
        item = declared.item
        title = item.file.rpartition("/")[2] or item.file
        kind = "markdown" if item.file.endswith(".md") else "text"
        when = settled.get("deliverables")
        shown.append(_document(declared.file, title, kind, "deliverable", when, trust))
    for name, kind in ((schema.PROTOCOL_FILE, "json"), (schema.LOG_FILE, "jsonl")):
        shown.append(_document(facts.others[name], _TITLES[name], kind, "state", None, trust))
    once: dict[str, Document] = {}
    for document in shown:  # a declaration may name a document, or one file twice
        once.setdefault(document.id, document)
    return tuple(once.values())


def _document(
    file: File[Any],
    title: str,
    kind: str,
    group: str,
    settled: Settled | None,
    trust: float,
) -> Document:
    changed = moment(file.modified)
    late = ""
    if settled and changed and not file.missing:
        after = changed.timestamp() - settled.at.timestamp()
        if after > TOLERANCE and changed.timestamp() > trust:
            late = f"changed {settled.words} ({_INFERRED})"
    note = LINK_NOTE if file.outside else "" if file.missing else file.problem
    return Document(
        id=clean_line(file.name, 300),
        title=clean_line(title, 100),
        kind=kind,
        group=group,
        path=file.path,
        size=file.stamp.size if file.stamp else None,
        changed=changed,
        version=file.version,
        state="missing" if file.missing else "unreadable" if file.problem else "present",
        note=clean_line(note),
        late=late,
    )


def trusted_after(facts: Facts, last: datetime | None) -> float:
    """The moment after which file times say something.

    In a folder that was copied or checked out, all files bear the time of the copy, and so
    does the log, later than its last event: only what is newer than the log then counts.
    """
    log = facts.others[schema.LOG_FILE].modified
    if log is None or last is None or log <= last.timestamp() + _TRUSTED:
        return 0.0
    return log + TOLERANCE


def _settled(machine: Machine) -> dict[str, Settled]:
    """For each document, the last event after which it must no longer change."""
    found: dict[str, Settled] = {}

    def settle(words: str, at: datetime | None, *names: str) -> None:
        if at is not None:
            found.update(dict.fromkeys(names, Settled(words, at)))

    if machine.phase == "reviewing":
        at = _began(machine, "reviewing")
        settle("while it was being reviewed", at, "proposal.md", "decisions.md", "deliverables")
    accepted = _began(machine, "readiness_check")
    if accepted and machine.accepted_ever:
        settle("after it was accepted", accepted, "proposal.md", "decisions.md")
    if "completed" in machine.last:
        at = _began(machine, "completed")
        settle("after completed", at, *schema.DOCUMENTS, "deliverables")
    return found


def _began(machine: Machine, phase: str) -> datetime | None:
    """When the latest stay in a phase began."""
    at = machine.began.get(phase)
    return schema.parse_time(at) if at else None


def notices(shown: tuple[Document, ...]) -> tuple[Notice, ...]:
    """A headline for each document that changed too late."""
    return tuple(
        Notice("late", f"{document.id} {document.late}", document.id, document.changed)
        for document in shown
        if document.late
    )


def moment(seconds: float | None) -> datetime | None:
    """A file time as a moment; None where it is none that a calendar knows."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
