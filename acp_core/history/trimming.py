"""Making a recording smaller: old contents go, which there were is still known."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from acp_core.history.schema import TRIMMED
from acp_core.history.store import BUSY, BadRecording, Store


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
