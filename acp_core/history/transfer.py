"""Carrying a recording to another place: every row is checked, none is taken on trust."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from acp_core.history.store import BadRecording, Store

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


def snapshot(source: Path, target: Path) -> None:
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


def take(source: Path, target: Path, meta: dict[str, str], allowed: Callable[[str], bool]) -> int:
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
