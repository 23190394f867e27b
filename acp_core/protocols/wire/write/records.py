"""Messages and the log, stored and found again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from acp_core.files.decode import text
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.store import (
    PEER_FIELDS,
    PeerRow,
    StoredMessage,
    _joined,
    all_peers,
    find_message,
    peer_row,
)
from acp_core.protocols.wire.schema.basics import MESSAGE, REPLY, TERMINAL, Json, LogEntry
from acp_core.protocols.wire.schema.untrusted_json import encode
from acp_core.protocols.wire.write.database import Tx

SMALLEST_PAGE, LARGEST_PAGE = 1, 1000

_OF_SENDER = ("_sender", "_other_name", "_ed25519_missing")  # flags: see `schema.senders`


def add_log_entry(tx: Tx, kind: str, body: Json, task_id: str | None = None) -> int:
    """Add an entry that is no message to the log; returns its number."""
    data = encode(body)
    cursor = tx.db.execute(
        "INSERT INTO log (kind, task_id, body) VALUES (?, ?, ?)", (kind, task_id, data)
    )
    seq = cursor.lastrowid or 0
    tx.added.append(LogEntry(seq, kind, task_id, data))
    return seq


def add_message(
    tx: Tx,
    direction: str,
    origin: str,
    message_id: str,
    peer_id: str | None,
    make: Callable[[int], tuple[Json, Json]],
) -> StoredMessage:
    """Store a message, once: the same id from the same origin is the same message.

    Args:
        make: gives the envelope and the flags for the number that the message gets.
    """
    known = find_message(tx.db, direction, origin, message_id)
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
    tx.added.append(LogEntry(seq, kind, task_id, _joined(stored, told)))
    return StoredMessage(seq, envelope, True)


def take_unpolled(tx: Tx, limit: int) -> tuple[list[Json], int]:
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


_TASKS = 10_000  # of one peer that are looked at

_TASK = {"id", "status", "direction", "created_at", "updated_at"}  # what a task is kept by

_OVER = {state.value for state in TERMINAL}


def mark_all_disconnected(tx: Tx, now: str) -> list[PeerRow]:
    """All peers, none of whom is connected: an agent that begins has no connection yet."""
    tx.db.execute(
        "UPDATE peers SET disconnected_at = ? WHERE connected_at IS NOT NULL"
        " AND (disconnected_at IS NULL OR disconnected_at < connected_at)",
        (now,),
    )
    return all_peers(tx.db)


def add_peer(tx: Tx, identity: str | None, name: str, link: str | None, dials: bool) -> PeerRow:
    """A new peer."""
    number = tx.db.execute(
        "INSERT INTO peers (identity, name, link, dials) VALUES (?, ?, ?, ?)",
        (identity, name, link, dials),
    ).lastrowid
    row = tx.db.execute(f"SELECT {PEER_FIELDS} FROM peers WHERE number = ?", (number,)).fetchone()
    return peer_row(row)


def save_peer(tx: Tx, row: PeerRow) -> None:
    """Store a peer as it is now, but for its counters."""
    tx.db.execute(
        "UPDATE peers SET identity = ?, name = ?, link = ?, dials = ?, card = ?,"
        " public_key = ?, connected_at = ?, disconnected_at = ? WHERE number = ?",
        (
            row.identity, row.name, row.link, row.dials,
            None if row.card is None else encode(row.card).decode(),
            row.public_key, row.connected_at, row.disconnected_at, row.number,
        ),
    )  # fmt: skip


def remove_peer(tx: Tx, row: PeerRow) -> None:
    """Forget a peer; what had to reach it goes to nobody else."""
    tx.db.execute("DELETE FROM outgoing WHERE peer_id = ?", (row.id,))
    tx.db.execute("DELETE FROM peers WHERE number = ?", (row.number,))


def move_outgoing(tx: Tx, old: str, new: str) -> int:
    """Put what has to reach one peer behind what has to reach another, in its order; how much it was.

    Its tasks that are open go with it.
    """
    moved = tx.db.execute(
        "INSERT INTO outgoing (peer_id, frame_id, frame, counts, at)"
        " SELECT ?, frame_id, frame, counts, at FROM outgoing WHERE peer_id = ? ORDER BY id",
        (new, old),
    ).rowcount
    tx.db.execute("DELETE FROM outgoing WHERE peer_id = ?", (old,))
    for task in store.find_tasks(tx.db, store.TaskFilter(peer_id=old), _TASKS)[0]:
        if task.keys() >= _TASK and task["status"] not in _OVER:
            save_task(tx, {**task, "peer_id": new})
    return moved


def count_received(tx: Tx, peer_id: str) -> None:
    """Count a message that came from a peer."""
    tx.db.execute("UPDATE peers SET received = received + 1 WHERE number = ?", (_number(peer_id),))


def queue_frame(tx: Tx, peer_id: str, frame_id: str, frame: str, *, counts: bool) -> int:
    """Put a frame at the end of what has to reach a peer; ``counts``: it is a message."""
    cursor = tx.db.execute(
        "INSERT INTO outgoing (peer_id, frame_id, frame, counts, at) VALUES (?, ?, ?, ?, ?)",
        (peer_id, frame_id, frame, counts, time.time()),
    )
    return cursor.lastrowid or 0


def acknowledge_frames(tx: Tx, peer_id: str, ids: list[int]) -> None:
    """Take frames off the queue that a peer has acknowledged, and count the messages."""
    messages = 0
    for id in ids:
        place = (id, peer_id)
        row = tx.db.execute("SELECT counts FROM outgoing WHERE id = ? AND peer_id = ?", place)
        messages += sum(counts for (counts,) in row.fetchall())
        tx.db.execute("DELETE FROM outgoing WHERE id = ? AND peer_id = ?", place)
    number = _number(peer_id)
    tx.db.execute("UPDATE peers SET sent = sent + ? WHERE number = ?", (messages, number))


def is_first_arrival(tx: Tx, origin: str, frame_id: str) -> bool:
    """Whether a frame that is no message comes for the first time; notes that it came."""
    cursor = tx.db.execute(
        "INSERT OR IGNORE INTO seen (origin, frame_id) VALUES (?, ?)", (origin, frame_id)
    )
    return cursor.rowcount > 0


def _number(peer_id: str) -> int:
    return int(peer_id.removeprefix("peer_"))


def save_task(tx: Tx, task: Json) -> None:
    """Store a task as it is now."""
    tx.db.execute(
        "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            task["id"], task["status"], task["direction"], task.get("peer_id"),
            task.get("context_id"), task["created_at"], task["updated_at"], encode(task).decode(),
        ),
    )  # fmt: skip


"""Since when the store is one: agents that stood in its folder before were others."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept; the oldest goes first. What still has to go out is always kept."""

    log: int = 100_000  # entries, messages among them
    tasks: int = 10_000  # that are over
    seen: int = 50_000
    slack: int = 1_000  # so much more before anything goes


def keep_value(tx: Tx, key: str, value: str) -> None:
    """Keep a value."""
    tx.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def prune(tx: Tx, kept: Retention) -> int:
    """Drop what is more than `Retention` allows; returns how many entries of the log went.

    Messages that a peer has not acknowledged keep their place in the queue: that holds the
    whole frame.
    """
    db, gone = tx.db, 0
    count = db.execute("SELECT count(*) FROM log").fetchone()[0]
    if count > kept.log + kept.slack:
        edge = db.execute(
            "SELECT seq FROM log ORDER BY seq DESC LIMIT 1 OFFSET ?", (kept.log - 1,)
        ).fetchone()[0]
        gone = db.execute("DELETE FROM log WHERE seq < ?", (edge,)).rowcount
        db.execute("DELETE FROM messages WHERE seq < ?", (edge,))
    over = ", ".join(f"'{state.value}'" for state in sorted(TERMINAL))
    done = db.execute(f"SELECT count(*) FROM tasks WHERE status IN ({over})").fetchone()[0]
    if done > kept.tasks + kept.slack:
        db.execute(
            f"DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE status IN ({over})"
            " ORDER BY updated_at LIMIT ?)",
            (done - kept.tasks,),
        )
    db.execute("DELETE FROM seen WHERE id <= (SELECT max(id) FROM seen) - ?", (kept.seen,))
    return int(gone)
