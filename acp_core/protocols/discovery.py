"""How collaborations are found under a path."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration

if TYPE_CHECKING:
    pass

IGNORED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", "site-packages", ".cache", ".Trash"}
)  # fmt: skip
DEPTH = 4  # levels of folders below a given path that discovery looks into
FOLDERS = 20_000  # folders that one discovery looks into at most
_TICK = 2_000_000_000  # ns: the coarsest time stamps of a file system


@dataclass(frozen=True, slots=True)
class Found:
    """A collaboration that discovery found, not yet opened. ``key`` is its identity."""

    key: str
    protocol: registry.Protocol

    def open(self) -> Collaboration:
        """Open it. Never raises for what the folder holds."""
        collaboration: Collaboration = registry.load(self.protocol.open)(self.key)
        return collaboration


@dataclass(frozen=True, slots=True)
class Discovery:
    """What one look under some paths found.

    ``looked`` are the folders that were looked into: a new collaboration appears in one of
    them. ``cut`` says that the bound on folders was reached. ``problems`` maps a path
    that could not be listed to the reason.
    """

    found: tuple[Found, ...]
    looked: frozenset[Path]
    cut: bool
    problems: Mapping[str, str]


def identify(folder: Path, known: Iterable[registry.Protocol]) -> Found | None:
    """The collaboration that stands in this very folder, or None."""
    folder = Path(os.path.abspath(folder))  # as everywhere, so that keys are the same
    try:
        names = frozenset(os.listdir(folder))
    except (OSError, ValueError):
        return None
    return _identify(folder, names, known)


def discover(paths: Iterable[Path], *, depth: int = DEPTH, limit: int = FOLDERS) -> Discovery:
    """Find the collaborations in and below ``paths``, breadth first, once (see `Explorer`)."""
    explorer = Explorer(paths, depth=depth, limit=limit)
    for _ in explorer.look():
        pass
    return explorer.discovery


class Changes(NamedTuple):
    """What is different after looking again. A key in both was exchanged."""

    appeared: list[Found]
    vanished: list[str]


class _Place(NamedTuple):
    folder: Path
    real: str  # without symbolic links: no folder is looked into under two names
    level: int


@dataclass(slots=True)
class _Look:
    place: _Place
    stamp: int | None  # when the list of names last changed (ns); None: not certain
    below: frozenset[Path] = frozenset()


class Explorer:
    """Discovery that goes on: it keeps what it looked into, so that looking again is cheap.

    It looks into ``paths`` and at most ``depth`` levels below each, and into ``limit`` folders
    in all. Symbolic links to folders are not followed (but a given path may be one), the
    folders in `IGNORED` are left out. Folders below a collaboration are looked into like
    others: it may hold further ones. Paths may overlap and need not exist yet. Used from one
    thread at a time.
    """

    def __init__(self, paths: Iterable[Path], *, depth: int = DEPTH, limit: int = FOLDERS) -> None:
        self.roots = tuple(dict.fromkeys(Path(os.path.abspath(path)) for path in paths))
        self.problems: dict[str, str] = {}
        self.cut = False
        self._depth, self._limit = depth, limit
        self._known = tuple(registry.installed())
        self._markers = {marker for protocol in self._known for marker in protocol.markers}
        self._looks: dict[Path, _Look] = {}
        self._reals: set[str] = set()
        self._found: dict[str, Found] = {}

    @property
    def looked(self) -> Sequence[Path]:
        """The folders that were looked into, the upper ones first."""
        return tuple(self._looks)

    @property
    def discovery(self) -> Discovery:
        """All that is known now."""
        return Discovery(
            tuple(self._found.values()), frozenset(self._looks), self.cut, dict(self.problems)
        )

    def look(self) -> Iterator[Found]:
        """The first look, breadth first; collaborations come as they are found."""
        return self._walk(deque(_Place(root, os.path.realpath(root), 0) for root in self.roots))

    def again(self, folders: Iterable[Path] | None = None) -> Changes:
        """Look again into ``folders``; None: into all whose list of names changed."""
        changes = Changes([], [])
        new: deque[_Place] = deque()
        for folder in list(self._looks) if folders is None else folders:
            look = self._looks.get(folder)
            if look is None:
                continue
            stamp = _stamp(folder)
            if folders is None and stamp is not None and stamp == look.stamp:
                continue
            self._look_again(look, stamp, changes, new)
        new.extend(
            _Place(root, os.path.realpath(root), 0)
            for root in self.roots
            if root not in self._looks and root.is_dir()
        )
        changes.appeared.extend(self._walk(new))
        return changes

    def noticed(self, entries: Iterable[Path]) -> Changes:
        """Look again where one of ``entries``, which appeared or vanished, may matter."""
        return self.again({folder for entry in entries for folder in self._concerned(entry)})

    def _concerned(self, entry: Path) -> Iterator[Path]:
        if entry in self._looks:
            yield entry
        if entry.parent in self._looks and (
            entry.name in self._markers
            or entry in self._looks
            or (entry.name not in IGNORED and entry.is_dir() and not entry.is_symlink())
        ):
            yield entry.parent

    def _walk(self, places: deque[_Place]) -> Iterator[Found]:
        while places:
            place = places.popleft()
            if place.real in self._reals:
                continue
            if len(self._looks) >= self._limit:
                self.cut = True
                return
            stamp = _stamp(place.folder)
            listed = self._list(place.folder)
            if listed is None and not os.path.isdir(place.folder):
                continue
            self._reals.add(place.real)
            look = self._looks[place.folder] = _Look(place, stamp)
            if listed is None:
                continue
            names, subfolders = listed
            self._descend(look, subfolders, places)
            here = _identify(place.folder, names, self._known)
            if here:
                self._found[here.key] = here
                yield here

    def _descend(self, look: _Look, subfolders: list[Path], places: deque[_Place]) -> None:
        if look.place.level >= self._depth:
            return
        for folder in subfolders:
            if folder not in self._looks:
                real = os.path.join(look.place.real, folder.name)
                places.append(_Place(folder, real, look.place.level + 1))
        look.below = frozenset(subfolders)

    def _look_again(
        self, look: _Look, stamp: int | None, changes: Changes, new: deque[_Place]
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
        before, here = self._found.get(str(folder)), _identify(folder, names, self._known)
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
        gone = [path for path in self._looks if path == folder or str(path).startswith(prefix)]
        keys: list[str] = []
        for path in gone:
            self._reals.discard(self._looks.pop(path).place.real)
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
    folder: Path, names: frozenset[str], known: Iterable[registry.Protocol]
) -> Found | None:
    for protocol in known:
        if names.isdisjoint(protocol.markers):
            continue
        try:
            detected = registry.load(protocol.detect)(folder)
        except Exception:  # a fault of one protocol must not hide the others
            continue
        if detected:
            return Found(key=str(folder), protocol=protocol)
    return None


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
