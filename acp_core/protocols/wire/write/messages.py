"""Messages and the log, stored and found again."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from acp_core.files.decode import text
from acp_core.protocols.wire.schema import MESSAGE, REPLY, Json
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.write.database import Entry, Tx

SMALLEST_PAGE, LARGEST_PAGE = 1, 1000
_OF_SENDER = ("_sender", "_other_name", "_ed25519_missing")  # flags: see `schema.senders`


class Stored(NamedTuple):
    """A message as it is kept. ``new`` is false where it had come before."""

    seq: int
    envelope: Json
    new: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """Which messages are asked for; None does not limit."""

    peer_id: str | None = None
    role: str | None = None
    context_id: str | None = None
    task_id: str | None = None
    direction: str | None = None
    since_seq: int | None = None
    received_after: float | None = None  # seconds since 1970


def log(tx: Tx, kind: str, body: Json, task_id: str | None = None) -> int:
    """Add an entry that is no message to the log; returns its number."""
    data = encode(body)
    cursor = tx.db.execute(
        "INSERT INTO log (kind, task_id, body) VALUES (?, ?, ?)", (kind, task_id, data)
    )
    seq = cursor.lastrowid or 0
    tx.added.append(Entry(seq, kind, task_id, data))
    return seq


def add(
    tx: Tx,
    direction: str,
    origin: str,
    message_id: str,
    peer_id: str | None,
    make: Callable[[int], tuple[Json, Json]],
) -> Stored:
    """Store a message, once: the same id from the same origin is the same message.

    Args:
        make: gives the envelope and the flags for the number that the message gets.
    """
    known = find(tx.db, direction, origin, message_id)
    if known:
        return known
    cursor = tx.db.execute("INSERT INTO log (kind) VALUES (?)", (MESSAGE,))
    seq = cursor.lastrowid or 0
    envelope, flags = make(seq)
    kind = envelope.get("type")
    kind = kind if kind == REPLY else MESSAGE
    task_id, stored = text(envelope.get("task_id")), encode(envelope).decode()
    flags = {"_seq": seq, "_direction": direction, "_peer_id": peer_id, **flags}
    told = encode(flags).decode()
    if (kind, task_id) != (MESSAGE, None):
        tx.db.execute("UPDATE log SET kind = ?, task_id = ? WHERE seq = ?", (kind, task_id, seq))
    tx.db.execute(
        "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, direction, origin, message_id, peer_id, kind, text(envelope.get("role")), task_id,
         text(envelope.get("context_id")), text(envelope.get("correlation_id")), time.time(), stored, told),
    )  # fmt: skip
    tx.added.append(Entry(seq, kind, task_id, _joined(stored, told)))
    return Stored(seq, envelope, True)


def find(db: sqlite3.Connection, direction: str, origin: str, message_id: str) -> Stored | None:
    """The message of this id, or None."""
    row = db.execute(
        "SELECT seq, envelope FROM messages WHERE direction = ? AND origin = ? AND message_id = ?",
        (direction, origin, message_id),
    ).fetchone()
    return Stored(row[0], json.loads(row[1]), False) if row else None


def after(db: sqlite3.Connection, seq: int, limit: int) -> list[Entry]:
    """The entries of the log that follow ``seq``, oldest first."""
    rows = db.execute(
        "SELECT log.seq, log.kind, log.task_id, log.body, m.envelope, m.flags FROM log"
        " LEFT JOIN messages m ON m.seq = log.seq WHERE log.seq > ? ORDER BY log.seq LIMIT ?",
        (seq, limit),
    )
    return [
        Entry(number, kind, task_id, _joined(envelope, flags) if body is None else body)
        for number, kind, task_id, body, envelope, flags in rows
    ]


def bounds(db: sqlite3.Connection) -> tuple[int, int]:
    """The lowest number that is still kept (one above the last where none is), and the last given."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    last = int(row[0]) if row else 0
    first = db.execute("SELECT min(seq) FROM log").fetchone()[0]
    return (last + 1 if first is None else int(first)), last


def page(
    db: sqlite3.Connection, wanted: Filter, limit: int, offset: int = 0, *, newest: bool = False
) -> tuple[list[Json], int]:
    """Messages with their flags in the order of their numbers, and how many fit in all."""
    where, values = _where(wanted)
    total = db.execute(f"SELECT count(*) FROM messages {where}", values).fetchone()[0]
    order = "DESC" if newest else "ASC"
    rows = db.execute(
        f"SELECT envelope, flags FROM messages {where} ORDER BY seq {order} LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [json.loads(_joined(*row)) for row in rows], int(total)


def answers(db: sqlite3.Connection, correlation_id: str) -> Json | None:
    """The reply to a message, in whichever direction it went, or None."""
    row = db.execute(
        "SELECT envelope, flags FROM messages WHERE correlation_id = ? AND type = ?"
        " ORDER BY seq LIMIT 1",
        (correlation_id, REPLY),
    ).fetchone()
    return json.loads(_joined(*row)) if row else None


def asked(db: sqlite3.Connection, correlation_id: str) -> tuple[str | None, str] | None:
    """From which peer, and under which id, a message came that waits for this reply."""
    row = db.execute(
        "SELECT peer_id, message_id FROM messages WHERE direction = 'in' AND"
        " (correlation_id = ? OR message_id = ?) ORDER BY seq DESC LIMIT 1",
        (correlation_id, correlation_id),
    ).fetchone()
    return (row[0], row[1]) if row else None


def polled(tx: Tx, limit: int) -> tuple[list[Json], int]:
    """Messages that arrived and were not polled before, with how many remain after them."""
    row = tx.db.execute("SELECT value FROM meta WHERE key = 'polled'").fetchone()
    since = int(row[0]) if row else 0
    rows = tx.db.execute(
        "SELECT seq, message_id, at, role, task_id, context_id, envelope, flags FROM messages"
        " WHERE direction = 'in' AND seq > ? ORDER BY seq LIMIT ?",
        (since, limit),
    ).fetchall()
    last = rows[-1][0] if rows else since
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES ('polled', ?)", (str(last),))
    remaining = tx.db.execute(
        "SELECT count(*) FROM messages WHERE direction = 'in' AND seq > ?", (last,)
    ).fetchone()[0]
    return [_polled(*row) for row in rows], int(remaining)


def _polled(
    seq: int, message_id: str, at: float, role: str | None, task: str, context: str, envelope: str,
    flags: str,
) -> Json:  # fmt: skip
    raw, noted = json.loads(envelope), json.loads(flags)
    return {
        "id": message_id,
        "message_id": message_id,
        "seq": seq,
        "received_at": at,
        "role": role,
        "parts": raw.get("parts"),
        "task_id": task,
        "context_id": context,
        "raw": raw,
        **{name: noted[name] for name in _OF_SENDER if name in noted},
    }


def _where(wanted: Filter) -> tuple[str, list[object]]:
    tests = {
        "peer_id = ?": wanted.peer_id,
        "role = ?": wanted.role,
        "context_id = ?": wanted.context_id,
        "task_id = ?": wanted.task_id,
        "direction = ?": wanted.direction,
        "seq > ?": wanted.since_seq,
        "at > ?": wanted.received_after,
    }
    used = {test: value for test, value in tests.items() if value is not None}
    return (f"WHERE {' AND '.join(used)}" if used else ""), list(used.values())


def _joined(envelope: str, flags: str) -> bytes:
    """Two JSON objects as one; neither is empty, and no field stands in both."""
    return f"{envelope[:-1]},{flags[1:]}".encode()
