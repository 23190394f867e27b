"""Tasks, stored and found again."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass

from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.write.database import Tx

SORTS = ("created_at", "updated_at")


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks are asked for; None does not limit. Times are as in a task."""

    status: str | None = None
    peer_id: str | None = None
    context_id: str | None = None
    direction: str | None = None
    created_after: str | None = None
    updated_after: str | None = None


def get(db: sqlite3.Connection, id: str) -> Json | None:
    """The task of this id, or None."""
    row = db.execute("SELECT content FROM tasks WHERE id = ?", (id,)).fetchone()
    if row is None:
        return None
    task = json.loads(row[0])
    return task if isinstance(task, dict) else None


def put(tx: Tx, task: Json) -> None:
    """Store a task as it is now."""
    tx.db.execute(
        "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            task["id"], task["status"], task["direction"], task.get("peer_id"),
            task.get("context_id"), task["created_at"], task["updated_at"], encode(task).decode(),
        ),
    )  # fmt: skip


def page(
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
    if sort not in SORTS:
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


def count(db: sqlite3.Connection) -> int:
    """How many tasks are kept."""
    return int(db.execute("SELECT count(*) FROM tasks").fetchone()[0])
