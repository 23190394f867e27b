"""A recording: every version of a collaboration's files, and what was seen of it, in SQLite.

Several processes may write the same recording at once: each transaction looks what is there
before it adds anything, so that each version is kept once. Whoever is killed leaves a database
that can be read: SQLite's write-ahead log sees to that. Trimmed, a recording loses old contents, and
which there were is still known. Carried to another place, every row is checked, none is taken on
trust. Each collaboration has one database below ``recordings`` in the user's state folder, named by
the collaboration's real path. Which state of a log an event belongs to is known by where its line
ends (`GrowingLog`); each look costs what is new.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.journal import RESTARTED, UNREADABLE, Reader
from acp_core.files.reading import Unreadable
from acp_core.history import schema
from acp_core.history.schema import (
    LARGEST_LOG,
    TRIMMED,
    Bounds,
    LoopChange,
    Observed,
    Seen,
    Span,
    Version,
)
from acp_core.model import Event
from acp_core.model.errors import Unusable
from acp_core.person import paths
from acp_core.person.paths import key_of

if TYPE_CHECKING:
    from acp_core.history.schema import Version

BUSY = 20.0  # seconds for which a writer waits for others

_LEVEL = 6  # of zlib


class BadRecording(Unusable):
    """The recording cannot be used; the message is one line: which, why, what to do."""


class NoRecording(BadRecording):
    """Nothing was recorded there yet."""


class Store:
    """One recording. Used from one thread at a time.

    Args:
        path: The database; made where there is none, unless ``read_only``.

    Raises:
        NoRecording: there is none yet, and ``read_only``.
        BadRecording: it is no recording, a newer one, damaged, or cannot be opened.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        try:
            self._db = _open(path, read_only)
        except (sqlite3.Error, OSError) as error:
            raise BadRecording(_why(path, error)) from None

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()

    # what a recorder adds

    def add(
        self,
        files: Iterable[Observed] = (),
        observations: Iterable[Seen] = (),
        loops: Iterable[LoopChange] = (),
        *,
        now: float,
        span: tuple[str, str] | None = None,
        meta: Iterable[tuple[str, str]] = (),
    ) -> int:
        """Keep what is new, all of it or nothing; returns how many versions were new.

        Args:
            files: As they were found; a version that is kept already is not kept again.
            observations: What was made of the collaboration; one that says what the last says is left out.
            loops: States of loops, likewise.
            now: The time of the look.
            span: The recorder's own id, and the program's name: it looks until ``now``.
            meta: Names and values that describe the collaboration.

        Raises:
            BadRecording: it could not be written.
        """
        try:
            with self._transaction():
                new = sum(self._add_file(file, now) for file in files)
                for seen in observations:
                    self._insert_reading(seen)
                for loop in loops:
                    self._add_loop(loop)
                if span is not None:
                    self._db.execute(
                        "INSERT INTO span VALUES(?, ?, ?, ?) ON CONFLICT(recorder) "
                        "DO UPDATE SET until = max(until, excluded.until)",
                        (*span, now, now),
                    )
                self._db.executemany(
                    "INSERT OR REPLACE INTO meta VALUES(?, ?)",
                    [(name, _packed(value)) for name, value in meta],
                )
        except sqlite3.Error as error:
            raise BadRecording(_why(self.path, error)) from None
        return new

    def _add_file(self, found: Observed, now: float) -> bool:
        file = self._file(found)
        last = self._db.execute(
            "SELECT seen, changed, whole, state FROM version WHERE file = ? ORDER BY id DESC LIMIT 1",
            (file,),
        ).fetchone()
        if last is None and found.state == schema.MISSING:
            return False  # it was never there
        if last is not None and (
            last[2:] == (found.whole, found.state) or self._is_late(file, found, last[1])
        ):
            return False
        start, data = found.start, found.data
        if start and (last is None or last[2] != found.follows):
            raise OutOfStep
        self._db.execute(
            "INSERT INTO version(file, since, seen, changed, size, whole, start, content, state) "
            "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                file,
                _since(found.changed, last[0] if last else None, now),
                now,
                found.changed,
                found.size,
                found.whole,
                start,
                self._keep(data) if found.state == schema.PRESENT else None,
                found.state,
            ),
        )
        return True

    def _is_late(self, file: int, found: Observed, newest: int | None) -> bool:
        """Whether another recorder kept this very state, and later ones since."""
        if found.changed is None or newest is None or found.changed > newest:
            return False
        query = "SELECT 1 FROM version WHERE file = ? AND whole = ? AND state = ?"
        row = self._db.execute(query, (file, found.whole, found.state)).fetchone()
        return row is not None

    def _file(self, found: Observed) -> int:
        self._db.execute(
            "INSERT INTO file(name, log, document) VALUES(?, ?, ?) ON CONFLICT(name) "
            "DO UPDATE SET document = excluded.document WHERE document <> excluded.document",
            (_packed(found.name), found.log, _packed(found.document)),
        )
        query = "SELECT id FROM file WHERE name = ?"
        row = self._db.execute(query, (_packed(found.name),)).fetchone()
        return int(row[0])

    def _keep(self, data: bytes) -> bytes:
        digest = hashlib.sha256(data).digest()
        known = self._db.execute("SELECT 1 FROM content WHERE digest = ?", (digest,)).fetchone()
        if known is None:
            packed = zlib.compress(data, _LEVEL)
            self._db.execute("INSERT INTO content VALUES(?, ?, ?)", (digest, len(data), packed))
        return digest

    def _insert_reading(self, seen: Seen) -> None:
        findings = self._keep(seen.findings.encode(errors="surrogatepass"))
        query = "SELECT said, findings FROM look ORDER BY id DESC LIMIT 1"
        if self._db.execute(query).fetchone() != (seen.content, findings):
            self._db.execute(
                "INSERT INTO look(at, said, findings) VALUES(?, ?, ?)",
                (seen.at, seen.content, findings),
            )

    def _add_loop(self, change: LoopChange) -> None:
        query = "SELECT said FROM loop WHERE participant = ? ORDER BY id DESC LIMIT 1"
        participant = _packed(change.participant)
        if self._db.execute(query, (participant,)).fetchone() != (change.content,):
            self._db.execute(
                "INSERT INTO loop(participant, at, said) VALUES(?, ?, ?)",
                (participant, change.at, change.content),
            )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    # what is there

    def meta(self) -> dict[str, str]:
        """What describes the collaboration: ``key``, ``protocol``, ``name``."""
        rows = self._rows("SELECT name, value FROM meta")
        return {name: _unpacked(value) for name, value in rows}

    def files(self) -> dict[str, tuple[bool, str]]:
        """The files by name: whether each is a log, and its document's id ("" where it is none)."""
        rows = self._rows("SELECT name, log, document FROM file ORDER BY id")
        return {_unpacked(name): (bool(log), _unpacked(document)) for name, log, document in rows}

    def versions(self, file: str | None = None) -> list[Version]:
        """The versions of a file, or of all files, in the order in which they were kept."""
        query = (
            "SELECT version.id, name, since, seen, size, whole, state FROM version "
            "JOIN file ON file.id = version.file"
        )
        if file is None:
            rows = self._rows(f"{query} ORDER BY version.id")
        else:
            rows = self._rows(f"{query} WHERE name = ? ORDER BY version.id", (_packed(file),))
        return [Version(id, _unpacked(name), *rest) for id, name, *rest in rows]

    def latest(self) -> dict[str, tuple[int | None, int, bytes, str]]:
        """The newest version of each file, by its name.

        Returns:
            Time of change (nanoseconds since 1970; None where unknown), size in bytes, SHA-256 of the
            whole content, and state (see `acp_core.history.schema.Version`).
        """
        rows = self._rows(
            "SELECT name, changed, size, whole, state FROM version JOIN file "
            "ON file.id = version.file WHERE version.id IN (SELECT max(id) FROM version GROUP BY file)"
        )
        return {
            _unpacked(name): (changed, size, whole, state)
            for name, changed, size, whole, state in rows
        }

    def content(self, version: int) -> bytes:
        """The whole content of a version, as it was in the file.

        Raises:
            KeyError: there is no such version, or its content was not kept.
            BadRecording: it is damaged.
        """
        parts: list[bytes] = []
        row = self._row("id = ?", version)
        if row is None:
            raise KeyError(version)
        end = row.size
        while row.content is not None:
            parts.append(self._content(row.content)[: end - row.start])
            if not row.start:
                return b"".join(reversed(parts))
            end = row.start
            before = self._row("file = ? AND id < ?", row.file, row.id)
            if before is None:
                raise BadRecording(f"{self.path}: the beginning of a log is missing")
            row = before
        raise KeyError(version)

    def _row(self, where: str, *values: int) -> _Row | None:
        query = f"SELECT id, file, size, start, content FROM version WHERE {where}"
        for row in self._rows(f"{query} ORDER BY id DESC LIMIT 1", values):
            return _Row(*row)
        return None

    def _content(self, digest: bytes) -> bytes:
        for (packed,) in self._rows("SELECT packed FROM content WHERE digest = ?", (digest,)):
            try:
                return zlib.decompress(packed)
            except zlib.error as error:
                raise BadRecording(_why(self.path, error)) from None
        raise BadRecording(f"{self.path}: the content of a version is missing")

    def observations(self) -> list[Seen]:
        """What was made of the collaboration, oldest first."""
        found: dict[bytes, str] = {}
        observations = []
        for at, content, digest in self._rows("SELECT at, said, findings FROM look ORDER BY id"):
            if digest not in found:
                found[digest] = self._content(digest).decode(errors="surrogatepass")
            observations.append(Seen(at, content, found[digest]))
        return observations

    def loops(self) -> list[LoopChange]:
        """The states of participants' loops, oldest first."""
        query = "SELECT at, participant, said FROM loop ORDER BY id"
        rows = self._rows(query)
        return [
            LoopChange(at, _unpacked(participant), content) for at, participant, content in rows
        ]

    def spans(self) -> list[Span]:
        """When recorders looked, by their beginning."""
        query = "SELECT program, began, until FROM span ORDER BY began"
        return [Span(*row) for row in self._rows(query)]

    def size(self) -> int:
        """Bytes on disk."""
        return sum(
            path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists()
        )

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise BadRecording(_why(self.path, error)) from None


class _Row(NamedTuple):
    id: int
    file: int
    size: int
    start: int
    content: bytes | None


class OutOfStep(Unusable):
    """A log's addition does not follow the version that is kept last: give the whole log."""


def _packed(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _unpacked(data: bytes) -> str:
    return data.decode(errors="surrogatepass")


def _since(changed: int | None, before: float | None, now: float) -> float:
    """The file's own time where it lies between the look before and this one, else ``now``."""
    own = changed / 1e9 if changed is not None else now
    return own if (before is None or own >= before) and own <= now else now


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    if read_only:
        if not path.is_file():
            raise NoRecording(f"{path}: there is no such recording")
        # not mode=ro: reading a write-ahead log that somebody left needs its index
        db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    else:
        if not path.parent.is_dir():
            atomic.private_folder(path.parent)
        with contextlib.suppress(FileExistsError):
            # never one that is there: closing it would let go of this process's locks on it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
    try:
        _prepare(db, path, read_only)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path, read_only: bool) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    if not read_only:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    if read_only and _is_empty(db):
        # somebody is beginning just now, perhaps
        raise NoRecording(f"{path}: nothing was recorded there yet")
    if _version(db) == 0 and not read_only:
        db.execute("BEGIN IMMEDIATE")
        if _is_empty(db):  # nobody else was quicker, and it is nobody else's
            for statement in schema.TABLES.split(";"):
                if statement.strip():
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {schema.APPLICATION}")
            db.execute(f"PRAGMA user_version = {schema.VERSION}")
        db.execute("COMMIT")
    if db.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION:
        raise sqlite3.DatabaseError("not a recording of acp")
    if _version(db) > schema.VERSION:
        raise sqlite3.DatabaseError("created by a newer acp: use that version")


def _is_empty(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) = 0 FROM sqlite_master").fetchone()[0])


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _why(path: Path, error: Exception) -> str:
    return f"recording {path}: {error}"


def trim(path: Path, most: int, before: float) -> int:
    """Throw contents of documents away, the oldest first.

    The log, and of every document the newest version, are kept.

    Args:
        path: The recording.
        most: Bytes that all contents may take, packed.
        before: What was seen before this time (seconds since 1970) goes in any case.

    Returns:
        How many contents went.

    Raises:
        BadRecording: it cannot be read or written.
    """
    Store(path).close()  # it is one, and of this version
    try:
        with contextlib.closing(sqlite3.connect(path, BUSY, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            gone = _forget(db, most, before)
            db.execute("COMMIT")
            if gone:
                db.execute("VACUUM")
    except sqlite3.Error as error:
        raise BadRecording(f"recording {path}: {error}") from None
    return gone


def _forget(db: sqlite3.Connection, most: int, before: float) -> int:
    (size,) = db.execute("SELECT total(length(packed)) FROM content").fetchone()
    old = db.execute(
        "SELECT version.id, version.seen, length(packed) FROM version "
        "JOIN file ON file.id = version.file JOIN content ON digest = version.content "
        "WHERE NOT file.log AND version.id NOT IN (SELECT max(id) FROM version GROUP BY file) "
        "ORDER BY version.id"
    ).fetchall()
    gone = []
    for id, seen, length in old:
        if size <= most and seen >= before:
            break
        gone.append((TRIMMED, id))
        size -= length  # what several versions share is counted too often: then less goes
    db.executemany("UPDATE version SET content = NULL, state = ? WHERE id = ?", gone)
    if gone:
        db.execute(
            "DELETE FROM content WHERE digest NOT IN (SELECT content FROM version "
            "WHERE content IS NOT NULL) AND digest NOT IN (SELECT findings FROM look)"
        )
    return len(gone)


LARGEST = 512 << 20  # bytes of one content

_FETCHED = 200  # rows at once

Row = tuple[Any, ...]

_TEXT, _BYTES, _WHOLE, _REAL = str, bytes, int, (int, float)

_TABLES: dict[str, tuple[tuple[str, Any], ...]] = {
    "file": (("id", _WHOLE), ("name", _BYTES), ("log", _WHOLE), ("document", _BYTES)),
    "content": (("digest", _BYTES), ("size", _WHOLE), ("packed", _BYTES)),
    "version": (
        ("id", _WHOLE), ("file", _WHOLE), ("since", _REAL), ("seen", _REAL),
        ("changed", (int, type(None))), ("size", _WHOLE), ("whole", _BYTES), ("start", _WHOLE),
        ("content", (bytes, type(None))), ("state", _TEXT),
    ),
    "look": (("id", _WHOLE), ("at", _REAL), ("said", _TEXT), ("findings", _BYTES)),
    "loop": (("id", _WHOLE), ("participant", _BYTES), ("at", _REAL), ("said", _TEXT)),
    "span": (("recorder", _TEXT), ("program", _TEXT), ("began", _REAL), ("until", _REAL)),
}  # fmt: skip


def snapshot_recording(source: Path, target: Path) -> None:
    """Copy a recording as it is at this moment, while others may write it.

    Raises:
        BadRecording: it cannot be read, or the copy not be written.
    """
    Store(source, read_only=True).close()  # it is one
    try:
        with (
            contextlib.closing(sqlite3.connect(source)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # one file holds everything
    except sqlite3.Error as error:
        raise BadRecording(f"recording {source}: {error}") from None


def take_recording(
    source: Path, target: Path, meta: dict[str, str], allowed: Callable[[str], bool]
) -> int:
    """Make a recording of what another one holds, all of it or nothing.

    Args:
        source: a recording that may come from anybody.
        target: where there is none yet.
        meta: what describes the collaboration here, see `Store.add`.
        allowed: whether a file's name may be in it.

    Returns:
        How many versions it holds.

    Raises:
        BadRecording: the source is damaged, or not what it should be; there is a target already.
    """
    if target.exists():
        raise BadRecording(f"{target}: a recording of this location already exists")
    Store(source, read_only=True).close()
    try:
        store = Store(target)
        store.close()
        with (
            contextlib.closing(sqlite3.connect(source)) as old,
            contextlib.closing(sqlite3.connect(target, isolation_level=None)) as new,
        ):
            old.execute("PRAGMA trusted_schema = OFF")
            old.execute("PRAGMA query_only = ON")
            new.execute("PRAGMA foreign_keys = ON")
            new.execute("BEGIN IMMEDIATE")
            for table, columns in _TABLES.items():
                _copy(old, new, table, columns, allowed)
            for name, value in meta.items():
                packed = value.encode(errors="surrogatepass")
                new.execute("INSERT INTO meta VALUES(?, ?)", (name, packed))
            new.execute("COMMIT")
            row = new.execute("SELECT count(*) FROM version").fetchone()
    except (sqlite3.Error, OSError, ValueError, OverflowError) as error:
        for suffix in ("-wal", "-shm", ""):
            with contextlib.suppress(OSError):
                os.unlink(f"{target}{suffix}")
        raise BadRecording(f"cannot import the recording: {error}") from None
    return int(row[0])


def _copy(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    table: str,
    columns: tuple[tuple[str, Any], ...],
    allowed: Callable[[str], bool],
) -> None:
    marks = ", ".join("?" * len(columns))
    names = ", ".join(name for name, _ in columns)
    for row in _rows(old, f"SELECT {names} FROM {table}"):
        for (name, kind), value in zip(columns, row, strict=True):
            if not isinstance(value, kind):
                raise ValueError(f"{table}.{name} contains an invalid value")
        if table == "content":
            _check_content(*row)
        if table == "file" and not allowed(row[1].decode(errors="surrogatepass")):
            raise ValueError("it names a file outside the collaboration")
        new.execute(f"INSERT INTO {table}({names}) VALUES({marks})", row)


def _rows(old: sqlite3.Connection, query: str) -> Iterator[Row]:
    cursor = old.execute(query)
    while rows := cursor.fetchmany(_FETCHED):
        yield from rows


def _check_content(digest: bytes, size: int, packed: bytes) -> None:
    if not 0 <= size <= LARGEST:
        raise ValueError("a content is too large")
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, size + 1)
    except zlib.error as error:
        raise ValueError(f"a content is damaged: {error}") from None
    if len(data) != size or hashlib.sha256(data).digest() != digest:
        raise ValueError("a content does not match its digest")


SUFFIX = ".recording"

_DAY = 86_400.0

_IN_USE = 3_600.0  # seconds since the last write within which a recording is never thrown away

_WORD = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording that is there: of which collaboration, how large, and when written last.

    ``key`` is "" and ``problem`` says why where it cannot be read.
    """

    path: Path
    key: str
    name: str
    size: int
    written: float
    problem: str = ""


def recordings_folder() -> Path:
    """Where all recordings lie; it need not exist."""
    return paths.state_folder() / "recordings"


def recording_path(key: str) -> Path:
    """Where the recording of one collaboration (a path or URL) lies; it need not exist."""
    name = key_of(key)
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    word = _WORD.sub("_", name.rstrip("/").rpartition("/")[2])[:40].strip(".")
    return recordings_folder() / f"{word}-{digest}{SUFFIX}"


def open_recording(key: str) -> Store | None:
    """The recording of a collaboration, opened for reading; None where there is none.

    Raises:
        BadRecording: there is one, and it cannot be read.
    """
    try:
        return Store(recording_path(key), read_only=True)
    except NoRecording:
        return None


def recordings() -> list[StoredRecording]:
    """All recordings, the one written last first."""
    recordings = []
    for place in recording_files():
        with contextlib.suppress(FileNotFoundError):  # thrown away meanwhile
            recordings.append(_describe_recording(place))
    return sorted(recordings, key=lambda each: -each.written)


def recording_files() -> list[Path]:
    """The files of all recordings, in any order."""
    try:
        return [place for place in recordings_folder().iterdir() if place.suffix == SUFFIX]
    except OSError:
        return []


def _describe_recording(place: Path) -> StoredRecording:
    files = [each.stat() for each in _files_of(place) if each.exists()]
    size = sum(each.st_size for each in files)
    written = max((each.st_mtime for each in files), default=0.0)
    try:
        store = Store(place, read_only=True)
    except BadRecording as error:
        return StoredRecording(place, "", "", size, written, str(error))
    try:
        meta = store.meta()
    except BadRecording as error:
        return StoredRecording(place, "", "", size, written, str(error))
    finally:
        store.close()
    return StoredRecording(place, meta.get("key", ""), meta.get("name", ""), size, written)


def delete_recording(place: Path) -> None:
    """Throw a recording away.

    Raises:
        OSError: it could not be removed.
    """
    for file in reversed(_files_of(place)):  # the database last: without it the others are nothing
        file.unlink(missing_ok=True)


def prune_recordings(bounds: Bounds, now: float | None = None) -> list[Path]:
    """Throw away what is too old, then the oldest until the rest is small enough.

    What was written within the last hour is kept in any case; of what is kept, old contents
    go where they are too old, or too many.

    Args:
        bounds: how old and how large they may be.
        now: the time in seconds since 1970; None for that of the clock.

    Returns:
        The recordings that were thrown away.
    """
    moment = time.time() if now is None else now
    files: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for place in recordings_folder().iterdir():
            if place.suffix == SUFFIX:
                with contextlib.suppress(OSError):
                    found = [each.stat() for each in _files_of(place) if each.exists()]
                    written = max(each.st_mtime for each in found)
                    files.append((written, sum(each.st_size for each in found), place))
    total = sum(size for _, size, _ in files)
    gone = []
    for written, size, place in sorted(files):
        too_old = moment - written > bounds.days * _DAY
        too_much = total > bounds.megabytes * 1e6
        if moment - written > _IN_USE and (too_old or too_much):
            with contextlib.suppress(OSError):
                delete_recording(place)
                gone.append(place)
                total -= size
        else:
            with contextlib.suppress(BadRecording, OSError):
                trim(place, int(bounds.megabytes * 1e6), moment - bounds.days * _DAY)
    return gone


def _files_of(place: Path) -> tuple[Path, ...]:
    return place, Path(f"{os.fspath(place)}-wal"), Path(f"{os.fspath(place)}-shm")


class LineEnds:
    """Where the lines of a log end, and with them its events; fed with what is new.

    Attributes:
        size: bytes of the lines so far.
    """

    def __init__(self) -> None:
        self.size = 0
        self._ends: list[int] = []
        self._texts: list[int] = []  # of lines that hold something

    def add(self, data: bytes) -> None:
        """Go on with whole lines; the last one may lack its newline where nothing follows."""
        place = 0
        while place < len(data):
            newline = data.find(b"\n", place)
            end = newline + 1 if newline >= 0 else len(data)
            self._ends.append(self.size + end)
            if data[place:end].strip():
                self._texts.append(self.size + end)
            place = end
        self.size += len(data)

    def of_event(self, events: Sequence[Event], number: int) -> int | None:
        """Where the line of an event ends, its newline included; None where there is no such line.

        Where the events do not know their lines, each line that holds something is one.
        """
        line_of = getattr(events, "line_of", None)
        ends = self._texts if line_of is None else self._ends
        place = number if line_of is None else line_of(number) - 1
        return ends[place] if 0 <= place < len(ends) else None


class GrowingLog:
    """The log of one collaboration, look after look.

    Args:
        path: the log.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._reader = Reader(
            path, max_line=LARGEST_LOG, max_lines=LARGEST_LOG, max_size=LARGEST_LOG
        )
        self._lines = LineEnds()

    def read(self) -> None:
        """Look once at what is new.

        Raises:
            Unreadable: it is missing, or may not be read.
        """
        poll = self._reader.poll(0.0)
        if poll.change == UNREADABLE:
            raise Unreadable(poll.reason)
        if poll.change == RESTARTED:
            self._lines = LineEnds()
        for block in poll.blocks:
            self._lines.add(block.data)

    def end_of(self, events: Sequence[Event], number: int) -> int:
        """Where the line of an event ends, its newline included; the log's end where none is known."""
        end = self._lines.of_event(events, number)
        return self._lines.size + len(self._reader.tail) if end is None else end
