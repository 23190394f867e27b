"""One SQLite file, written by one thread in batches, read by another.

A write is acknowledged when its transaction has been committed. Writes that come while one is
being brought to the disk go into the next one together.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_core.model.errors import Unusable
from acp_core.protocols.wire.read.store import STORE_VERSION
from acp_core.protocols.wire.schema.basics import LogEntry

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


"""What is said of a store that a program of another version wrote."""

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
