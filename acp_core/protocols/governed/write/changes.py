"""What a step would change, as texts that are safe to show: for previews and dry runs."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from acp_core.files.transaction import APPEND, REMOVE, Write
from acp_core.model.action import Change
from acp_core.model.text import clean, clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.state import Move
from acp_core.protocols.governed.write.journal import document, line
from acp_core.protocols.governed.write.opened import Opened, content, refuse_over_unfinished

_LONGEST = 1 << 16  # characters of one file's change


def changes(opened: Opened, move: Move | None, more: Sequence[Write] = ()) -> tuple[Change, ...]:
    """The files that a step touches, in the order in which they are written.

    Raises:
        Refused: the step may not be made, see `opened.commit`; or a file cannot be read.
    """
    found = []
    if move is not None:
        refuse_over_unfinished(opened)
        for name, lines in (
            (schema.HISTORY, move.history),
            (schema.LEDGER, move.ledger),
            (schema.EVENTS, move.events),
        ):
            if lines:
                text = b"".join(line(each) for each in lines)
                found.append(Change(_path(opened.root, name), "append", _added(text)))
    found += of_writes(opened.root, more)
    if move is not None:
        before, after = opened.raw_state or b"", document(move.state)
        name = _path(opened.root, schema.STATE)
        found.append(Change(name, "replace" if before else "create", _diff(before, after)))
    return tuple(found)


def of_writes(root: Path, writes: Sequence[Write]) -> tuple[Change, ...]:
    """What these writes below ``root`` would change.

    Raises:
        Refused: a file cannot be read.
    """
    return tuple(_change(root, each) for each in writes)


def since_sealed(root: Path, name: str) -> str:
    """What somebody but acp changed in a sealed file; only of the state it is known."""
    before = own_writes.last_sealed(root) if name == schema.STATE else None
    if before is None:
        return "is accepted as it is; its changes are unknown"
    return _diff(before, content(root, name) or b"")


def _change(root: Path, write: Write) -> Change:
    name = os.path.relpath(write.path, root)
    path = _path(root, name)
    if write.verb == APPEND:
        return Change(path, "append", _added(write.data))
    if write.verb == REMOVE:
        return Change(path, "remove")
    before = content(root, name)
    if before is None:
        return Change(path, "create", _added(write.data))
    return Change(path, "replace", _diff(before, write.data))


def _path(root: Path, name: str) -> str:
    return clean_line(os.path.join(root, name), 2_000)


def _lines(data: bytes) -> list[str]:
    text = clean(data.decode(errors="replace"))
    return text.removesuffix("\n").split("\n") if text else []


def _added(data: bytes) -> str:
    return _bounded("\n".join(f"+{each}" for each in _lines(data)))


def _diff(before: bytes, after: bytes) -> str:
    return _bounded("\n".join(difflib.unified_diff(_lines(before), _lines(after), lineterm="")))


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "\n…"
