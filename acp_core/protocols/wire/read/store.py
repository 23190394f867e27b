"""The tables of an agent's store, queried: messages, tasks, peers, and what still has to go out."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

from acp_core.protocols.wire.schema.basics import REPLY, Json, LogEntry


class StoredMessage(NamedTuple):
    """A message as it is kept. ``new`` is false where it had come before."""

    seq: int
    envelope: Json
    new: bool


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages are asked for; None does not limit."""

    peer_id: str | None = None
    role: str | None = None
    context_id: str | None = None
    task_id: str | None = None
    direction: str | None = None
    since_seq: int | None = None
    received_after: float | None = None  # seconds since 1970


def find_message(
    db: sqlite3.Connection, direction: str, origin: str, message_id: str
) -> StoredMessage | None:
    """The message of this id, or None."""
    row = db.execute(
        "SELECT seq, envelope FROM messages WHERE direction = ? AND origin = ? AND message_id = ?",
        (direction, origin, message_id),
    ).fetchone()
    return StoredMessage(row[0], json.loads(row[1]), False) if row else None


def entries_after(db: sqlite3.Connection, seq: int, limit: int) -> list[LogEntry]:
    """The entries of the log that follow ``seq``, oldest first."""
    rows = db.execute(
        "SELECT log.seq, log.kind, log.task_id, log.body, m.envelope, m.flags FROM log"
        " LEFT JOIN messages m ON m.seq = log.seq WHERE log.seq > ? ORDER BY log.seq LIMIT ?",
        (seq, limit),
    )
    return [
        LogEntry(number, kind, task_id, _joined(envelope, flags) if body is None else body)
        for number, kind, task_id, body, envelope, flags in rows
    ]


def log_bounds(db: sqlite3.Connection) -> tuple[int, int]:
    """The lowest number that is still kept (one above the last where none is), and the last given."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    last = int(row[0]) if row else 0
    first = db.execute("SELECT min(seq) FROM log").fetchone()[0]
    return (last + 1 if first is None else int(first)), last


def find_messages(
    db: sqlite3.Connection,
    wanted: MessageFilter,
    limit: int,
    offset: int = 0,
    *,
    newest: bool = False,
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


def find_reply(db: sqlite3.Connection, correlation_id: str) -> Json | None:
    """The reply to a message, in whichever direction it went, or None."""
    row = db.execute(
        "SELECT envelope, flags FROM messages WHERE correlation_id = ? AND type = ?"
        " ORDER BY seq LIMIT 1",
        (correlation_id, REPLY),
    ).fetchone()
    return json.loads(_joined(*row)) if row else None


def find_asker(db: sqlite3.Connection, correlation_id: str) -> tuple[str | None, str] | None:
    """From which peer, and under which id, a message came that waits for this reply."""
    row = db.execute(
        "SELECT peer_id, message_id FROM messages WHERE direction = 'in' AND"
        " (correlation_id = ? OR message_id = ?) ORDER BY seq DESC LIMIT 1",
        (correlation_id, correlation_id),
    ).fetchone()
    return (row[0], row[1]) if row else None


def _where(wanted: MessageFilter) -> tuple[str, list[object]]:
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


TASK_SORTS = ("created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are asked for; None does not limit. Times are as in a task."""

    status: str | None = None
    peer_id: str | None = None
    context_id: str | None = None
    direction: str | None = None
    created_after: str | None = None
    updated_after: str | None = None


def find_task(db: sqlite3.Connection, id: str) -> Json | None:
    """The task of this id, or None."""
    row = db.execute("SELECT content FROM tasks WHERE id = ?", (id,)).fetchone()
    if row is None:
        return None
    task = json.loads(row[0])
    return task if isinstance(task, dict) else None


def find_tasks(
    db: sqlite3.Connection,
    wanted: TaskFilter,
    limit: int,
    offset: int = 0,
    *,
    sort: str = "created_at",
    newest: bool = False,
    cursor: str | None = None,
) -> tuple[list[Json], int]:
    """Tasks in the order of a time, and how many fit in all.

    Args:
        cursor: the id of the task after which the page begins.
    """
    if sort not in TASK_SORTS:
        raise ValueError(sort)
    tests = {
        "status = ?": wanted.status,
        "peer_id = ?": wanted.peer_id,
        "context_id = ?": wanted.context_id,
        "direction = ?": wanted.direction,
        "created_at > ?": wanted.created_after,
        "updated_at > ?": wanted.updated_after,
    }
    used = [(test, value) for test, value in tests.items() if value is not None]
    where = " AND ".join(test for test, _ in used) or "1"
    values: list[object] = [value for _, value in used]
    total = db.execute(f"SELECT count(*) FROM tasks WHERE {where}", values).fetchone()[0]
    if cursor is not None:
        sign = "<" if newest else ">"
        where += f" AND ({sort}, id) {sign} (SELECT {sort}, id FROM tasks WHERE id = ?)"
        values.append(cursor)
    order = "DESC" if newest else "ASC"
    rows = db.execute(
        f"SELECT content FROM tasks WHERE {where} ORDER BY {sort} {order}, id {order}"
        " LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    found = (json.loads(content) for (content,) in rows)
    return [task for task in found if isinstance(task, dict)], int(total)


def count_tasks(db: sqlite3.Connection) -> int:
    """How many tasks are kept."""
    return int(db.execute("SELECT count(*) FROM tasks").fetchone()[0])


PEER_FIELDS = (
    "number, identity, name, link, dials, card, public_key, connected_at, disconnected_at,"
    " sent, received"
)


class PeerRow(NamedTuple):
    """A peer as it is kept. ``identity`` is None until its card came once.

    ``public_key`` is the first one that it showed: a signature by another is told.
    """

    number: int
    identity: str | None
    name: str
    link: str | None
    dials: bool
    card: Json | None
    public_key: str | None
    connected_at: str | None
    disconnected_at: str | None
    sent: int
    received: int

    @property
    def id(self) -> str:
        """The id under which the HTTP interface knows it."""
        return f"peer_{self.number:03}"


class Outgoing(NamedTuple):
    """A frame that a peer has not acknowledged."""

    id: int
    frame_id: str
    frame: str


def all_peers(db: sqlite3.Connection) -> list[PeerRow]:
    """All peers, in the order in which they became known."""
    return [peer_row(row) for row in db.execute(f"SELECT {PEER_FIELDS} FROM peers ORDER BY number")]


def count_traffic(db: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """How many messages went to each peer and came from it."""
    rows = db.execute("SELECT number, sent, received FROM peers")
    return {f"peer_{number:03}": (sent, came) for number, sent, came in rows}


def outgoing_after(db: sqlite3.Connection, peer_id: str, after: int, limit: int) -> list[Outgoing]:
    """What has to reach a peer, behind the entry ``after``, in order."""
    rows = db.execute(
        "SELECT id, frame_id, frame FROM outgoing WHERE peer_id = ? AND id > ? ORDER BY id LIMIT ?",
        (peer_id, after, limit),
    )
    return [Outgoing(*row) for row in rows]


def is_unacknowledged(db: sqlite3.Connection, peer_id: str, frame_id: str) -> bool:
    """Whether a peer has not acknowledged a frame yet."""
    found = db.execute(
        "SELECT 1 FROM outgoing WHERE peer_id = ? AND frame_id = ?", (peer_id, frame_id)
    )
    return found.fetchone() is not None


def queue_depths(db: sqlite3.Connection) -> dict[str, tuple[int, float]]:
    """For each peer that something has to reach: how much, and since when (seconds since 1970)."""
    rows = db.execute("SELECT peer_id, count(*), min(at) FROM outgoing GROUP BY peer_id")
    return {peer_id: (count, oldest) for peer_id, count, oldest in rows}


def peer_row(row: tuple[int, str, str, str, int, str, str, str, str, int, int]) -> PeerRow:
    number, identity, name, link, dials, card, key, on, off, sent, came = row
    known = json.loads(card) if card else None
    return PeerRow(number, identity, name, link, bool(dials), known, key, on, off, sent, came)


BEGUN = "begun"
"""Since when the store is one: agents that stood in its folder before were others."""


def find_value(db: sqlite3.Connection, key: str) -> str | None:
    """A value that was kept, or None."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


NEWER = "another version of acp"
"""What is said of a store that a program of another version wrote."""

STORE_VERSION = 1
