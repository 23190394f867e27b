"""What every protocol implements, and how collaborations are found under a path.

The way of data is one circle: a change source signals, `Collaboration.refresh` makes
a new Snapshot, panes redraw; an Action writes files, and the same circle shows it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core import protocols
from acp_core.model import Action, DocumentText, Snapshot

IGNORED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", "site-packages", ".cache", ".Trash"}
)  # fmt: skip
DEPTH = 4  # levels of folders below a given path that discovery looks into
FOLDERS = 20_000  # folders that one discovery looks into at most


class Collaboration(ABC):
    """One thing being coordinated, opened for reading and for acting in it.

    An instance keeps what it has read, so that `refresh` costs only what changed. It is
    used from one thread at a time, not always the same.
    """

    protocol: str
    key: str  # an absolute path or a URL, as it is

    @abstractmethod
    def refresh(self, now: datetime) -> Snapshot:
        """Read what changed and return the Snapshot as of ``now`` (aware, UTC).

        Returns the very object of the last call when nothing changed. Never raises for what
        the files or the network hold: that becomes findings, or the Snapshot's source.
        """

    @abstractmethod
    def watched(self) -> frozenset[Path]:
        """The folders in which a change may matter, each watched by itself (not recursively)."""

    @abstractmethod
    def load(self, document: str) -> DocumentText:
        """The text of a document of the last Snapshot, safe to show.

        Raises:
            KeyError: the last Snapshot has no such document.
        """

    def raw_event(self, event: str) -> str:
        """An event as the source holds it (one line of JSON), safe to show; "" where unknown."""
        return ""

    def actions(self, now: datetime) -> Sequence[Action]:
        """What a human can do now, most useful first. May load heavy modules."""
        return ()

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of whatever is held."""


@dataclass(frozen=True, slots=True)
class Found:
    """A collaboration that discovery found, not yet opened. ``key`` is its identity."""

    key: str
    protocol: protocols.Protocol

    def open(self) -> Collaboration:
        """Open it. Never raises for what the folder holds."""
        collaboration: Collaboration = protocols.load(self.protocol.open)(self.key)
        return collaboration


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one look under some paths found.

    ``looked`` are the folders that were listed: a new collaboration appears in one of
    them. ``cut`` says that the bound on folders was reached. ``problems`` maps a path
    that could not be listed to the reason.
    """

    found: tuple[Found, ...]
    looked: frozenset[Path]
    cut: bool
    problems: Mapping[str, str]


def identify(folder: Path, known: Iterable[protocols.Protocol]) -> Found | None:
    """The collaboration that stands in this very folder, or None."""
    try:
        names = frozenset(os.listdir(folder))
    except OSError:
        return None
    return _identify(folder, names, known)


def _identify(
    folder: Path, names: frozenset[str], known: Iterable[protocols.Protocol]
) -> Found | None:
    for protocol in known:
        if names.intersection(protocol.markers) and protocols.load(protocol.detect)(folder):
            return Found(key=str(folder), protocol=protocol)
    return None


def discover(paths: Iterable[Path], *, depth: int = DEPTH, limit: int = FOLDERS) -> Discovery:
    """Find the collaborations in and below ``paths``, breadth first.

    Symbolic links to folders are not followed (but a given path may be one); folders in
    `IGNORED` and those below a found collaboration that are its own are skipped. At most ``depth`` levels
    below each path and ``limit`` folders in all are looked into.
    """
    known = tuple(protocols.installed())
    found: dict[str, Found] = {}
    looked: set[Path] = set()
    problems: dict[str, str] = {}
    level = [Path(os.path.abspath(path)) for path in paths]
    cut = False
    for _ in range(depth + 1):
        below: list[Path] = []
        for folder in level:
            if folder in looked:
                continue
            if len(looked) >= limit:
                cut = True
                break
            looked.add(folder)
            try:
                names, subfolders = _list(folder)
            except OSError as error:
                problems[str(folder)] = error.strerror or str(error)
                continue
            here = _identify(folder, names, known)
            if here:
                found[here.key] = here
            below.extend(subfolders)
        level = below
    return Discovery(tuple(found.values()), frozenset(looked), cut, problems)


def _list(folder: Path) -> tuple[frozenset[str], list[Path]]:
    names: set[str] = set()
    subfolders: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            if entry.name not in IGNORED and _is_folder(entry):
                subfolders.append(folder / entry.name)
    return frozenset(names), sorted(subfolders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
