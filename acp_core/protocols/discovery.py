"""How collaborations are found under a path, and the newest events of one that is not read yet.

To read a collaboration takes the whole log, and all that follows from it. Its end is there at
once, and says what happens now. Nothing follows from what `newest` tells: no phase, no finding, and
not whether an event was legal.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core.protocols import registry

if TYPE_CHECKING:
    from acp_core.protocols.contract import Collaboration

IGNORED = frozenset(
    {".git", ".hg", ".svn", ".acp", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", "site-packages", ".cache", ".Trash"}
)  # fmt: skip

DEPTH = 4  # levels of folders below a given path that discovery looks into

FOLDERS = 20_000  # folders that one discovery looks into at most

_TICK = 2_000_000_000  # ns: the coarsest time stamps of a file system


@dataclass(frozen=True, slots=True)
class DiscoveredCollaboration:
    """A collaboration that discovery found, not yet opened.

    ``key`` is its identity, ``real`` the same path without symbolic links; "" where nobody looked.
    """

    key: str
    protocol: registry.Protocol
    real: str = ""

    def open(self) -> Collaboration:
        """Open it. Never raises for what the folder holds."""
        collaboration: Collaboration = registry.load(self.protocol.open)(self.key)
        return collaboration


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one look under some paths found.

    ``explored_folders`` are the folders that were looked into: a new collaboration appears in one of
    them. ``cut`` says that the bound on folders was reached. ``problems`` maps a path
    that could not be listed to the reason.
    """

    found: tuple[DiscoveredCollaboration, ...]
    explored_folders: frozenset[Path]
    cut: bool
    problems: Mapping[str, str]


def identify(folder: Path, known: Iterable[registry.Protocol]) -> DiscoveredCollaboration | None:
    """The collaboration that stands in this very folder, or None.

    Args:
        folder: need not exist.
        known: the protocols that are asked, in this order (see `registry.installed`).
    """
    folder = Path(os.path.abspath(folder))  # as everywhere, so that keys are the same
    try:
        names = frozenset(os.listdir(folder))
    except (OSError, ValueError):
        return None
    return _identify(folder, names, known)


def discover(paths: Iterable[Path], *, depth: int = DEPTH, limit: int = FOLDERS) -> Discovery:
    """Find the collaborations in and below ``paths``, breadth first, once (see `Explorer`).

    Args:
        paths: folders; they may overlap and need not exist.
        depth: levels of folders below each path.
        limit: folders that are listed at most, in all.
    """
    explorer = Explorer(paths, depth=depth, limit=limit)
    for _ in explorer.explore():
        pass
    return explorer.discovery


class Changes(NamedTuple):
    """What is different after looking again. A key in both was exchanged."""

    appeared: list[DiscoveredCollaboration]
    vanished: list[str]


class _FolderToExplore(NamedTuple):
    folder: Path
    real: str  # without symbolic links: no folder is looked into under two names
    level: int


@dataclass(slots=True)
class _ExploredFolder:
    place: _FolderToExplore
    stamp: int | None  # when the list of names last changed (ns); None: not certain
    below: frozenset[Path] = frozenset()


class Explorer:
    """Discovery that goes on: it keeps what it looked into, so that looking again is cheap.

    It looks into ``paths`` and at most ``depth`` levels below each, and into ``limit`` folders
    in all. Symbolic links to folders are not followed (but a given path may be one), the
    folders in `IGNORED` are left out. Folders below a collaboration are looked into like
    others: it may hold further ones. Paths may overlap and need not exist yet. Used from one
    thread at a time.

    Args:
        paths: folders.
        depth: levels of folders below each path.
        limit: folders that are listed at most, in all.
        known: the protocols that are asked, in this order; all that are installed where None.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        depth: int = DEPTH,
        limit: int = FOLDERS,
        known: Iterable[registry.Protocol] | None = None,
    ) -> None:
        self.roots = tuple(dict.fromkeys(Path(os.path.abspath(path)) for path in paths))
        self.problems: dict[str, str] = {}
        self.cut = False
        self._depth, self._limit = depth, limit
        self._known = tuple(registry.installed() if known is None else known)
        self._markers = {marker for protocol in self._known for marker in protocol.markers}
        self._explored: dict[Path, _ExploredFolder] = {}
        self._reals: set[str] = set()
        self._found: dict[str, DiscoveredCollaboration] = {}

    @property
    def explored_folders(self) -> Sequence[Path]:
        """The folders that were looked into, the upper ones first."""
        return tuple(self._explored)

    @property
    def discovery(self) -> Discovery:
        """All that is known now."""
        return Discovery(
            tuple(self._found.values()), frozenset(self._explored), self.cut, dict(self.problems)
        )

    def explore(self) -> Iterator[DiscoveredCollaboration]:
        """Explore everything for the first time, breadth first.

        Yields:
            Collaborations, as they are discovered.
        """
        return self._walk(
            deque(_FolderToExplore(root, os.path.realpath(root), 0) for root in self.roots)
        )

    def explore_again(self, folders: Iterable[Path] | None = None) -> Changes:
        """Explore again what changed.

        Args:
            folders: in which something appeared or vanished; None: all whose list of names changed.

        Returns:
            The collaborations that appeared and the keys of those that vanished.
        """
        changes = Changes([], [])
        new: deque[_FolderToExplore] = deque()
        for folder in list(self._explored) if folders is None else folders:
            known = self._explored.get(folder)
            if known is None:
                continue
            stamp = _stamp(folder)
            if folders is None and stamp is not None and stamp == known.stamp:
                continue
            self._explore_folder(known, stamp, changes, new)
        new.extend(
            _FolderToExplore(root, os.path.realpath(root), 0)
            for root in self.roots
            if root not in self._explored and root.is_dir()
        )
        changes.appeared.extend(self._walk(new))
        return changes

    def explore_entries(self, entries: Iterable[Path]) -> Changes:
        """Explore again where one of ``entries``, which appeared or vanished, may matter.

        Args:
            entries: paths of files and folders, as a watcher reports them.
        """
        return self.explore_again(
            {folder for entry in entries for folder in self._concerned(entry)}
        )

    def _concerned(self, entry: Path) -> Iterator[Path]:
        if entry in self._explored:
            yield entry
        if entry.parent in self._explored and (
            entry.name in self._markers
            or entry in self._explored
            or (entry.name not in IGNORED and entry.is_dir() and not entry.is_symlink())
        ):
            yield entry.parent

    def _walk(self, places: deque[_FolderToExplore]) -> Iterator[DiscoveredCollaboration]:
        while places:
            place = places.popleft()
            if place.real in self._reals:
                continue
            if len(self._explored) >= self._limit:
                self.cut = True
                return
            stamp = _stamp(place.folder)
            listed = self._list(place.folder)
            if listed is None and not os.path.isdir(place.folder):
                continue
            self._reals.add(place.real)
            look = self._explored[place.folder] = _ExploredFolder(place, stamp)
            if listed is None:
                continue
            names, subfolders = listed
            self._descend(look, subfolders, places)
            here = _identify(place.folder, names, self._known, place.real)
            if here:
                self._found[here.key] = here
                yield here

    def _descend(
        self, look: _ExploredFolder, subfolders: list[Path], places: deque[_FolderToExplore]
    ) -> None:
        if look.place.level >= self._depth:
            return
        for folder in subfolders:
            if folder not in self._explored:
                real = os.path.join(look.place.real, folder.name)
                places.append(_FolderToExplore(folder, real, look.place.level + 1))
        look.below = frozenset(subfolders)

    def _explore_folder(
        self,
        look: _ExploredFolder,
        stamp: int | None,
        changes: Changes,
        new: deque[_FolderToExplore],
    ) -> None:
        folder = look.place.folder
        if not os.path.isdir(folder):
            changes.vanished.extend(self._forget(folder))
            self._list(folder)  # says why
            return
        look.stamp = stamp
        listed = self._list(folder)
        if listed is None:  # it is there and cannot be listed: nothing is known to be gone
            return
        names, subfolders = listed
        for vanished in look.below.difference(subfolders):
            changes.vanished.extend(self._forget(vanished))
        self._descend(look, subfolders, new)
        before, here = (
            self._found.get(str(folder)),
            _identify(folder, names, self._known, look.place.real),
        )
        if before == here:
            return
        if before:
            del self._found[before.key]
            changes.vanished.append(before.key)
        if here:
            self._found[here.key] = here
            changes.appeared.append(here)

    def _forget(self, folder: Path) -> list[str]:
        """Drop what was known in and below ``folder``; returns the collaborations there."""
        prefix = os.path.join(folder, "")
        gone = [path for path in self._explored if path == folder or str(path).startswith(prefix)]
        keys: list[str] = []
        for path in gone:
            self._reals.discard(self._explored.pop(path).place.real)
            self.problems.pop(str(path), None)
            if self._found.pop(str(path), None):
                keys.append(str(path))
        return keys

    def _list(self, folder: Path) -> tuple[frozenset[str], list[Path]] | None:
        try:
            listed = _list(folder)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            self.problems[str(folder)] = reason or str(error)
            return None
        self.problems.pop(str(folder), None)
        return listed


def _identify(
    folder: Path, names: frozenset[str], known: Iterable[registry.Protocol], real: str = ""
) -> DiscoveredCollaboration | None:
    for protocol in known:
        if names.isdisjoint(protocol.markers):
            continue
        try:
            detected = registry.load(protocol.detect)(folder)
        except Exception:  # a fault of one protocol must not hide the others
            continue
        if detected:
            return DiscoveredCollaboration(str(folder), protocol, real)
    return None


def _list(folder: Path) -> tuple[frozenset[str], list[Path]]:
    names: set[str] = set()
    subfolders: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            names.add(entry.name)
            if entry.name not in IGNORED and _is_folder(entry):
                subfolders.append(entry.name)
    return frozenset(names), [folder / name for name in sorted(subfolders)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _stamp(folder: Path) -> int | None:
    """When the names in a folder last changed, or None where that is no safe answer.

    The clock of a file system ticks in milliseconds: a change just after a look may bear
    the time of the change just before it.
    """
    try:
        changed = folder.stat().st_mtime_ns
    except (OSError, ValueError):
        return None
    return changed if abs(time.time_ns() - changed) > _TICK else None


class NewestEvent(NamedTuple):
    """An event as a log holds it; texts are as they were written. ``at`` is ISO 8601, or any text."""

    at: str
    actor: str
    kind: str
    summary: str


def newest(folder: Path, protocol: registry.Protocol, most: int) -> tuple[NewestEvent, ...]:
    """The newest events of a folder, in order.

    Args:
        folder: where the collaboration is.
        protocol: its protocol.
        most: how many events at most.

    Returns:
        Nothing where the protocol tells none, or where they cannot be read now.
    """
    if protocol.newest is None:
        return ()
    try:
        found: tuple[NewestEvent, ...] = registry.load(protocol.newest)(folder, most)
    except Exception:  # what is read next says what is wrong, whoever's protocol it is
        return ()
    return found
