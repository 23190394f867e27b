"""What this person has seen, acknowledged and put away.

Kept in the user's state folder, never in a collaboration's: one file, replaced whole under
a lock, shared by every dashboard and command of this person. It is only a note to
oneself: where it is damaged it is set aside, and everything counts as unseen.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from acp_core.files import atomic
from acp_core.files.read_only import NEWER
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.model.text import clean, clean_line
from acp_core.person import paths

if TYPE_CHECKING:
    from acp_core.model import Matter, Snapshot

try:
    import fcntl
except ImportError:  # Windows: the last writer wins
    fcntl = None  # type: ignore[assignment]

SCHEMA = "acp.attention/1"
LARGEST = 64 << 20  # bytes of the file
MOST = 5_000  # collaborations that are remembered only because they were visited
PATIENCE = 5.0  # s that a writer waits for the others


@dataclass(frozen=True, slots=True)
class LastVisit:
    """What a person had before them when they last looked at a collaboration.

    ``versions`` are those of its documents, by their ids; ``event_id`` is the last event's.
    """

    event_count: int
    event_id: str | None
    versions: Mapping[str, str]
    at: datetime


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A need is known, and why it needs nothing more now; the note is safe to show."""

    note: str
    at: datetime


@dataclass(frozen=True, slots=True)
class _Record:
    visit: LastVisit | None = None
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)
    archived: datetime | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)  # as it stands in the file


class Attention:
    """A person's attention. May be used from several threads.

    Reading never raises; the methods that note something raise OSError where it cannot be
    kept.

    Args:
        path: The file; by default ``attention.json`` in the user's state folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.state_folder() / "attention.json"
        self._left = self.path.with_name("last-left")  # its time says when
        self._lock = threading.RLock()
        self._records: dict[str, _Record] | None = None
        self._stamp: Stamp | None = None
        self._note = self._aside = ""

    @property
    def note(self) -> str:
        """What was wrong with the file, safe to show; "" where nothing was."""
        self._known()
        return self._note

    def last_visit(self, key: str) -> LastVisit | None:
        """What was seen last of the collaboration, None where nothing was."""
        return self._record(key).visit

    def acknowledged(self, key: str) -> Mapping[str, Acknowledgement]:
        """The acknowledgements in a collaboration, by the needs' keys."""
        return MappingProxyType(dict(self._record(key).acknowledged))

    def is_archived(self, key: str) -> bool:
        """Whether the collaboration was put away."""
        return self._record(key).archived is not None

    def open_needs(self, snapshot: Snapshot) -> tuple[Matter, ...]:
        """The needs that are not acknowledged; the Snapshot's own tuple where all are."""
        if not snapshot.needs:
            return snapshot.needs
        known = self._record(snapshot.key).acknowledged
        if not known:
            return snapshot.needs
        return tuple(
            n for n in snapshot.needs if n.key not in known and _until(snapshot, n.key) not in known
        )

    def open_questions(self, snapshot: Snapshot) -> tuple[Matter, ...]:
        """The questions that are neither acknowledged nor put off."""
        known = self._record(snapshot.key).acknowledged
        return tuple(
            q
            for q in snapshot.questions
            if q.key not in known and _until(snapshot, q.key) not in known
        )

    def snooze(self, snapshot: Snapshot, key: str, now: datetime) -> None:
        """Put a need or a question off until something happens in its collaboration."""
        until = _until(snapshot, key)

        def change(record: dict[str, Any]) -> dict[str, Any]:
            before = record.get("acknowledged")
            known = before if isinstance(before, dict) else {}
            kept = {k: v for k, v in known.items() if not k.startswith(f"{key}{_UNTIL}")}
            said = {until: {"note": "until something happens", "at": _text(now)}}
            return record | {"acknowledged": kept | said}

        self._change(snapshot.key, change)

    def visited(self, snapshot: Snapshot, now: datetime) -> None:
        """The person has seen all of this Snapshot."""
        events = snapshot.events
        visit = {
            "event_count": len(events),
            "event_id": events[-1].id if events else None,
            "versions": {document.id: document.version for document in snapshot.documents},
            "at": _text(now),
        }
        self._change(snapshot.key, lambda record: record | {"visit": visit})

    def left(self, now: datetime) -> None:
        """The person leaves the dashboard.

        Raises:
            OSError: it cannot be kept.
        """
        atomic.private_folder(self._left.parent)
        self._left.touch(0o600)
        os.utime(self._left, (now.timestamp(), now.timestamp()))

    def last_left(self) -> datetime | None:
        """When the person last left a dashboard; None where they never did."""
        try:
            return datetime.fromtimestamp(self._left.stat().st_mtime, UTC)
        except (OSError, ValueError, OverflowError):
            return None

    def acknowledge(self, key: str, need_key: str, note: str, now: datetime) -> None:
        """The need is known: it is not open any more."""

        def change(record: dict[str, Any]) -> dict[str, Any]:
            before = record.get("acknowledged")
            known = before if isinstance(before, dict) else {}
            said = {need_key: {"note": note, "at": _text(now)}}
            return record | {"acknowledged": known | said}

        self._change(key, change)

    def unacknowledge(self, key: str, need_key: str) -> None:
        """The need is open again."""

        def change(record: dict[str, Any]) -> dict[str, Any]:
            before = record.get("acknowledged")
            known = before if isinstance(before, dict) else {}
            return record | {"acknowledged": {k: v for k, v in known.items() if k != need_key}}

        self._change(key, change)

    def archive(self, key: str, now: datetime) -> None:
        """Put the collaboration away; it is still there to be found."""
        self._change(key, lambda record: record | {"archived": _text(now)})

    def unarchive(self, key: str) -> None:
        """Take the collaboration out again."""
        self._change(
            key, lambda record: {name: record[name] for name in record if name != "archived"}
        )

    def reload(self) -> bool:
        """Read the file again if another process changed it; True if anything is different."""
        with self._lock:
            before = self._known()
            if stamp(self.path) == self._stamp:
                return False
            self._records = self._read()
            return self._records != before

    # the file

    def _record(self, key: str) -> _Record:
        return self._known().get(key) or _NOTHING

    def _known(self) -> dict[str, _Record]:
        if self._records is None:
            with self._lock:
                if self._records is None:
                    self._records = self._read()
        return self._records

    def _change(self, key: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Change one record, on top of what other processes wrote meanwhile.

        Raises:
            OSError: it could not be kept.
        """
        with self._lock, self._alone():
            records = self._read(alone=True)
            raw = change(dict(records.get(key, _NOTHING).raw))
            records[key] = _record(raw)
            _trim(records)
            content = {
                "schema": SCHEMA,
                "collaborations": {name: dict(record.raw) for name, record in records.items()},
            }
            data = json.dumps(content, indent=1).encode()
            atomic.sweep(self.path)
            atomic.replace(self.path, data + b"\n", private=True)
            self._records, self._stamp = records, stamp(self.path)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock among all processes.

        Raises:
            OSError: the folder cannot be written, or somebody else holds the lock for long.
        """
        atomic.private_folder(self.path.parent)
        lock = self.path.with_name(self.path.name + ".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            deadline = time.monotonic() + PATIENCE
            while fcntl is not None:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"another acp process has locked {lock}") from None
                    time.sleep(0.01)
            yield
        finally:
            os.close(descriptor)

    def _read(self, *, alone: bool = False) -> dict[str, _Record]:
        """What stands in the file; a damaged one is set aside by whoever is ``alone``.

        Raises:
            OSError: only where ``alone``: it cannot be read, or is of a newer acp, and must not be
                overwritten.
        """
        self._stamp, self._note = stamp(self.path), self._aside
        try:
            return _records(read_bounded(self.path, LARGEST))
        except Unreadable as error:
            if error.missing:
                return {}
            self._note = f"{clean(str(self.path))}: {error.reason}"
            if alone:
                raise
            return {}
        except _NewerFile:
            self._note = f"{clean(str(self.path))} was {NEWER}"
            if alone:
                raise OSError(errno.EPERM, NEWER, str(self.path)) from None
            return {}
        except (ValueError, RecursionError):
            self._note = f"{clean(str(self.path))} is damaged: acp treats everything as unseen"
            if alone:
                self._move_damaged_file()
            return {}

    def _move_damaged_file(self) -> None:
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        aside = self.path.with_name(f"{self.path.name}.damaged-{moment}")
        os.replace(self.path, aside)
        self._aside = f"{clean(str(self.path))} was damaged and is now {aside.name}"
        self._note = self._aside


class _NewerFile(Exception):
    """A later version of acp wrote the file; what it means there is not known here."""


_NOTHING = _Record()
_UNTIL = " until after event "


def _until(snapshot: Snapshot, key: str) -> str:
    """What is kept of something that was put off; another one once something happened."""
    events = snapshot.events
    return f"{key}{_UNTIL}{len(events)} {events[-1].id if events else ''}".rstrip()


def _records(data: bytes) -> dict[str, _Record]:
    """The records in the file's bytes.

    Raises:
        _NewerFile: it is one of a newer acp.
        ValueError, RecursionError: this is no attention file.
    """
    content = json.loads(data)
    if isinstance(content, dict) and content.get("schema", SCHEMA) != SCHEMA:
        raise _NewerFile
    known = content.get("collaborations") if isinstance(content, dict) else None
    if not isinstance(known, dict):
        raise ValueError("no collaborations in it")
    return {key: _record(raw) for key, raw in known.items() if isinstance(raw, dict)}


def _record(raw: dict[str, Any]) -> _Record:
    """A record as the file holds it; a part that makes no sense counts as absent."""
    acknowledged = raw.get("acknowledged")
    known = acknowledged if isinstance(acknowledged, dict) else {}
    said = {key: _acknowledgement(value) for key, value in known.items()}
    return _Record(
        visit=_visit(raw.get("visit")),
        acknowledged={key: one for key, one in said.items() if one is not None},
        archived=_time(raw.get("archived")),
        raw=raw,
    )


def _visit(raw: object) -> LastVisit | None:
    if not isinstance(raw, dict):
        return None
    count, last, versions, at = (
        raw.get(name) for name in ("event_count", "event_id", "versions", "at")
    )
    time = _time(at)
    if type(count) is not int or count < 0 or time is None or not isinstance(versions, dict):
        return None
    texts = {key: value for key, value in versions.items() if isinstance(value, str)}
    return LastVisit(count, last if isinstance(last, str) else None, texts, time)


def _acknowledgement(raw: object) -> Acknowledgement | None:
    if not isinstance(raw, dict):
        return None
    note, time = raw.get("note"), _time(raw.get("at"))
    return Acknowledgement(clean_line(note), time) if isinstance(note, str) and time else None


def _time(raw: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(raw) if isinstance(raw, str) else None
        return time.astimezone(UTC) if time and time.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _trim(records: dict[str, _Record]) -> None:
    """Forget the oldest visits where there are very many; nothing that was decided."""
    visits = [
        (record.visit.at, key)
        for key, record in records.items()
        if record.visit and not record.acknowledged and not record.archived
    ]
    for _, key in sorted(visits)[:-MOST]:
        del records[key]
