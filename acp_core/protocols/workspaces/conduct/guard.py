"""The tree before and after a sub-agent's run: what changed outside of its workspace.

Source: agent workspaces specification, "Conflict Prevention via Agent-Namespaced Paths". Nothing
keeps a program in its workspace; it is only seen that it left it. Whoever else works at the same
time may have made a change: that is said with it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.atomic import is_leftover
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.discovery import IGNORED
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Layout

FILES = 20_000  # files of a tree that are compared
MOST = 50  # changes that are told of
_BYTES = 32 << 20
Tree = dict[str, list[int]]
"""Name relative to the run -> size, time of the last change in ns, inode."""


def tree(place: Layout, agent: str) -> Tree:
    """Every file of the run but those of the agent's workspace and those that orchestrators keep."""
    found: Tree = {}
    left_out = {str(place.base / agent), str(place.coord)}
    pending = [str(place.root)]
    while pending and len(found) < FILES:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.path in left_out or entry.name in IGNORED or is_leftover(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    stat = entry.stat(follow_symlinks=False)
                    name = os.path.relpath(entry.path, place.root)
                    found[name] = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        except OSError:
            continue
    return found


def changed(before: Tree, after: Tree, place: Layout, others: set[str]) -> list[str]:
    """What differs, safe to keep as JSON; the workspaces of ``others``, who work too, do not count."""
    own = tuple(os.path.join(place.base.name, other) + os.sep for other in others)
    names = before.keys() | after.keys()
    differs = sorted(n for n in names if before.get(n) != after.get(n) and not n.startswith(own))
    return [_plain(name) for name in differs[:MOST]]


def _plain(name: str) -> str:
    return name.replace(os.sep, "/").encode("utf-8", "backslashreplace").decode()


def save(path: Path, found: Tree) -> None:
    """Keep a tree, so that whoever takes a run over can compare with it.

    Raises:
        OSError: it cannot be written.
    """
    data = json.dumps(found).encode(errors="surrogateescape")
    atomic.replace(path, data, sync=False, private=True)


def load(path: Path) -> Tree | None:
    """A tree that was kept; None where there is none."""
    try:
        value = json.loads(read_bounded(path, _BYTES))
    except (Unreadable, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def is_sure(outside: list[str], others: set[str]) -> bool:
    """Whether nobody else can have made the changes."""
    return bool(outside) and not others - {schema.SHARED}
