"""What belongs into an archive of a collaboration, and whether what came out of it is the same."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from acp_core.history import git
from acp_core.model import Severity, Snapshot
from acp_core.model.story import Story
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify

LEFT = frozenset({".git", ".acp"})
"""Folders that stay behind: the repository itself, and what this machine's processes hold."""
MOST = 100_000
"""Files of a collaboration that are listed; nobody can mail more."""
_NAMED = 4  # differences that are named


def files_of(found: DiscoveredCollaboration, spare: Path, now: datetime) -> list[tuple[str, str]]:
    """The files by name, relative to the collaboration, with where each lies.

    Its own, those of its parts wherever they stand, and whatever else lies in its folder, but for what
    git ignores. A past that no file holds as it is, is written into the folder ``spare``.
    """
    files, parts = _own(found, spare, now)
    root = os.path.realpath(found.key)
    for part in parts:
        below = os.path.relpath(os.path.realpath(part), root).replace(os.sep, "/")
        other = identify(Path(part), registry.installed())
        if other is not None:
            for name, path in _own(other, spare, now)[0].items():
                files.setdefault(os.path.normpath(f"{below}/{name}").replace(os.sep, "/"), path)
    return sorted(
        (name, path) for name, path in files.items() if stat.S_ISREG(_mode(path))
    )  # what is no longer there, and links, stay behind


def _own(
    found: DiscoveredCollaboration, spare: Path, now: datetime
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The files of one collaboration, and the locations of its parts."""
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        files = {each.name: each.path for each in opened.tracked_files()}
        past_log = None if files else opened.past_log()
    finally:
        opened.close()
    if past_log is not None:
        (spare / past_log.name).write_bytes(past_log.data)
        files[past_log.name] = str(spare / past_log.name)
        return files, ()
    root = os.path.realpath(found.key)
    for document in snapshot.documents:
        if document.path is not None and document.state == "present":
            below = os.path.relpath(document.path, root)
            if not below.startswith(".."):
                files.setdefault(below.replace(os.sep, "/"), document.path)
    for name in _below(root):
        files.setdefault(name.replace(os.sep, "/"), os.path.join(root, name))
    return files, snapshot.parts


def _below(root: str) -> list[str]:
    """Everything in a folder that git does not ignore; all of it, where git says nothing."""
    names = git.listed(root)
    return list(_walked(root)) if names is None else names


def _walked(root: str) -> Iterator[str]:
    left = MOST
    for folder, folders, files in os.walk(root):
        folders[:] = [each for each in folders if each not in LEFT]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)
            left -= 1
            if not left:
                return


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def differences(
    found: DiscoveredCollaboration, copy: DiscoveredCollaboration, now: datetime
) -> list[str]:
    """What is not in a copy as it is in the collaboration, in words; nothing where all of it is."""
    before, after = _facts(found, now), _facts(copy, now)
    lines = [
        f"{name}: {_short(value)} here, {_short(after.get(name))} in the copy"
        for name, value in before.items()
        if after.get(name) != value
    ]
    more = f"and {len(lines) - _NAMED} more"
    return [*lines[:_NAMED], more] if len(lines) > _NAMED else lines


def _facts(found: DiscoveredCollaboration, now: datetime) -> dict[str, object]:
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        if opened.tracked_files():
            return _figures(snapshot, opened.story())
        return {"events": len(snapshot.events)}  # a store, of which the log is carried
    finally:
        opened.close()


def _figures(snapshot: Snapshot, story: Story) -> dict[str, object]:
    """What must be the same wherever the files stand."""
    counts: Counter[str] = Counter()
    for count in story.counts:
        counts[count.what] += count.value or 0
    return {
        "status": snapshot.status.value,
        "phase": snapshot.phase,
        "events": len(snapshot.events),
        "errors": snapshot.count(Severity.ERROR),
        "warnings": snapshot.count(Severity.WARNING),
        **{
            f"document {each.id}": each.state == "present"
            for each in snapshot.documents
            if each.path is not None
        },
        **{f"gate {each.label}": each.met for each in snapshot.gates},
        **{f"rows of {each.title}": len(each.rows) for each in snapshot.panels},
        **counts,
        "parts": len(snapshot.parts),
    }


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
