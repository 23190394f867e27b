"""Files as documents, their text, and cards: rows that lead to documents and differences.

What protocols without rules of their own about documents use. Everything on a card is made safe to show
here; see `acp_core.model.card`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import File, read_text
from acp_core.model import Document, DocumentText, Heading, Row, Target, Tone
from acp_core.model.action import Change
from acp_core.model.card import Card, CardDocument, CardSection, CardVerdict
from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.wording import difference, safe

LIMIT = 4 << 20  # bytes of a document that are shown

_KINDS = {".md": "markdown", ".json": "json", ".jsonl": "json"}


def kind_of(path: Path) -> str:
    """What a document holds, by its file's name: ``markdown``, ``json`` or ``text``."""
    return _KINDS.get(path.suffix.lower(), "text")


def document(file: File, title: str, group: str) -> Document:
    """A file as a document; a link is named and not followed: it may lead out of the folder.

    Args:
        file: as it was listed.
        title: the document's, for people.
        group: ``document``, ``deliverable`` or ``state``, see `Document`.
    """
    name, title, kind = clean_line(file.name), clean_line(title), kind_of(file.path)
    if file.link:
        note = "a symbolic link, which is not followed"
        return Document(name, title, kind, group, None, state="unreadable", note=note)
    version = f"{file.changed.timestamp()}-{file.size}"
    return Document(name, title, kind, group, str(file.path), file.size, file.changed, version)


def loaded(document: Document, path: Path | None) -> DocumentText:
    """A document's text and headings; a note in their place where it cannot be read.

    Args:
        document: as the Snapshot holds it.
        path: its file; None where that leads out of the collaboration.
    """
    if path is None:
        note = document.note or "leads out of the folder"
        return DocumentText(document.id, document.version, "", note=note)
    try:
        text = clean(read_bounded(path, LIMIT).decode("utf-8", "replace"))
    except Unreadable as error:
        return DocumentText(document.id, document.version, "", note=clean_line(error.reason))
    found = markdown.headings(text) if document.kind == "markdown" else ()
    headings = tuple(Heading(h.level, clean_line(h.title, 300), h.line) for h in found)
    return DocumentText(document.id, document.version, text, headings)


MOST = 20
"""Rows of a section: a person reads no more, and the documents hold the rest."""
COMPARED = 1 << 18
"""Bytes of a file of which the difference is shown."""


@dataclass(kw_only=True)
class Evidence:
    """What the rows of one card point to.

    Attributes:
        known: the documents of the latest Snapshot, by id.
        judged: the documents that rows point to.
        changes: the differences that rows point to.
    """

    known: Mapping[str, Document]
    judged: dict[str, CardDocument] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def target(self, name: str, line: int | None = None) -> Target:
        """Where a file can be read, by its name; nowhere where the Snapshot does not have it."""
        document = self.known.get(safe(name))
        if document is None:
            return Target()
        self.judged[document.id] = CardDocument(document.id, document.version)
        return Target(document=document.id, line=line)

    def differs(
        self, old: File, new: File, names: tuple[str, str], label: str, note: str = ""
    ) -> tuple[Row, ...]:
        """A row with how many lines differ, which opens the difference; none where none does.

        Args:
            old, new: the files.
            names: what they are called in the difference.
            label, note: what stands before and behind the numbers.
        """
        (before, wrong), (after, unreadable) = (read_text(each, COMPARED) for each in (old, new))
        if wrong or unreadable or not before:
            return ()
        texts = [each.encode(errors="replace") for each in (before, after)]
        diff = difference(texts[0], texts[1], safe(names[0]), safe(names[1]))
        if not diff:
            return ()
        path = f"{safe(names[0])} and {safe(names[1])}"
        self.changes.append(Change(path, "compare", diff))
        self.target(new.name)
        return (Row((safe(label), counted(diff), safe(note)), target=Target(change=path)),)

    def card(
        self,
        id: str,
        title: str,
        sections: Iterable[CardSection],
        verdicts: Iterable[CardVerdict],
        *,
        claim: str = "",
        by: str = "",
        since: datetime | None = None,
    ) -> Card:
        """The card of these facts; sections that say nothing are left out."""
        return Card(
            safe(id),
            safe(title),
            safe(claim),
            by,
            since,
            tuple(each for each in sections if each.rows),
            tuple(verdicts),
            tuple(self.judged.values()),
            tuple(self.changes),
        )


def texts(title: str, told: Sequence[str], tone: Tone = Tone.OTHER) -> CardSection:
    """A section of texts, each in a row of its own."""
    rows = [Row((safe(each),), tone=tone) for each in told[:MOST] if each.strip()]
    return CardSection(title, tuple(rows))


def counted(diff: str) -> str:
    """Lines added and removed by a difference, as "+3 −1"."""
    lines = [each for each in diff.splitlines() if not each.startswith(("+++", "---"))]
    added = sum(each.startswith("+") for each in lines)
    removed = sum(each.startswith("-") for each in lines)
    return " ".join(filter(None, (f"+{added}" if added else "", f"−{removed}" if removed else "")))
