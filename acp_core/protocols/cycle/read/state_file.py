"""What is found in a state file, whole or not, and the two copies of what acp wrote last into it.

One copy stands beside acp's own files (`read_own_copy`), one in ``.acp/run/`` for every account that
shares the project (`read_shared_copy`). Source: development cycle specification, "Shared State File".
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from acp_core.files import claims
from acp_core.files.claims import run_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import NO_OBJECT, entries, shallow
from acp_core.person import paths
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.state import what_is_lacking

LIMIT = 4 << 20  # bytes of a state file


class StateFile(NamedTuple):
    """What was found of a state file: the object in it, its bytes, and what is wrong with it."""

    state: Object
    data: bytes
    problem: str


def read_state_file(path: Path) -> StateFile:
    """What a state file holds at this moment; no link is followed."""
    if path.is_symlink():
        return StateFile({}, b"", "is a symbolic link")
    try:
        data = read_bounded(path, LIMIT)
    except Unreadable as error:
        return StateFile({}, b"", schema.LOST if error.missing else str(error))
    state, problem = parsed(data)
    return StateFile(state, data, problem or what_is_lacking(state))


def parsed(data: bytes) -> tuple[Object, str]:
    """The object in the bytes of a state file, and why there is none ("" where there is one)."""
    try:
        value = json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}, "is not valid JSON"
    if not shallow(value):
        return {}, "is nested too deeply"
    return (value, "") if isinstance(value, dict) else ({}, NO_OBJECT)


_SHARED_LIMIT = 8 << 20  # bytes: a state and its digests


class SharedCopy(NamedTuple):
    """What stands there, and whether this very account wrote it."""

    known: tuple[str, str]
    state: Object
    mine: bool


def read_shared_copy(root: Path, id: str) -> SharedCopy | None:
    """What is noted of a cycle; None where nothing is, or it cannot be read."""
    place = shared_copy_path(root, id)
    try:
        mine = os.lstat(place).st_uid == claims.uid()
        value = json.loads(read_bounded(place, _SHARED_LIMIT))
        known, state = (value["digest"], value["before"]), value["state"]
    except (OSError, Unreadable, ValueError, KeyError, TypeError, RecursionError):
        return None
    return SharedCopy(known, state, mine) if isinstance(state, dict) else None


def digest(data: bytes) -> str:
    """What tells one content of a state file from another."""
    return hashlib.sha256(data).hexdigest()


def shared_copy_path(root: Path, id: str) -> Path:
    return run_folder(root) / f"last-written-{id}.json"


class OwnCopy(NamedTuple):
    """What acp wrote last, and the digests of the files that this may stand in."""

    known: tuple[str, str]
    state: Object


def read_own_copy(root: Path, id: str) -> OwnCopy | None:
    """What is kept of a cycle; None where nothing is, or it cannot be read."""
    try:
        kept = json.loads(read_bounded(own_copy_path(root, id), 2 * LIMIT))
        known, state = (kept["digest"], kept["before"]), kept["state"]
    except (Unreadable, ValueError, KeyError, TypeError):
        return None
    return OwnCopy(known, state) if isinstance(state, dict) else None


def last_whole_state(root: Path, id: str) -> Object | None:
    """The state as acp wrote it last, whole; None where no such copy is kept."""
    for kept in (read_own_copy(root, id), read_shared_copy(root, id)):
        if kept and not what_is_lacking(kept.state):
            return kept.state
    return None


def own_copy_path(root: Path, id: str) -> Path:
    key = hashlib.sha256(f"{root.resolve()}\0{id}".encode()).hexdigest()[:16]
    return paths.state_folder() / "cycles" / f"{id[:60]}-{key}.json"


def is_regular(path: Path) -> bool:
    """Whether it is a file of its own, and no symbolic link leads to it."""
    return path.is_file() and not path.is_symlink() and not path.parent.is_symlink()


def agent_documents(progress: Path, agent: str) -> list[Path]:
    """An agent's documents: Markdown and JSON in its own folder."""
    return [
        Path(entry.path)
        for entry in entries(progress / agent)
        if entry.name.endswith((".md", ".json")) and is_regular(Path(entry.path))
    ][:200]
