"""The documents of a cycle: those of the agents with their versions, and what changed in them.

Source: development cycle specification, "Progress Markdown Files" (a document is copied to
``history/`` under its version before it is written anew).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple

from acp_core.files.records import File, read_text
from acp_core.model import Document, DocumentText
from acp_core.model.text import clean, clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import AGENTS, HOME, Cycle, Project, Version
from acp_core.protocols.cycle.state import earlier, history
from acp_core.protocols.kit.documents import LIMIT, document

_DOCUMENTS = 1_000
_LINES = 2_000  # of each of two texts that are compared
_AROUND = 3  # unchanged lines that are shown around a change
_MAIN = (*state.DOCUMENTS.values(), "vas/summary.md", "cd/issues.md")
_FOLDERS = (*AGENTS, "coordination")


class Compared(NamedTuple):
    """A document and the latest earlier version of it that is kept."""

    id: str
    inside: str
    old: File
    new: File
    version: Version


def documents(project: Project, cycle: Cycle) -> tuple[Document, ...]:
    """All documents: those of the agents first, then the states."""
    found = [_own(cycle, file) for file in _ordered(cycle)]
    found += [_changes(each) for each in compared(cycle)]
    states = [each.record.file for each in project.cycles if not each.lost]
    states += [project.prep.file] if project.prep else []
    found += [
        document(file, file.name.removeprefix("/".join(HOME) + "/"), "state") for file in states
    ]
    return tuple(found)


def _own(cycle: Cycle, file: File) -> Document:
    inside = file.name.removeprefix(cycle.progress)
    folder, _, rest = inside.partition("/")
    version = state.document_versions(cycle).get(inside)
    title = f"{inside} v{schema.written(version)}" if version else inside
    if "/" in rest:  # copies of earlier versions, and what was sent and said: behind the panels
        return document(file, title, "state")
    return document(file, title, "deliverable" if folder in AGENTS else "document")


def order(inside: str) -> tuple[bool, int, bool, int, str]:
    """Where a document stands: agents in their order, then the coordination; the past comes last.

    ``inside`` is its name in the progress folder.
    """
    folder, _, rest = inside.partition("/")
    place = _FOLDERS.index(folder) if folder in _FOLDERS else len(_FOLDERS)
    main = _MAIN.index(inside) if inside in _MAIN else len(_MAIN)
    return "/" in rest, place, rest.endswith((".log", ".ndjson")), main, inside


def _ordered(cycle: Cycle) -> list[File]:
    return sorted(
        cycle.files[:_DOCUMENTS], key=lambda file: order(file.name.removeprefix(cycle.progress))
    )


def compared(cycle: Cycle) -> Iterator[Compared]:
    """Each document of which an earlier version is kept."""
    known = history(cycle)
    for file in _ordered(cycle):
        inside = file.name.removeprefix(cycle.progress)
        if inside.count("/") != 1 or file.link:
            continue
        before = [each for each in earlier(cycle, inside, known) if not each[1].link]
        if before:
            version, old = before[-1]
            id = clean_line(f"{file.name} since v{schema.written(version)}")
            yield Compared(id, inside, old, file, version)


def _changes(each: Compared) -> Document:
    title = clean_line(f"{each.inside} since v{schema.written(each.version)}")
    version = "-".join(f"{f.changed.timestamp()}-{f.size}" for f in (each.old, each.new))
    changed = each.new.changed
    return Document(each.id, title, "text", "state", None, None, changed, version)


def changes(known: Document, each: Compared) -> DocumentText:
    """What changed in a document since its latest earlier version, line by line."""
    texts = []
    for file in (each.old, each.new):
        text, problem = read_text(file, LIMIT)
        if problem:
            note = clean_line(f"{file.path.name} {problem}")
            return DocumentText(known.id, known.version, "", note=note)
        texts.append(clean(text).split("\n"))
    if max(map(len, texts)) > _LINES:
        note = f"too long to compare: more than {_LINES:,} lines"
        return DocumentText(known.id, known.version, "", note=note)
    old, new = texts
    lines = list(difflib.unified_diff(old, new, lineterm="", n=_AROUND))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    head = f"{each.inside} since v{schema.written(each.version)}: +{added} -{removed} lines"
    return DocumentText(known.id, known.version, clean("\n".join([head, "", *lines])))
