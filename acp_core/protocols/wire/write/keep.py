"""What the store keeps for itself, and how much it keeps of everything."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from acp_core.protocols.wire.state import TERMINAL
from acp_core.protocols.wire.write.database import Tx

BEGUN = "begun"
"""Since when the store is one: agents that stood in its folder before were others."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept; the oldest goes first. What still has to go out is always kept."""

    log: int = 100_000  # entries, messages among them
    tasks: int = 10_000  # that are over
    seen: int = 50_000
    slack: int = 1_000  # so much more before anything goes


def get(db: sqlite3.Connection, key: str) -> str | None:
    """A value that was kept, or None."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def put(tx: Tx, key: str, value: str) -> None:
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
