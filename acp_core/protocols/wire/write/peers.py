"""Known peers, stored, and what still has to reach them."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import NamedTuple

from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.state import TERMINAL
from acp_core.protocols.wire.write import tasks
from acp_core.protocols.wire.write.database import Tx

_TASKS = 10_000  # of one peer that are looked at
_TASK = {"id", "status", "direction", "created_at", "updated_at"}  # what a task is kept by
_OVER = {state.value for state in TERMINAL}
_FIELDS = (
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


def every(db: sqlite3.Connection) -> list[PeerRow]:
    """All peers, in the order in which they became known."""
    return [_row(row) for row in db.execute(f"SELECT {_FIELDS} FROM peers ORDER BY number")]


def parted(tx: Tx, now: str) -> list[PeerRow]:
    """All peers, none of whom is connected: an agent that begins has no connection yet."""
    tx.db.execute(
        "UPDATE peers SET disconnected_at = ? WHERE connected_at IS NOT NULL"
        " AND (disconnected_at IS NULL OR disconnected_at < connected_at)",
        (now,),
    )
    return every(tx.db)


def add(tx: Tx, identity: str | None, name: str, link: str | None, dials: bool) -> PeerRow:
    """A new peer."""
    number = tx.db.execute(
        "INSERT INTO peers (identity, name, link, dials) VALUES (?, ?, ?, ?)",
        (identity, name, link, dials),
    ).lastrowid
    row = tx.db.execute(f"SELECT {_FIELDS} FROM peers WHERE number = ?", (number,)).fetchone()
    return _row(row)


def save(tx: Tx, row: PeerRow) -> None:
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


def remove(tx: Tx, row: PeerRow) -> None:
    """Forget a peer; what had to reach it goes to nobody else."""
    tx.db.execute("DELETE FROM outgoing WHERE peer_id = ?", (row.id,))
    tx.db.execute("DELETE FROM peers WHERE number = ?", (row.number,))


def move(tx: Tx, old: str, new: str) -> int:
    """Put what has to reach one peer behind what has to reach another, in its order; how much it was.

    Its tasks that are open go with it.
    """
    moved = tx.db.execute(
        "INSERT INTO outgoing (peer_id, frame_id, frame, counts, at)"
        " SELECT ?, frame_id, frame, counts, at FROM outgoing WHERE peer_id = ? ORDER BY id",
        (new, old),
    ).rowcount
    tx.db.execute("DELETE FROM outgoing WHERE peer_id = ?", (old,))
    for task in tasks.page(tx.db, tasks.TaskFilter(peer_id=old), _TASKS)[0]:
        if task.keys() >= _TASK and task["status"] not in _OVER:
            tasks.put(tx, {**task, "peer_id": new})
    return moved


def received(tx: Tx, peer_id: str) -> None:
    """Count a message that came from a peer."""
    tx.db.execute("UPDATE peers SET received = received + 1 WHERE number = ?", (_number(peer_id),))


def counters(db: sqlite3.Connection) -> dict[str, tuple[int, int]]:
    """How many messages went to each peer and came from it."""
    rows = db.execute("SELECT number, sent, received FROM peers")
    return {f"peer_{number:03}": (sent, came) for number, sent, came in rows}


def push(tx: Tx, peer_id: str, frame_id: str, frame: str, *, counts: bool) -> int:
    """Put a frame at the end of what has to reach a peer; ``counts``: it is a message."""
    cursor = tx.db.execute(
        "INSERT INTO outgoing (peer_id, frame_id, frame, counts, at) VALUES (?, ?, ?, ?, ?)",
        (peer_id, frame_id, frame, counts, time.time()),
    )
    return cursor.lastrowid or 0


def waiting(db: sqlite3.Connection, peer_id: str, after: int, limit: int) -> list[Outgoing]:
    """What has to reach a peer, behind the entry ``after``, in order."""
    rows = db.execute(
        "SELECT id, frame_id, frame FROM outgoing WHERE peer_id = ? AND id > ? ORDER BY id LIMIT ?",
        (peer_id, after, limit),
    )
    return [Outgoing(*row) for row in rows]


def is_waiting(db: sqlite3.Connection, peer_id: str, frame_id: str) -> bool:
    """Whether a peer has not acknowledged a frame yet."""
    found = db.execute(
        "SELECT 1 FROM outgoing WHERE peer_id = ? AND frame_id = ?", (peer_id, frame_id)
    )
    return found.fetchone() is not None


def arrived(tx: Tx, peer_id: str, ids: list[int]) -> None:
    """Take frames off the queue that a peer has acknowledged, and count the messages."""
    messages = 0
    for id in ids:
        place = (id, peer_id)
        row = tx.db.execute("SELECT counts FROM outgoing WHERE id = ? AND peer_id = ?", place)
        messages += sum(counts for (counts,) in row.fetchall())
        tx.db.execute("DELETE FROM outgoing WHERE id = ? AND peer_id = ?", place)
    number = _number(peer_id)
    tx.db.execute("UPDATE peers SET sent = sent + ? WHERE number = ?", (messages, number))


def depths(db: sqlite3.Connection) -> dict[str, tuple[int, float]]:
    """For each peer that something has to reach: how much, and since when (seconds since 1970)."""
    rows = db.execute("SELECT peer_id, count(*), min(at) FROM outgoing GROUP BY peer_id")
    return {peer_id: (count, oldest) for peer_id, count, oldest in rows}


def depth(db: sqlite3.Connection, peer_id: str) -> int:
    """How many frames have to reach a peer."""
    row = db.execute("SELECT count(*) FROM outgoing WHERE peer_id = ?", (peer_id,)).fetchone()
    return int(row[0])


def first_time(tx: Tx, origin: str, frame_id: str) -> bool:
    """Whether a frame that is no message comes for the first time; notes that it came."""
    cursor = tx.db.execute(
        "INSERT OR IGNORE INTO seen (origin, frame_id) VALUES (?, ?)", (origin, frame_id)
    )
    return cursor.rowcount > 0


def _row(row: tuple[int, str, str, str, int, str, str, str, str, int, int]) -> PeerRow:
    number, identity, name, link, dials, card, key, on, off, sent, came = row
    known = json.loads(card) if card else None
    return PeerRow(number, identity, name, link, bool(dials), known, key, on, off, sent, came)


def _number(peer_id: str) -> int:
    return int(peer_id.removeprefix("peer_"))
