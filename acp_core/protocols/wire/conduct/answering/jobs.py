"""What has to be answered, kept in the agent's store: nothing is forgotten, or answered twice.

The log is read from a place that is kept, so that what came while no program answered is
answered later. A job is waiting, running or over. Jobs of one task, or of one conversation
(``context_id``) with one sender, are carried out one after the other.
"""

from __future__ import annotations

import json
import sqlite3
from typing import NamedTuple

from acp_core.protocols.wire.conduct.agent.tasks import DELEGATED
from acp_core.protocols.wire.schema import MESSAGE, Json
from acp_core.protocols.wire.schema.lenient import fields_of, objects
from acp_core.protocols.wire.schema.senders import CLAIMED, NOTE, handed_on, people
from acp_core.protocols.wire.write import keep, messages, peers, tasks
from acp_core.protocols.wire.write.database import Entry, Tx
from acp_core.protocols.wire.write.messages import Filter

TABLE = """CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    line TEXT NOT NULL,
    seq INTEGER,
    task_id TEXT,
    state TEXT NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 1)"""
INDEXES = (
    "CREATE INDEX IF NOT EXISTS jobs_state ON jobs (state, id)",
    "CREATE INDEX IF NOT EXISTS jobs_task ON jobs (task_id) WHERE task_id IS NOT NULL",
)
CONTEXT = "context:"
"""How the line of a conversation begins; after its messages, more may follow."""
WAITING, RUNNING, OVER = "waiting", "running", "over"
HISTORY = 30  # earlier messages that a program is told of
KEPT = 1000  # jobs that are over
_AFTER = "answers_after"
_PAGE = 256


class Job(NamedTuple):
    """Something to be answered. ``seq``: the message's number; None: a task without one."""

    id: int
    line: str
    seq: int | None
    task_id: str | None
    state: str
    attempt: int

    @property
    def place(self) -> str:
        """The name of the folder of this attempt."""
        return f"{self.id:06}-{self.attempt}"


class Material(NamedTuple):
    """What a job is about. ``message`` and ``task`` are None where there is none (any more).

    Messages are as `senders.handed_on` gives them: their ``from`` is who sent them.
    """

    message: Json | None
    peer_id: str | None
    task: Json | None
    history: list[Json]

    @property
    def parts(self) -> list[Json]:
        """What is asked."""
        asked = fields_of((self.task or {}).get("input")) if self.message is None else self.message
        return objects(asked.get("parts"))

    @property
    def sender(self) -> str:
        """Who asks; "" where nobody is named."""
        return str((self.message or {}).get("from") or "")

    @property
    def doubt(self) -> str:
        """What speaks against the name that the message bears, in words; "" where nothing does."""
        return doubt(self.message or {})


def doubt(message: Json) -> str:
    """What speaks against the name that a message bears, in words; "" where nothing does."""
    claimed, note = message.get(CLAIMED), message.get(NOTE)
    return ", ".join(filter(None, (f"it says it is {claimed}" if claimed else "", note)))


class Gathered(NamedTuple):
    """What reading on in the log gave. ``more``: there is more to read."""

    canceled: frozenset[str]
    more: bool


def prepare(tx: Tx) -> None:
    """Make the table, and begin behind what there is now, where no program answered before."""
    for statement in (TABLE, *INDEXES):
        tx.db.execute(statement)
    if keep.get(tx.db, _AFTER) is None:
        keep.put(tx, _AFTER, str(messages.bounds(tx.db)[1]))


def gather(tx: Tx) -> Gathered:
    """Read on in the log: what has to be answered becomes a job."""
    after = int(keep.get(tx.db, _AFTER) or 0)
    entries = messages.after(tx.db, after, _PAGE)
    canceled = set()
    for entry in entries:
        if entry.kind == MESSAGE:
            _of_message(tx, entry)
        elif entry.kind == "acp.status" and entry.task_id:
            body = json.loads(entry.body)
            if body.get("state") == "canceled":
                canceled.add(entry.task_id)
            elif body.get("state") == "submitted" and body.get("direction") != DELEGATED:
                _of_task(tx, entry.task_id)
    if entries:
        keep.put(tx, _AFTER, str(entries[-1].seq))
    return Gathered(frozenset(canceled), len(entries) == _PAGE)


def _of_message(tx: Tx, entry: Entry) -> None:
    row = tx.db.execute(
        "SELECT direction, peer_id, origin, role, task_id, context_id, flags FROM messages"
        " WHERE seq = ?",
        (entry.seq,),
    ).fetchone()
    if row is None or row[0] != "in":
        return
    _, peer_id, origin, role, task_id, context_id, flags = row
    raw = json.loads(flags).get("_raw")
    unsaid = isinstance(raw, dict) and "role" not in raw  # an older agent's form names no role
    if role != "user" and not unsaid:
        return  # an agent's own words ask for nothing: two agents would never end
    if task_id is not None:
        task = tasks.get(tx.db, task_id)
        if task is None or task["direction"] == DELEGATED:
            return
        line = f"task:{task_id}"
    else:
        who = peer_id or origin
        line = f"{CONTEXT}{who}:{context_id}" if context_id else f"message:{entry.seq}"
    _add(tx, line, entry.seq, task_id)


def _of_task(tx: Tx, task_id: str) -> None:
    """A task that came without a message."""
    known = tx.db.execute("SELECT 1 FROM jobs WHERE task_id = ? LIMIT 1", (task_id,)).fetchone()
    if known is None:
        _add(tx, f"task:{task_id}", None, task_id)


def _add(tx: Tx, line: str, seq: int | None, task_id: str | None) -> None:
    tx.db.execute(
        "INSERT INTO jobs (line, seq, task_id, state) VALUES (?, ?, ?, ?)",
        (line, seq, task_id, WAITING),
    )


def unfinished(db: sqlite3.Connection) -> list[Job]:
    """Jobs that an agent before this one had begun."""
    rows = db.execute("SELECT * FROM jobs WHERE state = ? ORDER BY id", (RUNNING,))
    return [Job(*row) for row in rows]


def ready(db: sqlite3.Connection, limit: int) -> list[Job]:
    """The first job of each line that has none running, oldest first."""
    rows = db.execute(
        "SELECT * FROM jobs WHERE id IN (SELECT min(id) FROM jobs WHERE state = ? AND line NOT IN"
        " (SELECT line FROM jobs WHERE state = ?) GROUP BY line) ORDER BY id LIMIT ?",
        (WAITING, RUNNING, limit),
    )
    return [Job(*row) for row in rows]


def too_many(db: sqlite3.Connection, bound: int) -> list[Job]:
    """The waiting jobs beyond ``bound``, the newest."""
    rows = db.execute(
        "SELECT * FROM jobs WHERE state = ? ORDER BY id LIMIT -1 OFFSET ?", (WAITING, bound)
    )
    return [Job(*row) for row in rows]


def enter(tx: Tx, job: Job, state: str) -> None:
    """Note where a job stands; what was over long ago has been forgotten."""
    tx.db.execute(
        "UPDATE jobs SET state = ?, attempt = ? WHERE id = ?", (state, job.attempt, job.id)
    )
    if state == OVER:
        tx.db.execute("DELETE FROM jobs WHERE state = ? AND id <= ?", (OVER, job.id - KEPT))


def material(db: sqlite3.Connection, job: Job, own: str) -> Material:
    """What a job is about, as it is now; ``own`` is the agent's name."""
    message = peer_id = None
    known = people(own, {each.id: each.name for each in peers.every(db)})
    row = (
        db.execute(
            "SELECT envelope, peer_id, flags FROM messages WHERE seq = ?", (job.seq,)
        ).fetchone()
        if job.seq is not None
        else None
    )
    if row:
        message, peer_id = handed_on(json.loads(row[0]), json.loads(row[2]), known), row[1]
    task = tasks.get(db, job.task_id) if job.task_id else None
    if row is None and task is not None:
        peer_id = task.get("peer_id")
    history: list[Json] = []
    context = (message or {}).get("context_id")
    if job.task_id or context:
        wanted = Filter(task_id=job.task_id, context_id=None if job.task_id else context)
        found, _ = messages.page(db, wanted, HISTORY + 1, newest=True)
        ours = [each for each in found[::-1] if job.task_id or each.get("_peer_id") == peer_id]
        history = [each for each in ours if job.seq is None or each.get("_seq", 0) < job.seq]
    told = [handed_on(each, each, known) for each in history[-HISTORY:]]
    return Material(message, peer_id, task, told)
