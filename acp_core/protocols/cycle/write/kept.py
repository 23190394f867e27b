"""What acp wrote last into a state file: a copy beside acp's own files, and one for all accounts.

By it a change of somebody else shows, and a state that is lost or damaged is put back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.person import paths
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.state import what_is_lacking
from acp_core.protocols.cycle.write import last_written
from acp_core.protocols.cycle.write.found import LIMIT
from acp_core.protocols.cycle.write.last_written import digest as digest


class LastWritten(NamedTuple):
    """What acp wrote last, and the digests of the files that this may stand in."""

    known: tuple[str, str]
    state: Object


def read(root: Path, id: str) -> LastWritten | None:
    """What is kept of a cycle; None where nothing is, or it cannot be read."""
    try:
        kept = json.loads(read_bounded(_place(root, id), 2 * LIMIT))
        known, state = (kept["digest"], kept["before"]), kept["state"]
    except (Unreadable, ValueError, KeyError, TypeError):
        return None
    return LastWritten(known, state) if isinstance(state, dict) else None


def whole(root: Path, id: str) -> Object | None:
    """The state as acp wrote it last, whole; None where no such copy is kept."""
    for kept in (read(root, id), last_written.read(root, id)):
        if kept and not what_is_lacking(kept.state):
            return kept.state
    return None


def remember(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Keep what is about to be written; where that crashes, the file itself is right.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    kept = {"digest": digest(data), "before": digest(before), "state": json.loads(data)}
    place = _place(root, id)
    with contextlib.suppress(OSError):
        modes.private_folder(place.parent)
        atomic.sweep(place)
        atomic.replace(place, json.dumps(kept).encode(), sync=False, private=True)
    last_written.remember(root, id, data, before)


def _place(root: Path, id: str) -> Path:
    key = hashlib.sha256(f"{root.resolve()}\0{id}".encode()).hexdigest()[:16]
    return paths.state_folder() / "cycles" / f"{id[:60]}-{key}.json"
