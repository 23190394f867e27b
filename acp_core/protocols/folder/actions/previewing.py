"""What appending an event would do, shown beforehand. Standard library only."""

from __future__ import annotations

from datetime import UTC, datetime

from acp_core.model.action import Change, Preview
from acp_core.model.text import clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions.display import file_change
from acp_core.protocols.folder.read.location import path_of
from acp_core.protocols.folder.write.append import Prepared, Request, prepare
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit.wording import safe


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
    before = schema.encode_protocol(opened.protocol)
    protocol, log = schema.PROTOCOL_FILE, schema.LOG_FILE
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
