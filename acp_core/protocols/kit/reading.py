"""Reading, where protocols have no rules of their own: documents, files that are written together.

A file becomes a document with its text; several files that another process writes are read as one;
and what did not change from Snapshot to Snapshot stays the same object, which is cheap to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import File
from acp_core.model import Document, DocumentText, Heading, Snapshot
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


T = TypeVar("T")


def with_parts_of(old: Snapshot, new: Snapshot) -> Snapshot:
    """``new`` with the parts of ``old`` that are equal; ``old`` itself where all are."""
    kept = {}
    changed = False
    for each in fields(Snapshot):
        before, after = getattr(old, each.name), getattr(new, each.name)
        if before is after:
            continue
        if before == after:
            kept[each.name] = before
        elif each.name != "as_of":
            changed = True
            if each.name == "documents":  # a pane shows one of them
                kept[each.name] = _same_where_equal(before, after)
    if not changed:
        return old
    return replace(new, **kept) if kept else new


def _same_where_equal(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...]:
    """``after`` with the very objects of ``before`` where those at the same place are equal."""
    pairs = zip(before, after, strict=False)
    same = tuple(old if old == new else new for old, new in pairs)
    return same + after[len(same) :]


READINGS = 3
"""How often is read until nothing was written meanwhile; a writer that never rests is not waited for."""


def steadily(read: Callable[[], T], stands: Callable[[], object]) -> T:
    """Read; again where a file that is written with others changed while it was read.

    A write that goes on is known by its journal; one that ended between the readings of two files
    has left none, and what was read of them contradicts itself.

    Args:
        read: Reads all of them.
        stands: What tells two states of these files apart, such as their stamps.

    Returns:
        What was read last.
    """
    for _ in range(READINGS - 1):
        before = stands()
        made = read()
        if stands() == before:
            return made
    return read()
