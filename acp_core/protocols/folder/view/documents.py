"""The documents of a Snapshot, and which of them changed after they were settled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.model import Document, Notice
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import (
    INFERRED,
    README,
    TOLERANCE,
    Facts,
    File,
    trusted_after,
)
from acp_core.protocols.folder.read.log import History

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
LINK_NOTE = "a symbolic link that points outside the folder: its text is not shown"
REVIEWED = "during the review"
UNDER_REVIEW = ("proposal.md", "decisions.md", "readiness.md")
STATE = (schema.PROTOCOL_FILE,)
OUTCOME = ("conclusion.md", "decisions.md")
"""The documents that say what came out and what was decided."""


class Settled(NamedTuple):
    """Until when a document could change: the words for it, the event's time, and its place."""

    words: str
    at: datetime
    events: int | None = None


def documents(facts: Facts) -> tuple[Document, ...]:
    """The five documents, the deliverables, README.md where there is one, and the state files."""
    last = facts.history.last
    trust = trusted_after(facts, schema.parse_time(last.at) if last else None)
    settled = _settled(facts.history)
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
        when = settled.get(name)
        shown.append(_document(facts.others[name], _TITLES[name], kind, "state", when, trust))
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
            late = f"changed {settled.words} ({INFERRED})"
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
        settled=settled.words if settled else "",
        settled_after=settled.events if settled else None,
    )


def _settled(history: History) -> dict[str, Settled]:
    """For each document, the last event after which it must no longer change."""
    machine = history.machine
    found: dict[str, Settled] = {}

    def settle(words: str, began: Began | None, *names: str) -> None:
        at = schema.parse_time(began[1]) if began else None
        if began and at is not None:
            found.update(dict.fromkeys(names, Settled(words, at, began[0])))

    if machine.phase == "reviewing":
        settle(REVIEWED, _began(history, "reviewing"), *UNDER_REVIEW, "deliverables")
        last = history.last  # every event brings protocol.json up to date
        settle(REVIEWED, (_place(history, last.seq), last.at) if last else None, *STATE)
    accepted = _began(history, "readiness_check")
    if accepted and machine.accepted_ever:
        settle("after it was accepted", accepted, "proposal.md", "decisions.md")
    if "completed" in machine.last:
        settle(
            "after completed",
            _began(history, "completed"),
            *schema.DOCUMENTS,
            "deliverables",
        )
    return found


Began = tuple[int | None, str]
"""How many events there were, where that is known, and the time of the last of them as written."""


def _began(history: History, phase: str) -> Began | None:
    """When the latest stay in a phase began."""
    if phase not in history.machine.began:
        return None
    for name, _, seq, at in reversed(history.machine.starts):
        if name == phase:
            return (_place(history, seq), at) if at else None
    return None


def _place(history: History, seq: int | None) -> int | None:
    """How many events a log holds up to one; None where its numbers do not say so."""
    return seq if history.check.regular else None


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
