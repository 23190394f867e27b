"""What rows show of collaborations that ended, kept between runs: what did not change is not read.

One file in the person's cache folder for each set of paths that a fleet was looked for under. It can
be thrown away at any time. Nothing in it is believed but beside the very files that it was made of:
their sizes, times and identities are compared, and those of the folders that they lie in, which
tell of every file that came or went. What has to be asked of the machine (processes, settings, the
disk) is asked each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import acp_core
from acp_core.diagnosis.observer import Observer
from acp_core.files import atomic, locked, tree_state
from acp_core.files.claims import HOME
from acp_core.files.reading import read_bounded, stamp
from acp_core.files.tree_state import TreeState
from acp_core.fleet.cached_snapshot import (
    CachedSnapshot,
    Plain,
    Read,
    is_at_rest,
    plain,
    restore,
)
from acp_core.model import Snapshot
from acp_core.person import paths, settings
from acp_core.protocols.kit import guard

_log = logging.getLogger(__name__)

SCHEMA = "acp.snapshots/1"
NEWS = 8  # that must be new before the file is written again
MOST = 20_000  # entries of a file
FILES = 8  # the latest
LARGEST = 64 << 20  # bytes of a file
_EVENTS = 20_000  # of a longer log the details would take long to read


class Recalled(NamedTuple):
    """A Snapshot of an earlier run, the folders to watch, and whether its folder may hold claims."""

    snapshot: CachedSnapshot
    watched: frozenset[Path]
    has_claims: bool


class Entry(NamedTuple):
    """What is kept of one collaboration.

    Attributes:
        protocol: which one detected it.
        names: everything in and below its folder, as paths from it.
        watched: folders below its own in which a change may matter.
        evidence: differs wherever anything does that it rests on.
        told: what rows show (see `acp_core.fleet.cached_snapshot.plain`).
    """

    protocol: str
    names: tuple[str, ...]
    watched: tuple[str, ...]
    evidence: str
    told: Plain

    @classmethod
    def parse(cls, values: object) -> Entry:
        """The entry that was written as JSON.

        Raises:
            ValueError: this is none.
        """
        match values:
            case [str(protocol), [*names], [*watched], str(evidence), [*told]] if all(
                isinstance(each, str) for each in (*names, *watched)
            ):
                return cls(
                    protocol, tuple(map(str, names)), tuple(map(str, watched)), evidence, told
                )
        raise ValueError("not an entry")


class SnapshotCache:
    """The cache of one fleet. For any thread; never raises for what the file holds.

    Args:
        roots: where the fleet looks; None: nothing is kept but what `take` is given.
        observer: knows the participants' programs.

    Attributes:
        context: what must be the same for who makes entries and who uses them.
    """

    def __init__(self, roots: Iterable[str] | None, observer: Observer) -> None:
        name = hashlib.sha256("\0".join(roots or ()).encode(errors="surrogatepass")).hexdigest()[
            :32
        ]
        self.path = paths.cache_folder() / "snapshots" / f"{name}.json"
        self._observer = observer
        self._lock = threading.Lock()
        self.context = _context(observer)
        self._keeps = roots is not None
        self._known: dict[str, Entry] | None = None if self._keeps else {}
        self._sure: dict[str, Entry] = {}  # of this run: found to hold, or made
        self._new = 0

    def take(self, key: str, entry: Entry) -> None:
        """Know what another process made of a collaboration, as if an earlier run had kept it."""
        known = self._entries()
        with self._lock:
            known[key] = entry
            self._new += 1

    def recall(self, key: str, protocol: str, now: datetime, read: Read) -> Recalled | None:
        """What is kept of a collaboration of which all is as it was; None where that is not certain.

        Args:
            key: the collaboration's.
            protocol: which one detected it now.
            now: the time.
            read: makes the whole Snapshot, for its details.
        """
        if not self.holds(key, protocol):
            return None
        entry = self._entries()[key]
        try:
            recalled = recalled_from(entry, key, now, read)
        except (TypeError, ValueError, KeyError):
            return None
        with self._lock:
            self._sure[key] = entry
        return recalled

    def holds(self, key: str, protocol: str) -> bool:
        """Whether what is kept of a collaboration is so now; see `recall`."""
        entry = self._entries().get(key)
        if entry is None or entry.protocol != protocol:
            return False
        digest = tree_state.digest_of(key, entry.names)
        if digest is None or self._evidence(key, entry.names, digest) != entry.evidence:
            return False
        return guard.disk(key) is None

    def _evidence(self, key: str, names: Sequence[str], digest: bytes) -> str | None:
        """A text that is another one wherever anything is that an entry rests on.

        That are the files, and what is known of the participants' programs.

        Returns:
            None where a program is at work.
        """
        state = self._observer.at_rest(key)
        if state is None or (HOME in names and _runs_elsewhere(key)):
            return None
        told = repr((digest, state)).encode(errors="surrogatepass")
        return hashlib.blake2b(told, digest_size=16).hexdigest()

    def keep(
        self, key: str, before: TreeState, began: float,
        snapshot: Snapshot, watched: Iterable[Path],
    ) -> Entry | None:  # fmt: skip
        """Keep what was read of a collaboration, where it will be the same at any later time.

        Args:
            key: the collaboration's.
            before: its folder just before it was read.
            began: when that was.
            snapshot: what was made of it, of what lies in the folder alone.
            watched: the folders in which a change may matter.

        Returns:
            What is kept; None where nothing is.
        """
        if (
            not is_at_rest(snapshot)
            or not before.is_settled(began)
            or tree_state.digest_of(key, before.names) != before.digest
            or any(each.late for each in snapshot.documents)
            or len(snapshot.events) > _EVENTS
            or locked.is_shared(_kinds().of(key, before.device))
        ):
            return None
        evidence, told = self._evidence(key, before.names, before.digest), plain(snapshot)
        if evidence is None or told is None:
            return None
        folders = tuple(sorted(map(str, watched)))
        entry = Entry(snapshot.protocol, before.names, folders, evidence, told)
        if self._keeps:
            with self._lock:
                self._sure[key] = entry
                self._new += 1
        return entry

    def save(self) -> None:
        """Keep all of it for the next run, where enough is new; without a cache folder nothing is."""
        with self._lock:
            sure, new = dict(self._sure), self._new
            if new < NEWS:
                return
            self._new = 0
        if self.context != _context(self._observer):
            return  # the settings changed meanwhile
        content = json.dumps([[key, *entry] for key, entry in [*sure.items()][:MOST]]).encode()
        head = {
            "schema": SCHEMA,
            "context": self.context,
            "digest": hashlib.sha256(content).hexdigest(),
        }
        with contextlib.suppress(OSError):
            atomic.private_folder(self.path.parent)
            data = json.dumps(head).encode() + b"\n" + content
            if len(data) <= LARGEST:
                atomic.replace(self.path, data, sync=False, private=True)
            _trim(self.path.parent)

    def _entries(self) -> dict[str, Entry]:
        with self._lock:
            if self._known is None:
                self._known = self._load()
            return self._known

    def _load(self) -> dict[str, Entry]:
        try:
            if not _is_private(self.path):
                return {}
            head, _, content = read_bounded(self.path, LARGEST).partition(b"\n")
            said = json.loads(head)
            if (said["schema"], said["context"]) != (SCHEMA, self.context):
                return {}
            if hashlib.sha256(content).hexdigest() != said["digest"]:
                return {}
            return {key: Entry(*rest) for key, *rest in json.loads(content)}
        except OSError:  # Unreadable, too
            return {}
        except (ValueError, TypeError, KeyError, RecursionError):
            _log.info("%s is damaged: everything is read again", self.path)
            return {}


def recalled_from(entry: Entry, key: str, now: datetime, read: Read) -> Recalled:
    """What an entry tells; see `SnapshotCache.recall`.

    Raises:
        TypeError, ValueError, KeyError: it is none that `SnapshotCache.keep` made.
    """
    made = restore(entry.told, key, now, read)
    return Recalled(made, frozenset(map(Path, entry.watched)), HOME in entry.names)


def _is_private(path: Path) -> bool:
    """Whether a file can only have been written by this account: rows are shown as they stand there.

    Raises:
        OSError: there is none.
    """
    found = path.stat()
    own = not hasattr(os, "geteuid") or found.st_uid == os.geteuid()
    return own and not found.st_mode & 0o022


def _runs_elsewhere(key: str) -> bool:
    """Whether a claim in the folder says that somebody may be at work."""
    from acp_core.agents.registry import seen_of_others

    return any(each.alive for each in seen_of_others(key, ()))


def _context(observer: Observer) -> str:
    """What must be as it was for all entries of a file: this program, this account, its settings."""
    account = (os.geteuid(), os.getegid(), sorted(os.getgroups())) if hasattr(os, "geteuid") else ()
    told = (
        acp_core.__version__, _code(), sys.version, account, stamp(settings.path()),
        repr(observer.patience), os.path.abspath(paths.state_folder()),
    )  # fmt: skip
    return hashlib.sha256(repr(told).encode(errors="surrogatepass")).hexdigest()


@cache
def _code() -> str:
    """Which state of the program's code this is: it may have been changed without its version."""
    root = os.path.dirname(acp_core.__file__)
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            if name.endswith((".py", ".toml")):
                found = os.stat(os.path.join(folder, name))
                digest.update(f"{folder}/{name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@cache
def _kinds() -> locked.Kinds:
    return locked.Kinds()


def _trim(folder: Path) -> None:
    """Throw away all but the files that were written last."""
    found: list[tuple[float, Path]] = []
    for each in folder.iterdir():
        with contextlib.suppress(OSError):
            found.append((each.stat().st_mtime, each))
    for _, each in sorted(found)[:-FILES]:
        with contextlib.suppress(OSError):
            each.unlink()
