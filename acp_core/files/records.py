"""Files of JSON that strangers write: listed, read and bounded, so that nothing in them can fail.

A symbolic link is listed and never read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded

DEEPEST = 40  # levels of lists and objects
NO_OBJECT = "does not contain a JSON object"
_LATEST = 2e11  # seconds since 1970; spans can still be added to it


@dataclass(frozen=True, slots=True)
class File:
    """A file. ``name`` is relative to the collaboration, with "/"; ``link``: no regular file."""

    name: str
    path: Path
    size: int
    changed: datetime
    link: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A file of JSON. ``value`` is None where it holds no object; ``problem`` then says why.

    ``stale`` says that the value is that of an earlier reading.
    """

    file: File
    value: dict[str, object] | None = None
    problem: str = ""
    stale: bool = False


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What stands in a folder, by name; nothing where it cannot be listed."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def moment(seconds: float) -> datetime:
    """A file's time; 1970 for one that no calendar has."""
    try:
        return datetime.fromtimestamp(min(seconds, _LATEST), UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def read_text(file: File, limit: int) -> tuple[str, str]:
    """A file's text, and why it could not be read.

    Args:
        file: as it was listed.
        limit: bytes; a larger file is not read.

    Returns:
        The text and "", or "" and the reason, which continues a sentence: ``is a symbolic link``.
    """
    if file.link:
        return "", "is a symbolic link" if file.path.is_symlink() else "is not a regular file"
    try:
        return read_bounded(file.path, limit).decode("utf-8", "replace").removeprefix("\ufeff"), ""
    except Unreadable as error:
        return "", str(error)


def read_record(file: File, limit: int) -> Record:
    """A file of JSON of at most ``limit`` bytes."""
    text, problem = read_text(file, limit)
    if problem:
        return Record(file, None, problem)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return Record(file, None, "is not valid JSON")
    if not shallow(value):
        return Record(file, None, "is nested too deeply")
    if not isinstance(value, dict):
        return Record(file, None, NO_OBJECT)
    return Record(file, value)


def shallow(value: object) -> bool:
    """Whether lists and objects nest at most `DEEPEST` deep: whatever walks them cannot fail."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below.extend(each.values())
            elif isinstance(each, list):
                below.extend(each)
        if not below:
            return True
        level = below
    return False
