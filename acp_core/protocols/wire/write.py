"""What an agent keeps, in one SQLite file: the log, messages, tasks, peers, and what has to go out.

One thread writes in batches, another reads. A write is acknowledged when its transaction has been
committed; writes that come while one is being brought to the disk go into the next one together.
Functions that take a ``Tx`` are part of one such write.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_core.files import decode
from acp_core.files.decode import text
from acp_core.model.errors import Unusable
from acp_core.protocols.wire import state
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.store import (
    PEER_FIELDS,
    STORE_VERSION,
    PeerRow,
    StoredMessage,
    _joined,
    all_peers,
    find_message,
    peer_row,
)
from acp_core.protocols.wire.schema.basics import (
    MESSAGE,
    REPLY,
    TASK_UPDATED,
    TERMINAL,
    Code,
    Json,
    LogEntry,
    TaskState,
    WireError,
    encode,
    invalid,
    new_id,
    now_text,
)
from acp_core.protocols.wire.schema.bodies import check_parts, data_part, text_part
from acp_core.protocols.wire.schema.bodies import text as text_field

T = TypeVar("T")

BATCH = 256  # writes in one transaction


class StoreError(Unusable):
    """The file cannot be used; the message is one line: file, and what is wrong."""


@dataclass(slots=True)
class Tx:
    """A write in progress: its connection, and the entries that it adds to the log."""

    db: sqlite3.Connection
    added: list[LogEntry] = field(default_factory=list)


class _Job(NamedTuple):
    work: Callable[[Tx], Any]
    future: asyncio.Future[Any]


_Done = tuple[asyncio.Future[Any], Any, BaseException | None]


class Database:
    """The file, open. Made and closed inside a running event loop.

    Args:
        path: the file; its folder must exist.
        added: called in the loop with the entries of each committed transaction, in order,
            before those who wrote them go on.
        sync: whether a commit also survives a loss of power ("full"), or the end of the process
            alone ("normal"), which is faster.

    Raises:
        StoreError: the file cannot be opened, or is of a newer acp.
    """

    def __init__(
        self, path: Path, added: Callable[[list[LogEntry]], None], sync: str = "full"
    ) -> None:
        self.path = path
        self._added = added
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reader = connect(path, sync)
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="wire-read")
        self._connection = connect(path, sync)
        self._thread = threading.Thread(target=self._write_all, name="wire-write", daemon=True)
        self._thread.start()

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run ``work`` in a transaction; returns after the commit.

        Raises:
            Whatever ``work`` raises: then nothing of it was written.
            sqlite3.Error: it could not be brought to the disk.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Job(work, future))
        return await future

    def submit(self, work: Callable[[Tx], T]) -> asyncio.Future[T]:
        """As `write`, without waiting; writes are carried out in the order of submission."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Job(work, future))
        return future

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work``, which must not write, on what was committed last."""
        return await self._loop.run_in_executor(self._readers, work, self._reader)

    async def close(self) -> None:
        """Commit what was submitted, and let go of the file."""
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._readers.shutdown(wait=True)
        self._reader.close()
        self._connection.close()

    def _write_all(self) -> None:
        going = True
        while going:
            batch: list[_Job] = []
            job = self._queue.get()
            while job is not None:
                batch.append(job)
                if len(batch) >= BATCH:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            going = job is not None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_Job]) -> None:
        db = self._connection
        done: list[_Done] = []
        added: list[LogEntry] = []
        try:
            db.execute("BEGIN IMMEDIATE")
            if len(batch) == 1:
                self._commit_one(batch[0], done, added)
            else:
                for job in batch:
                    self._do(job, done, added)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            added = []
            done = [(job.future, None, error) for job in batch]
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            self._loop.call_soon_threadsafe(self._tell, done, added)

    def _do(self, job: _Job, done: list[_Done], added: list[LogEntry]) -> None:
        """Do one of several writes: where it fails, the others stand."""
        tx = Tx(self._connection)
        tx.db.execute("SAVEPOINT job")
        try:
            done.append((job.future, job.work(tx), None))
            added += tx.added
        except Exception as error:
            tx.db.execute("ROLLBACK TO job")
            done.append((job.future, None, error))
        tx.db.execute("RELEASE job")

    def _commit_one(self, job: _Job, done: list[_Done], added: list[LogEntry]) -> None:
        """Do the only write of a transaction, which then is its own way back, and commit it."""
        tx = Tx(self._connection)
        try:
            value = job.work(tx)
        except Exception as error:
            with contextlib.suppress(sqlite3.Error):  # SQLite has gone back by itself
                tx.db.execute("ROLLBACK")
            done.append((job.future, None, error))
            return
        tx.db.execute("COMMIT")
        done.append((job.future, value, None))
        added += tx.added

    def _tell(self, done: list[_Done], added: list[LogEntry]) -> None:
        if added:
            self._added(added)
        for future, value, error in done:
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


def connect(path: Path, sync: str = "full") -> sqlite3.Connection:
    """A connection to the file, whose tables are made where they are missing.

    Raises:
        StoreError: it cannot be used.
    """
    before = os.umask(0o077)
    try:
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute(f"PRAGMA synchronous={'NORMAL' if sync == 'normal' else 'FULL'}")
            db.execute("PRAGMA journal_size_limit=16777216")
            db.execute("BEGIN IMMEDIATE")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for table in TABLES:
                    db.execute(table)
                db.execute(f"PRAGMA user_version={STORE_VERSION}")
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from None
    finally:
        os.umask(before)
    if version > STORE_VERSION:
        db.close()
        raise StoreError(f"{path}: written by a newer acp")
    return db


TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # Everything that /stream tells, in order. AUTOINCREMENT: a number never comes again,
    # also when all rows were pruned. The body of a message stands in its own table.
    """CREATE TABLE log (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        task_id TEXT,
        body BLOB)""",
    # direction: "in" or "out". origin: whose message ids these are, or to whom they went.
    """CREATE TABLE messages (
        seq INTEGER PRIMARY KEY,
        direction TEXT NOT NULL,
        origin TEXT NOT NULL,
        message_id TEXT NOT NULL,
        peer_id TEXT,
        type TEXT NOT NULL,
        role TEXT,
        task_id TEXT,
        context_id TEXT,
        correlation_id TEXT,
        at REAL NOT NULL,
        envelope TEXT NOT NULL,
        flags TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX messages_once ON messages (direction, origin, message_id)",
    "CREATE INDEX messages_context ON messages (context_id, seq) WHERE context_id IS NOT NULL",
    "CREATE INDEX messages_task ON messages (task_id, seq) WHERE task_id IS NOT NULL",
    "CREATE INDEX messages_peer ON messages (peer_id, seq)",
    "CREATE INDEX messages_reply ON messages (correlation_id) WHERE correlation_id IS NOT NULL",
    # Other frames that arrived once.
    "CREATE TABLE seen (id INTEGER PRIMARY KEY, origin TEXT, frame_id TEXT, UNIQUE(origin, frame_id))",
    # direction: "delegated" (a peer works), "received" (we work for a peer) or "local".
    """CREATE TABLE tasks (
        id TEXT PRIMARY KEY,
        status TEXT NOT NULL,
        direction TEXT NOT NULL,
        peer_id TEXT,
        context_id TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        content TEXT NOT NULL)""",
    "CREATE INDEX tasks_created ON tasks (created_at, id)",
    "CREATE INDEX tasks_updated ON tasks (updated_at, id)",
    """CREATE TABLE peers (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        identity TEXT UNIQUE,
        name TEXT NOT NULL,
        link TEXT,
        dials INTEGER NOT NULL DEFAULT 0,
        card TEXT,
        public_key TEXT,
        connected_at TEXT,
        disconnected_at TEXT,
        sent INTEGER NOT NULL DEFAULT 0,
        received INTEGER NOT NULL DEFAULT 0)""",
    # What a peer has not acknowledged yet, in the order in which it has to arrive.
    """CREATE TABLE outgoing (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        peer_id TEXT NOT NULL,
        frame_id TEXT NOT NULL,
        frame TEXT NOT NULL,
        counts INTEGER NOT NULL,
        at REAL NOT NULL)""",
    "CREATE INDEX outgoing_peer ON outgoing (peer_id, id)",
)

SMALLEST_PAGE, LARGEST_PAGE = 1, 1000

_OF_SENDER = ("_sender", "_other_name", "_ed25519_missing")  # flags: see `schema.observed`


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


DELEGATED, RECEIVED, LOCAL = "delegated", "received", "local"

HISTORY = 100  # changes that a task remembers


def create_task(
    tx: Tx,
    direction: str,
    parts: list[Json],
    *,
    id: str | None = None,
    peer_id: str | None = None,
    message_id: str | None = None,
    context_id: str | None = None,
) -> Json:
    """A new task, submitted.

    Raises:
        Refusal: there is a task of that id.
    """
    id = id or new_id("task")
    if store.find_task(tx.db, id):
        raise invalid("a task with this id exists")
    now = now_text()
    task: Json = {
        "id": id,
        "status": TaskState.SUBMITTED.value,
        "created_at": now,
        "updated_at": now,
        "input": {"parts": parts},
        "message_id": message_id,
        "context_id": context_id,
        "peer_id": peer_id,
        "direction": direction,
        "history": [],
    }
    _enter(tx, task, TaskState.SUBMITTED)
    save_task(tx, task)
    return task


def task_known(tx: Tx, id: str) -> Json:
    """The task of this id.

    Raises:
        Refusal: there is none.
    """
    task = store.find_task(tx.db, id)
    if task is None:
        raise WireError(Code.NOT_FOUND, "no such task")
    return task


def update_task(
    tx: Tx, task: Json, wanted: TaskState, artifact: Json | None, error: str | None
) -> bool:
    """Report where a task stands; says whether that is news.

    Raises:
        Refusal: it cannot come there (core specification, section 3.3).
    """
    current = TaskState(task["status"])
    result = artifact is not None and artifact != task.get("artifact")
    reason = error is not None and error != task.get("error")
    if current.terminal and (result or reason):
        raise invalid(f"the task is {current.value} and cannot change")
    way = state.steps(current, wanted)
    if result and wanted not in (TaskState.WORKING, TaskState.COMPLETED):
        raise invalid(f"a task that is {wanted.value} has no artifact")
    if result:
        task["artifact"] = artifact
    if reason:
        task["error"] = error
    for step in way[:-1]:
        _enter(tx, task, step)
    if result:  # told before the end, after which nobody listens
        body = {"type": "acp.artifact", "ts": now_text(), "task_id": task["id"],
                "context_id": task["context_id"], "artifact": artifact}  # fmt: skip
        add_log_entry(tx, "acp.artifact", body, task["id"])
    for step in way[-1:]:
        _enter(tx, task, step)
    if way or result or reason:
        task["updated_at"] = now_text()
        save_task(tx, task)
        return True
    return False


def tell_task(tx: Tx, task: Json) -> bool:
    """Put the news of a task on the way to the peer that shares it, if there is one."""
    peer_id = task.get("peer_id")
    if peer_id is None:
        return False
    frame: Json = {
        "type": TASK_UPDATED,
        "message_id": new_id("upd"),
        "ts": now_text(),
        "task_id": task["id"],
        "status": task["status"],
        "state": task["status"],
    }
    for name in ("artifact", "error", "context_id"):
        if task.get(name) is not None:
            frame[name] = task[name]
    queue_frame(tx, peer_id, frame["message_id"], encode(frame).decode(), counts=False)
    return True


def task_reported(tx: Tx, peer_id: str, frame: Json) -> None:
    """Take over what a peer says of a task: a worker reports, a requester cancels.

    Raises:
        Refusal: the task is not shared with that peer, or cannot come there.
    """
    id = text_field(frame, "task_id")
    task = store.find_task(tx.db, id) if id else None
    if task is None or task.get("peer_id") != peer_id:
        raise WireError(Code.NOT_FOUND, "no task of this id is shared with you")
    wanted = state.task_state(frame.get("status", frame.get("state")))
    if task["direction"] == RECEIVED and wanted is not TaskState.CANCELED:
        raise WireError(Code.FORBIDDEN, "only the peer that works on a task can report on it")
    current = TaskState(task["status"])
    if task["direction"] == DELEGATED and current is not wanted and _behind(current, wanted):
        update_task(tx, task, TaskState.WORKING, None, None)
    update_task(tx, task, wanted, artifact_of(frame), text_field(frame, "error"))


def _behind(current: TaskState, wanted: TaskState) -> bool:
    """Whether the worker went on from a question that it has got an answer to meanwhile."""
    return current is TaskState.INPUT_REQUIRED and wanted is not TaskState.CANCELED


def task_arrived(tx: Tx, peer_id: str | None, envelope: Json) -> Json | None:
    """Do what a message from outside means for the task that it names; returns a new task.

    An unknown task is a new one for us; the answer to a question lets the task go on.
    """
    id, parts = decode.text(envelope.get("task_id")), envelope.get("parts")
    if id is None:
        return None
    task = store.find_task(tx.db, id)
    if task is None:
        return create_task(
            tx,
            RECEIVED,
            parts if isinstance(parts, list) else [],
            id=id,
            peer_id=peer_id,
            message_id=decode.text(envelope.get("message_id")),
            context_id=decode.text(envelope.get("context_id")),
        )
    shared = task["direction"] == RECEIVED and task.get("peer_id") == peer_id
    if shared and task["status"] == TaskState.INPUT_REQUIRED.value:
        update_task(tx, task, TaskState.WORKING, None, None)
    return None


def artifact_of(body: Json) -> Json | None:
    """The artifact of an update: ``artifact``, or ``output`` as some clients call it.

    Raises:
        Refusal: its parts are none.
    """
    value: Any = body.get("artifact", body.get("output"))
    if value is None:
        return None
    if isinstance(value, dict) and "parts" in value:
        check_parts(value["parts"])
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(v, dict) and "type" in v for v in value)
    ):
        return {"parts": check_parts(value)}
    return {"parts": [text_part(value) if isinstance(value, str) else data_part(value)]}


def _enter(tx: Tx, task: Json, step: TaskState) -> None:
    task["status"] = step.value
    now = now_text()
    task["updated_at"] = now
    task["history"] = [*task["history"], {"status": step.value, "at": now}][-HISTORY:]
    body: Json = {
        "type": "acp.status",
        "ts": now,
        "task_id": task["id"],
        "state": step.value,
        "status": step.value,
        "context_id": task["context_id"],
        "peer_id": task["peer_id"],
        "direction": task["direction"],
    }
    if task.get("error") and step is TaskState.FAILED:
        body["error"] = task["error"]
    add_log_entry(tx, "acp.status", body, task["id"])
