"""What the existing program began to write into a run, and did not finish.

That program notes in ``.agentxchain/transactions`` what it is about to write (the accepted turn,
its decisions, the state), and takes the note away when all of it is written. A note that is left
may be the only place where an accepted turn stands, so nothing is ever done over it. What a note
holds is laid down nowhere: only what it plainly says is told. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from acp_core.files.atomic import is_leftover
from acp_core.files.reading import stamp
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, obj, text

FOLDER = ".agentxchain/transactions"
AT_ONCE = timedelta(seconds=3)
"""A note that is younger belongs to a program that is writing just now."""
_OVER = (
    "aborted", "applied", "cancelled", "committed", "complete", "completed", "done", "finished",
    "rolled_back",
)  # fmt: skip
_KINDS = ("kind", "type", "operation", "action")
_INNER = ("turn", "history_entry", "entry", "payload")
"""Members of a note that may name the turn."""
_DEEP, _MOST = 3, 50


class Transaction(NamedTuple):
    """A note that is left: ``name`` is its file, relative to the repository.

    ``what`` is what was begun, ``turn`` the turn that it is about, ``state`` how far it says that it
    is, each "" where it does not say; ``reason`` why it cannot be read, "" where it can.
    """

    name: str
    what: str = ""
    turn: str = ""
    state: str = ""
    at: datetime | None = None
    reason: str = ""

    def is_fresh(self, now: datetime) -> bool:
        """Whether it may well be at work at this moment."""
        return self.at is not None and abs(now - self.at) < AT_ONCE


def unfinished(root: Path) -> tuple[Transaction, ...]:
    """The notes that are left in the run at ``root``, by name; never raises."""
    found = [_read(root, path) for path in files(root)]
    return tuple(each for each in found if each is not None)


def files(root: Path) -> list[Path]:
    """The files in which notes may be, whatever they hold; never raises."""
    home = schema.inside(root, FOLDER)
    return sorted(_files(home, _DEEP))[:_MOST] if home is not None else []


def folders(root: Path) -> Iterator[Path]:
    """The folders in which notes may come to be: to be watched."""
    home = schema.inside(root, FOLDER)
    if home is not None:
        yield home
        yield from sorted(_folders(home, _DEEP))[:_MOST]


def _read(root: Path, path: Path) -> Transaction | None:
    name = os.path.relpath(path, root)
    found = stamp(path)
    written = datetime.fromtimestamp(found.modified / 1e9, UTC) if found else None
    loaded = schema.read_object(path)
    if loaded.missing:
        return None
    if loaded.reason:
        return Transaction(name, at=written, reason=loaded.reason)
    value = loaded.value
    state = text(value, "status", 60) or text(value, "state", 60)
    if state.lower() in _OVER:
        return None
    what = next((t for key in _KINDS if (t := text(value, key, 80))), "")
    at = schema.moment(value, "prepared_at", "started_at", "created_at", "at", "timestamp")
    return Transaction(name, what.replace("_", " "), _turn(value), state, at or written)


def _turn(value: Object) -> str:
    holders = (value, *(obj(value, key) for key in _INNER))
    return next((t for each in holders if (t := text(each, "turn_id", 80))), "")


def _files(home: Path, deep: int) -> Iterator[Path]:
    """Files that are notes; names with a leading dot, and what killed writers left, are none."""
    for entry in _entries(home):
        if entry.is_symlink() or entry.name.startswith(".") or is_leftover(entry.name):
            continue
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif deep and entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), deep - 1)


def _folders(home: Path, deep: int) -> Iterator[Path]:
    for entry in _entries(home):
        if deep and entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)
            yield from _folders(Path(entry.path), deep - 1)


def _entries(home: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(home) as entries:
            return sorted(entries, key=lambda entry: entry.name)[: 4 * _MOST]
    except OSError:
        return []


def describe(each: Transaction) -> str:
    """What was begun, in words without a capital and without a full stop."""
    what = each.what or "a write"
    begun = f"“{what}”" if each.what else what
    return clean_line(f"{begun} ({each.turn})" if each.turn else begun, 200)


def refusal(left: tuple[Transaction, ...]) -> str:
    """Why nothing may be written over these notes, and what to do, in a line."""
    first, more = left[0], len(left) - 1
    also = f" and {more} more" if more else ""
    return (
        f"the agentxchain program did not finish {describe(first)} ({clean_line(first.name, 200)}{also}"
        "): let that program finish it, or review it and run `acp governed set-aside`"
    )
