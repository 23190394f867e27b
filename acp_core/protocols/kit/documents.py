"""A file as a document, and its text: what protocols without rules of their own about it use."""

from __future__ import annotations

from pathlib import Path

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import File
from acp_core.model import Document, DocumentText, Heading
from acp_core.model.text import clean, clean_line

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
