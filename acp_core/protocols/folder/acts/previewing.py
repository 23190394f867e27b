"""What appending an event or starting a collaboration would do, as texts that are safe to show.

Source: folder protocol specification, "Required Inputs" and "Initialization". Standard library only:
the scripts of the portable skill show the same.
"""

from __future__ import annotations

import difflib
import os
from datetime import UTC, datetime

from acp_core.model.action import Change, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.deliverables import CUSTOM
from acp_core.protocols.folder.schema.records import path_of
from acp_core.protocols.folder.write.append import Prepared, Request, prepare
from acp_core.protocols.folder.write.init import EXISTS, Wish, charter_for, files
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import bounded, difference, lines_of, safe


def preview(
    request: Request, opened: Opened | None = None, humans: frozenset[str] | None = None
) -> Preview:
    """What appending an event would do.

    Args:
        request: the event.
        opened: the collaboration, where somebody opened it.
        humans: who may speak without a warning; None where everybody may.

    Raises:
        Refused: the event is not allowed.
        OSError: the collaboration cannot be read.
    """
    opened = opened or open_unlocked(request.folder)
    prepared = prepare(opened, request, datetime.now(UTC))
    entry, machine = prepared.entry, prepared.after.machine
    if prepared.existing:
        return Preview(safe(f"Already in the log: seq {entry.name}."))
    warnings = [safe(warning) for warning in prepared.warnings]
    if humans is not None and entry.sender not in humans:
        warnings.append(
            f"{clean_name(entry.sender)} is not a human participant: you act in its place, and its agent may be taking the same turn now"
        )
    waiting = ", ".join(machine.waiting) or "nobody"
    return Preview(
        sentence=safe(
            f"Append seq {entry.name}: {entry.event} from {entry.sender}. "
            f"Then: {machine.phase}, waiting for {waiting}."
        ),
        changes=_changes(opened, prepared),
        command=_command(request),
        warnings=tuple(warnings),
    )


def _changes(opened: Opened, prepared: Prepared) -> tuple[Change, ...]:
    edits = [file_change(edit.path, edit.name, edit.before, edit.after) for edit in prepared.edits]
    before = records.encode_protocol(opened.protocol)
    protocol, log = records.PROTOCOL_FILE, records.LOG_FILE
    return (
        *edits,
        file_change(path_of(opened.folder, log), log, b"", prepared.line),
        file_change(path_of(opened.folder, protocol), protocol, before, prepared.protocol),
    )


def _command(request: Request) -> tuple[str, ...]:
    """The command that appends the same event (the documents are then written beforehand)."""
    given = (
        ("--folder", request.folder),
        ("--participant", request.participant),
        ("--event", request.event),
        ("--summary", request.summary),
        ("--doc", request.doc),
        ("--reply-to", request.reply_to),
        ("--role", request.role),
        ("--review-file", "REVIEW.md" if request.review is not None else None),
    )
    words = [word for flag, value in given if value is not None for word in (flag, str(value))]
    return tuple(safe(word) for word in ("acp", "append", *words))


def file_change(path: str, name: str, before: bytes, after: bytes) -> Change:
    """A file's change as a unified diff; ``before`` may be only the part that changes."""
    old, new = lines_of(before), lines_of(after)
    verb = "replace" if before and not after.startswith(before) else "append"
    lines = difflib.unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="")
    return Change(safe(path), verb, bounded("\n".join(lines)))


def new_file(path: str, content: bytes) -> Change:
    """A file that is made, with its content."""
    return Change(safe(path), "create", difference(b"", content))


def plain(values: Values) -> Values:
    """The same without the dialect, which a form asks for and a command sees by the deliverable."""
    if not values.dialect:
        return values
    second, custom = values.dialect == "v2", values.deliverable == CUSTOM
    return Values(
        **vars(values)
        | {
            "dialect": "",
            "deliverable": values.deliverable if second else "",
            "file": values.file if second else "",
            "checklist": values.checklist if second and custom else [],
        }
    )


def wish(values: Values) -> Wish:
    """What is asked for, as the writer takes it."""
    given = plain(values)
    return Wish(
        objective=given.objective,
        participants=given.participants,
        gates=given.gates,
        type=given.deliverable or None,
        file=given.file.strip() or None,
        checklist=given.checklist,
        mode=given.deliverables_mode,
        folder=given.deliverables_dir,
        repo_root=given.repo_root,
    )


def preview_init(values: Values, folder: str) -> Preview:
    """What starting it would write.

    Raises:
        Refused: something is missing or not allowed, or a collaboration stands there.
    """
    if os.path.lexists(os.path.join(folder, "protocol.json")):
        raise Refused(EXISTS)
    charter, warnings = charter_for(wish(values), folder)
    wanted = files(charter, folder, datetime.now(UTC))
    new = [file for file in wanted if not os.path.lexists(file.path)]
    existing = [file.name for file in wanted if os.path.lexists(file.path)]
    if existing:
        warnings = (*warnings, f"unchanged: {', '.join(existing)}")
    return Preview(
        sentence=safe(f"Creates a collaboration of {', '.join(charter.participants)} in {folder}."),
        changes=tuple(new_file(file.path, file.data) for file in new),
        warnings=tuple(safe(warning) for warning in warnings),
    )
