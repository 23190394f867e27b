"""What every protocol implements, and how collaborations are found under a path.

The way of data is one circle: a change source signals, `Collaboration.refresh` makes
a new Snapshot, panes redraw; an Action writes files, and the same circle shows it.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core import protocols
from acp_core.kept import Kept, Told
from acp_core.model import Action, Cause, DocumentText, Outcome, Snapshot
from acp_core.story import Story
from acp_core.turn import Brief, TurnState

if TYPE_CHECKING:
    from acp_core.case import Case

IGNORED = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
     ".mypy_cache", ".ruff_cache", ".pytest_cache", "site-packages", ".cache", ".Trash"}
)  # fmt: skip
DEPTH = 4  # levels of folders below a given path that discovery looks into
FOLDERS = 20_000  # folders that one discovery looks into at most
_TICK = 2_000_000_000  # ns: the coarsest time stamps of a file system


class Collaboration(ABC):
    """One thing being coordinated, opened for reading and for acting in it.

    An instance keeps what it has read, so that `refresh` costs only what changed. It is
    used from one thread at a time, not always the same.
    """

    protocol: str
    key: str  # an absolute path or a URL, as it is
    has_turns = False  # whether loops can take its participants' turns (see `turn`)

    @abstractmethod
    def refresh(self, now: datetime) -> Snapshot:
        """Read what changed and return the Snapshot as of ``now`` (aware, UTC).

        Returns the very object of the last call when nothing changed. Never raises for what
        the files or the network hold: that becomes findings, or the Snapshot's source.
        """

    @abstractmethod
    def watched(self) -> frozenset[Path]:
        """The folders in which a change may matter, each watched by itself (not recursively)."""

    def subscribe(self, changed: Callable[[], None]) -> None:  # noqa: B027 - most have none
        """Have ``changed`` called, from any thread, when `refresh` would tell something new.

        For what no watched folder tells. Called at most once, before the first `refresh`.
        """

    @abstractmethod
    def load(self, document: str) -> DocumentText:
        """The text of a document of the last Snapshot, safe to show.

        Raises:
            KeyError: the last Snapshot has no such document.
        """

    def kept(self) -> tuple[Kept, ...]:
        """The files of which a recording keeps every version, as of the last `refresh`.

        Those below its folder or beside it, never one that a symbolic link leads to.
        """
        return ()

    def told(self) -> Told | None:
        """Its past as a log, where it is in no file that is kept, as of the last `refresh`."""
        return None

    def raw_event(self, event: str) -> str:
        """An event as the source holds it (one line of JSON), safe to show; "" where unknown."""
        return ""

    def actions(self, now: datetime) -> Sequence[Action]:
        """What a human can do now, most useful first. May load heavy modules."""
        return ()

    def causes(self, case: Case) -> Sequence[Cause]:
        """Why it does not go on, as far as only the protocol can know; in any order.

        Participants' loops are looked at by others: what was found there is in ``case.found``.
        It tells of what the last `refresh` read, and never raises for that.
        """
        return ()

    def durations(self, participant: str) -> Sequence[float]:
        """How many seconds a participant's latest turns took, oldest first, as far as known.

        ``participant`` is an id as the Snapshot shows it.
        """
        return ()

    def story(self) -> Story:
        """Whose turn it was when, and what can be counted, as of the last `refresh`."""
        return Story()

    def turn(self, participant: str, now: datetime, brief: Brief | None = None) -> TurnState | None:
        """Where ``participant`` stands, read now; cheaper than `refresh`, and never raises.

        ``brief`` says how the turn will be taken, where that is known. None where this kind of
        collaboration has no turns that a loop could take.
        """
        return None

    def turn_signs(self) -> tuple[Path, ...]:
        """The files of which one changes whenever `turn` may tell something else.

        None where that cannot be said: then every change in the watched folders counts.
        """
        return ()

    def prompt(self, participant: str, brief: Brief) -> str:
        """What a program is told so that it takes the turn that `turn` told of last.

        Raises:
            NotImplementedError: this kind of collaboration has no turns that a loop could take.
        """
        raise NotImplementedError(f"{self.protocol} has no turns to take")

    def conclude(self, participant: str, brief: Brief, by: str, now: datetime) -> Outcome:
        """Record the turn of a program that changed documents but cannot record it itself.

        Says in the record that it was done for ``by``, the program's name. Never raises for what
        the files hold.

        Raises:
            NotImplementedError: this kind of collaboration has no turns that a loop could take.
        """
        raise NotImplementedError(f"{self.protocol} has no turns to take")

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

    ``looked`` are the folders that were looked into: a new collaboration appears in one of
    them. ``cut`` says that the bound on folders was reached. ``problems`` maps a path
    that could not be listed to the reason.
    """

    found: tuple[Found, ...]
    looked: frozenset[Path]
    cut: bool
    problems: Mapping[str, str]


def identify(folder: Path, known: Iterable[protocols.Protocol]) -> Found | None:
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
        self._known = tuple(protocols.installed())
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
    folder: Path, names: frozenset[str], known: Iterable[protocols.Protocol]
) -> Found | None:
    for protocol in known:
        if names.isdisjoint(protocol.markers):
            continue
        try:
            detected = protocols.load(protocol.detect)(folder)
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
