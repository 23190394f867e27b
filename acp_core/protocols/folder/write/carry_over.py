"""What a new collaboration takes over from the one that it continues: texts and deliverables.

Standard library only.
"""

from __future__ import annotations

import os
import re

from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.files.markdown import normalise
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import Entry, deliverables, documents
from acp_core.protocols.folder.write import templates
from acp_core.protocols.folder.write.charter import Charter
from acp_core.protocols.folder.write.init import File
from acp_core.protocols.folder.write.opened import Opened, path_of

_REVIEW = re.compile(r"^##(?=[ \t])", re.MULTILINE)
_FROZEN = re.compile(r"^Status:[ \t]*(?:Frozen|In Review)[ \t]*$", re.MULTILINE)
_AGAIN = (
    "- [unresolved] The questions below are those of the collaboration before: look at each "
    "again, then remove this line."
)

_FULL = "Its events.jsonl had reached the limit of acp: no event could follow."


def relative(target: str, start: str) -> str:
    """The way from one folder to another, for protocol.json and documents."""
    return os.path.relpath(os.path.realpath(target), os.path.realpath(start))


def texts(opened: Opened, charter: Charter, folder: str, answer: str) -> dict[str, str]:
    """The documents of the new collaboration that are not those of a fresh one."""
    texts = {
        "proposal.md": _proposal(opened, charter, folder, answer),
        "review.md": _reviews(opened, charter),
        "readiness.md": _readiness(opened, charter),
    }
    decisions = _text(opened, "decisions.md")
    if decisions.strip():
        texts["decisions.md"] = decisions
    return texts


def _proposal(opened: Opened, charter: Charter, folder: str, answer: str) -> str:
    """The old proposal, and on top of it how the last collaboration ended and what is said to it."""
    phase = opened.machine.ending
    endings = [entry for entry in opened.entries if entry.event == phase]
    what = "\n\n".join(_ending(entry, phase) for entry in endings) or _FULL
    before = relative(opened.folder, folder)
    title = "Answer" if phase == "blocked" else "Why It Continues"
    told = answer.strip() or (
        "The work continues from its conclusion." if endings else "The work continues as it stood."
    )
    old = _without_title(_text(opened, "proposal.md"))
    return f"""\
# Proposal

## Continued From

This continues the collaboration in `{before}`. {what}

## {title}

{told}

## Purpose Now

{charter.objective}

## What Was Proposed Before

{_one_deeper(old).strip() or "Nothing."}
"""


def _ending(entry: Entry, phase: str) -> str:
    return f"It was {phase} by {entry.sender} (seq {entry.name}, {entry.at}):\n\n{_quoted(entry.summary)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines() or [""])


def _without_title(text: str) -> str:
    return re.sub(r"\A\s*# [^\n]*\n?", "", text)


def _one_deeper(text: str) -> str:
    """The same text with its headings one level further down."""
    return re.sub(r"^(#{1,5})(?=[ \t])", r"#\1", text, flags=re.MULTILINE)


def _reviews(opened: Opened, charter: Charter) -> str:
    """A fresh review.md, followed by the old reviews; their headings belong to no event here."""
    fresh = templates.document(charter, "review.md")
    old = _without_title(_text(opened, "review.md"))
    headings = documents.scan_review(old).headings.values()
    if not headings:
        return fresh
    first = min(heading.line for heading in headings)
    reviews = "\n".join(old.split("\n")[first - 1 :])
    deeper = _REVIEW.sub("###", reviews).strip()
    return f"{fresh}\n## Reviews Of The Collaboration Before\n\n{deeper}\n"


def _readiness(opened: Opened, charter: Charter) -> str:
    """A fresh readiness.md with the questions that were listed before; gates are open again."""
    fresh = templates.document(charter, "readiness.md")
    items = documents.scan_readiness(_text(opened, "readiness.md")).items
    if not items:
        return fresh
    carried = "\n".join(f"- [{item.word}] {item.text}".rstrip() for item in items)
    line = next(line for line in fresh.split("\n") if line.startswith("- [unresolved]"))
    return fresh.replace(line, f"{_AGAIN}\n{carried}", 1)


def deliverable_files(opened: Opened, charter: Charter, folder: str) -> list[File]:
    """The deliverables that lie in the old folder, to be worked on further."""
    declaration = deliverables.declare(opened.protocol)
    if charter.primary is None or declaration.mode != deliverables.INTERNAL:
        return []  # external ones stay where they are
    root = deliverables.root_of(declaration, opened.folder)
    here = deliverables.Root(os.path.realpath(folder))
    carried = []
    for item in declaration.all:
        path = deliverables.path_of(declaration, item, root)
        target = deliverables.path_of(declaration, item, here)
        if path is None or target is None:
            continue
        try:
            data = read_bounded(path, schema.MAX_DOCUMENT)
        except Unreadable:
            continue
        if item.role != "attachment":
            data = _FROZEN.sub("Status: Draft", data.decode(errors="replace")).encode()
        carried.append(File(item.reference, target, data))
    return carried


def _text(opened: Opened, name: str) -> str:
    """A document of the old folder, "" where it cannot be read."""
    try:
        data = read_bounded(path_of(opened.folder, name), schema.MAX_DOCUMENT)
    except Unreadable:
        return ""
    return normalise(data.decode(errors="replace"))
