"""A Snapshot and its parts as JSON for others: without the paths of this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any

from acp_core.model import Document, DocumentText, Event, Link, Preview, Snapshot
from acp_core.protocols.wire.schema import Json, time_text

FORM = "acp.snapshot/1"
EVENTS = 5_000  # that are told at once, the latest
TEXT = 400_000  # characters of a document
DIFF = 40_000  # characters of what would become of a file
CHANGES = 100  # files that an act would change


def snapshot(shown: Snapshot, have: int = 0, digest: str = "") -> Json:
    """A Snapshot, with the events that the reader does not have.

    Args:
        have: how many events the reader has, from the first on.
        digest: what `digest_of` says of these: the others alone are told where they are the same.
    """
    total = len(shown.events)
    known = 0 < have <= total and digest_of(islice(shown.events, have)) == digest
    begin = have if known else max(0, total - EVENTS)
    here = replace(
        shown,
        key="",
        location=os.path.basename(shown.key),
        events=(),
        documents=tuple(replace(each, path=None) for each in shown.documents),
        parts=(),
        lineage=tuple(_elsewhere(each) for each in shown.lineage),
    )
    return {
        "form": FORM,
        "snapshot": plain(here),
        "begin": begin,
        "total": total,
        "digest": digest_of(shown.events),
        "events": [event(each) for each in islice(shown.events, begin, None)],
    }


def event(told: Event) -> Json:
    """An event of the timeline."""
    return {name: plain(value) for name, value in told._asdict().items()}


def document(about: Document, text: DocumentText) -> Json:
    """A document with its text; of a long one the beginning, which is said."""
    fields_ = {name: value for name, value in plain(about).items() if name != "path"}
    cut = len(text.text) > TEXT
    note = f"only the first {TEXT} characters are sent" if cut else text.note
    return {
        **fields_,
        "version": text.version,
        "text": text.text[:TEXT],
        "text_note": note,
        "headings": plain(text.headings),
    }


def preview(shown: Preview, folder: str) -> Json:
    """What an act would do; its files are named as in the folder, and nothing of the machine is."""
    return {
        "sentence": shown.sentence.replace(folder, os.path.basename(folder)),
        "changes": [
            {"verb": each.verb, "path": _inside(each.path, folder), "diff": each.diff[:DIFF]}
            for each in shown.changes[:CHANGES]
        ],
        "warnings": list(shown.warnings),
        "notes": list(shown.notes),
        "refused": shown.refused,
    }


def _inside(path: str, folder: str) -> str:
    """A path as seen from the folder; of one elsewhere, its name alone."""
    if not os.path.isabs(path):
        return path
    near = os.path.relpath(path, folder)
    return os.path.basename(path) if near.startswith(os.pardir) else near


def digest_of(events: Iterable[Event] | Sequence[Event]) -> str:
    """What tells two beginnings of a timeline apart."""
    found = hashlib.sha256()
    for each in events:
        found.update(f"{each.id}\0{each.kind}\0{each.problem}\n".encode("utf-8", "replace"))
    return found.hexdigest()


def plain(value: Any) -> Any:
    """A part of the model as JSON can hold it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return time_text(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value


def _elsewhere(link: Link) -> Link:
    return replace(link, location=os.path.basename(link.location), found=False)
