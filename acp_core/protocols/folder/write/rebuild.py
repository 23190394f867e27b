"""Making a protocol.json again when it can no longer be read.

Phase, owner and waiting follow from the log. Objective, participants and gates stand only in
protocol.json itself; second copies are the one that acp may have kept in the user's state
folder, and README.md. Source: folder protocol specification, "Files". Standard library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from acp_core.files import markdown
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.files.markdown import normalise
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import DELIVERABLE_EVENTS, Entry, deliverables
from acp_core.protocols.folder.write import backups
from acp_core.protocols.folder.write.charter import Charter, Primary

MARK = "rebuilt"
_BULLET = re.compile(r"^[^\S\n]*[-*] +(?:\[[ xX]\] +)?([^\n]+)$", re.MULTILINE)
_ID = re.compile(r"`([^`\n]{1,200})`")
_OBJECTIVE = re.compile(r"^(?:\*\*)?Objective(?:\*\*)?:[^\S\n]*([^\n]+)$", re.MULTILINE)
_EXISTS = re.compile(r"^Primary deliverable exists: `([^`\n]+)`", re.MULTILINE)
_TYPE = re.compile(r"^Primary deliverable has required `([^`\n]+)` sections", re.MULTILINE)
_GATE_SECTIONS = ("Completion Gates", "Objective Gates")


class Rebuilt(NamedTuple):
    """A protocol.json made again; ``sources`` says from what, in words."""

    protocol: dict[str, Any]
    sources: tuple[str, ...]


def rebuild(folder: str, broken: bytes, entries: list[Entry]) -> Rebuilt | None:
    """The static part of protocol.json from the best source there is; None where none will do.

    Args:
        folder: the collaboration.
        broken: what stands in protocol.json now.
        entries: the events of its log.
    """
    whole = _first_object(broken)
    if whole is not None:
        return Rebuilt(whole, ("the readable beginning of protocol.json",))
    kept = backups.kept_charter(folder)
    if kept is not None and _fits(kept, entries):
        return Rebuilt(kept, ("acp's copy of its last version",))
    return _from_documents(folder, entries)


def _first_object(broken: bytes) -> dict[str, Any] | None:
    """The object at the beginning of the file: two writers may have left the end of another."""
    text = broken.decode(errors="replace").lstrip()
    if len(broken) > schema.MAX_PROTOCOL or schema.too_deep(text):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
        sound = schema.decode_protocol(schema.encode_protocol(value))
    except (ValueError, TypeError):
        return None
    complete = isinstance(value, dict) and value.get("objective") and schema.participant_ids(sound)
    return sound if complete else None


def _fits(kept: dict[str, Any], entries: list[Entry]) -> bool:
    """Whether a kept copy can be that of this log: everybody who speaks in it takes part."""
    people = schema.participant_ids(kept)
    return all(entry.sender in people for entry in entries)


def _from_documents(folder: str, entries: list[Entry]) -> Rebuilt | None:
    readme = _text(folder, "README.md")
    readiness = _text(folder, "readiness.md")
    proposal = _text(folder, "proposal.md")
    objective = (
        _section(readme, ("Objective",))
        or _match(_OBJECTIVE, readme)
        or _section(proposal, ("Purpose",))
    )
    participants = _participants(readme, entries)
    gates = _bullets(_section(readme, _GATE_SECTIONS)) or _bullets(
        _section(readiness, _GATE_SECTIONS)
    )
    if not objective or not participants or not gates:
        return None
    primary = _primary(readiness, folder)
    if primary is None and any(entry.event in DELIVERABLE_EVENTS for entry in entries):
        return None
    charter = Charter(objective, participants, gates, primary)
    return Rebuilt(charter.protocol(), ("README.md and readiness.md", "the log"))


def _participants(readme: str, entries: list[Entry]) -> tuple[str, ...]:
    """Those that README.md lists, and everybody who speaks in the log; the owner first."""
    listed = _section(readme, ("Participants",))
    names: dict[str, None] = {}
    if entries and entries[0].event == "initialized" and entries[0].sender:
        names[entries[0].sender] = None
    for bullet in _bullets(listed):
        quoted = _ID.search(bullet)
        name = quoted.group(1) if quoted else bullet.split()[0].strip(":,")
        if schema.is_participant_id(name):
            names[name] = None
    for entry in entries:
        if entry.sender:
            names[entry.sender] = None
    return tuple(names)


def _primary(readiness: str, folder: str) -> Primary | None:
    """The primary deliverable as the generated gates in readiness.md name it (internal only)."""
    boxes = "\n".join(box.text for box in markdown.check_boxes(readiness))
    reference, kind = _match(_EXISTS, boxes), _match(_TYPE, boxes)
    if not kind or kind not in deliverables.TYPES or not deliverables.is_inside(reference):
        return None
    if reference.startswith("external:"):
        return None  # nothing but protocol.json says where the repository begins
    directory, _, file = reference.rpartition("/")
    directory, _, below = directory.partition("/")
    file = f"{below}/{file}" if below else file
    checklist: tuple[str, ...] = ()
    if kind == deliverables.CUSTOM:
        text = _text(folder, reference)
        checklist = tuple(
            heading.title for heading in markdown.headings(text) if heading.level == 2
        )
        if not checklist:
            return None
    return Primary(kind, file, checklist, deliverables.INTERNAL, directory)


def _text(folder: str, name: str) -> str:
    try:
        return normalise(
            read_bounded(os.path.join(folder, name), schema.MAX_DOCUMENT).decode(errors="replace")
        )
    except Unreadable:
        return ""


def _section(text: str, titles: Iterable[str]) -> str:
    wanted = {title.lower() for title in titles}
    found = (
        part.body.strip() for part in markdown.sections(text, 2) if part.title.lower() in wanted
    )
    return next(found, "")


def _bullets(text: str) -> tuple[str, ...]:
    return tuple(match.group(1).strip() for match in _BULLET.finditer(text))


def _match(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(1).strip() if match else ""
