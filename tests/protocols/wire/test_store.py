"""What was acknowledged is there after a crash, once, in order, and no number comes twice."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from acp_core.protocols.wire import write
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.read.store import MessageFilter, StoredMessage, TaskFilter
from acp_core.protocols.wire.schema.basics import Json, LogEntry
from acp_core.protocols.wire.write import Database, StoreError, Tx, connect

added: list[LogEntry] = []
PATIENCE = 60.0
ROOT = Path(__file__).resolve().parents[3]


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    added.clear()
    database = Database(tmp_path / "store.sqlite3", added.extend)
    yield database
    await database.close()


def message(
    tx: Tx, id: str, direction: str = "out", origin: str = "o", **fields: Any
) -> StoredMessage:
    def make(seq: int) -> tuple[Json, Json]:
        return {"type": "acp.message", "message_id": id, "server_seq": seq, **fields}, {}

    return write.add_message(tx, direction, origin, id, fields.get("peer"), make)


async def test_an_id_stands_for_one_message(store: Database) -> None:
    first = await store.write(lambda tx: message(tx, "m1"))
    again = await store.write(lambda tx: message(tx, "m1", text="other"))
    assert (first.new, again.new) == (True, False)
    assert (again.seq, again.envelope) == (first.seq, first.envelope)
    assert (await store.write(lambda tx: message(tx, "m1", origin="p"))).new
    assert (await store.write(lambda tx: message(tx, "m1", "in"))).new
    assert [entry.seq for entry in added] == [1, 2, 3]


async def test_writes_that_come_together_keep_their_order(store: Database) -> None:
    futures = [store.submit(lambda tx, n=n: message(tx, f"m{n}")) for n in range(1000)]
    stored = await asyncio.gather(*futures)
    assert [each.seq for each in stored] == list(range(1, 1001))
    assert [entry.seq for entry in added] == list(range(1, 1001))
    read = await store.read(lambda db: read_store.entries_after(db, 990, 100))
    assert read == added[990:]
    assert json.loads(read[0].body)["_seq"] == 991


async def test_writes_that_come_together_are_brought_to_the_disk_together(tmp_path: Path) -> None:
    commits: list[int] = []
    store = Database(tmp_path / "s.sqlite3", lambda added: commits.append(len(added)))
    busy, go_on = threading.Event(), threading.Event()

    def first(tx: Tx) -> None:
        busy.set()
        go_on.wait(PATIENCE)

    def entry(number: int, tx: Tx) -> int:
        return write.add_log_entry(tx, "acp.peer", {"n": number})

    blocking = store.submit(first)
    await asyncio.to_thread(busy.wait, PATIENCE)
    writes = [store.submit(partial(entry, number)) for number in range(50)]
    assert not commits
    go_on.set()
    await blocking
    assert await asyncio.gather(*writes) == list(range(1, 51))
    assert commits == [50]
    await store.close()


async def test_a_write_that_fails_leaves_nothing_and_spoils_no_other(store: Database) -> None:
    def failing(tx: Tx) -> None:
        message(tx, "lost")
        raise ValueError("no")

    futures = [
        store.submit(lambda tx: message(tx, "a")),
        store.submit(failing),
        store.submit(lambda tx: message(tx, "b")),
    ]
    a, lost, b = await asyncio.gather(*futures, return_exceptions=True)
    assert isinstance(lost, ValueError)
    assert isinstance(a, StoredMessage) and isinstance(b, StoredMessage)
    kept, total = await store.read(lambda db: read_store.find_messages(db, MessageFilter(), 10))
    assert (total, [each["message_id"] for each in kept]) == (2, ["a", "b"])
    assert [json.loads(entry.body)["message_id"] for entry in added] == ["a", "b"]


@pytest.mark.parametrize("undone", [False, True])
async def test_a_lone_write_that_fails_leaves_nothing(store: Database, undone: bool) -> None:
    def failing(tx: Tx) -> None:
        message(tx, "lost")
        if undone:  # as SQLite does by itself, on a full disk for example
            tx.db.execute("ROLLBACK")
        raise ValueError("no")

    with pytest.raises(ValueError):
        await store.write(failing)
    kept = await store.write(lambda tx: message(tx, "kept"))
    found, total = await store.read(lambda db: read_store.find_messages(db, MessageFilter(), 10))
    assert (total, [each["message_id"] for each in found]) == (1, ["kept"])
    assert [entry.seq for entry in added] == [kept.seq]


async def test_messages_are_found_by_what_they_are(store: Database) -> None:
    def fill(tx: Tx) -> None:
        for n in range(10):
            message(tx, f"m{n}", "in" if n % 2 else "out", role="user", context_id=f"c{n % 3}")

    await store.write(fill)
    for wanted, expected in [
        (MessageFilter(context_id="c0"), [0, 3, 6, 9]),
        (MessageFilter(context_id="c0", direction="in"), [3, 9]),
        (MessageFilter(since_seq=8), [8, 9]),
        (MessageFilter(role="agent"), []),
        (MessageFilter(received_after=0.0, context_id="c2"), [2, 5, 8]),
    ]:
        found, total = await store.read(lambda db, f=wanted: read_store.find_messages(db, f, 100))
        assert [int(each["message_id"][1:]) for each in found] == expected
        assert total == len(expected)
    found, total = await store.read(
        lambda db: read_store.find_messages(db, MessageFilter(), 3, 2, newest=True)
    )
    assert ([each["message_id"] for each in found], total) == (["m7", "m6", "m5"], 10)


async def test_polling_gives_each_message_that_arrived_once(store: Database) -> None:
    def fill(tx: Tx) -> None:
        for n in range(5):
            message(tx, f"m{n}", "in")
            message(tx, f"o{n}")

    await store.write(fill)
    first, left = await store.write(lambda tx: write.take_unpolled(tx, 3))
    rest, none = await store.write(lambda tx: write.take_unpolled(tx, 50))
    assert [each["id"] for each in first + rest] == ["m0", "m1", "m2", "m3", "m4"]
    assert (left, none) == (2, 0)
    assert await store.write(lambda tx: write.take_unpolled(tx, 50)) == ([], 0)


async def test_what_a_peer_has_not_acknowledged_waits_in_order(store: Database) -> None:
    row = await store.write(lambda tx: write.add_peer(tx, "instance:x", "B", "acp://h/t", True))
    assert row.id == "peer_001"

    def fill(tx: Tx) -> None:
        for n in range(5):
            write.queue_frame(tx, row.id, f"m{n}", "{}", counts=n != 1)

    await store.write(fill)
    waiting = await store.read(lambda db: read_store.outgoing_after(db, row.id, 0, 10))
    assert [each.frame_id for each in waiting] == ["m0", "m1", "m2", "m3", "m4"]
    done = [each.id for each in waiting[:3]]
    await store.write(lambda tx: write.acknowledge_frames(tx, row.id, done))
    await store.write(lambda tx: write.acknowledge_frames(tx, row.id, done))
    assert (await store.read(read_store.count_traffic))[row.id] == (2, 0)
    assert (await store.read(read_store.queue_depths))[row.id][0] == 2
    assert await store.read(lambda db: read_store.is_unacknowledged(db, row.id, "m3"))
    await store.write(lambda tx: write.remove_peer(tx, row))
    assert row.id not in await store.read(read_store.queue_depths)
    other = await store.write(lambda tx: write.add_peer(tx, None, "C", None, False))
    assert other.id == "peer_002"  # an id is never given twice


async def test_tasks_are_paged_by_time(store: Database) -> None:
    def fill(tx: Tx) -> None:
        for n in range(10):
            write.save_task(tx, {
                "id": f"t{n}", "status": "working" if n % 2 else "completed", "direction": "local",
                "created_at": f"2026-03-21T07:00:0{n}Z", "updated_at": f"2026-03-21T08:00:0{9 - n}Z",
            })  # fmt: skip

    await store.write(fill)

    def ids(page: tuple[list[Json], int]) -> list[str]:
        return [task["id"] for task in page[0]]

    found = await store.read(lambda db: read_store.find_tasks(db, TaskFilter(status="working"), 3))
    assert (ids(found), found[1]) == (["t1", "t3", "t5"], 5)
    more = await store.read(
        lambda db: read_store.find_tasks(db, TaskFilter(status="working"), 3, cursor="t5")
    )
    assert ids(more) == ["t7", "t9"]
    newest = await store.read(
        lambda db: read_store.find_tasks(db, TaskFilter(), 2, sort="updated_at", newest=True)
    )
    assert ids(newest) == ["t0", "t1"]
    assert (await store.read(lambda db: read_store.find_task(db, "t3"))) is not None
    assert (await store.read(lambda db: read_store.find_task(db, "none"))) is None


async def test_the_oldest_goes_first_and_numbers_go_on(store: Database) -> None:
    kept = write.Retention(log=10, tasks=2, seen=3, slack=5)

    def fill(tx: Tx) -> int:
        for n in range(30):
            message(tx, f"m{n}")
        for n in range(10):
            write.is_first_arrival(tx, "o", f"f{n}")
        return write.prune(tx, kept)

    assert await store.write(fill) == 20
    assert await store.read(read_store.log_bounds) == (21, 30)
    assert not await store.write(lambda tx: write.is_first_arrival(tx, "o", "f9"))
    assert await store.write(lambda tx: write.is_first_arrival(tx, "o", "f0"))
    await store.write(lambda tx: write.prune(tx, write.Retention(log=1, slack=0)))
    await store.write(lambda tx: tx.db.execute("DELETE FROM log"))
    assert await store.read(read_store.log_bounds) == (31, 30)
    assert (await store.write(lambda tx: message(tx, "next"))).seq == 31


async def test_of_tasks_that_are_over_the_latest_are_kept_and_all_that_are_open(
    store: Database,
) -> None:
    def fill(tx: Tx) -> None:
        for n, word in enumerate(("completed", "working", "failed", "canceled", "completed")):
            at = f"2026-03-21T08:00:0{n}Z"
            write.save_task(tx, {"id": f"t{n}", "status": word, "direction": "local",
                           "created_at": at, "updated_at": at})  # fmt: skip

    kept = write.Retention(tasks=2, slack=1)
    await store.write(fill)
    await store.write(lambda tx: write.prune(tx, kept))
    left, _ = await store.read(lambda db: read_store.find_tasks(db, TaskFilter(), 10))
    assert sorted(task["id"] for task in left) == ["t1", "t3", "t4"]


async def test_a_card_is_kept_and_read_again(store: Database) -> None:
    row = await store.write(lambda tx: write.add_peer(tx, None, "B", "acp://h/t", True))
    for card in ({"name": "B", "skills": ["cook"]}, None):
        await store.write(lambda tx, c=card: write.save_peer(tx, row._replace(card=c)))
        (known,) = await store.read(read_store.all_peers)
        assert known.card == card


async def test_what_is_being_read_is_read_to_its_end_before_the_file_is_let_go_of(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "store.sqlite3", added.extend)
    begun, never = threading.Event(), threading.Event()

    def slow(db: sqlite3.Connection) -> int:
        begun.set()
        never.wait(0.2)  # so that closing comes in between
        return len(read_store.all_peers(db))

    reading = asyncio.ensure_future(database.read(slow))
    await asyncio.get_running_loop().run_in_executor(None, begun.wait)
    await database.close()
    assert await reading == 0


def test_a_file_that_cannot_be_used_is_told_in_one_line(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite3"
    place.write_bytes(b"no database, but more than a hundred bytes long" * 10)
    with pytest.raises(StoreError, match=r"store\.sqlite3: "):
        connect(place)
    place.unlink()
    db = connect(place)
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(StoreError, match="newer acp"):
        connect(place)


WRITER = """
import asyncio, sys
from pathlib import Path
from acp_core.protocols.wire.write import Database, add_message

async def main(place, start):
    store = Database(Path(place), lambda entries: None)
    async def one(n):
        stored = await store.write(lambda tx: add_message(
            tx, "out", "o", f"m{n}", None, lambda seq: ({"message_id": f"m{n}", "seq": seq}, {})))
        print(n, stored.seq, flush=True)
    n = start
    while True:
        await asyncio.gather(*(one(n + i) for i in range(7)))
        n += 7

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite3"
    told: dict[int, int] = {}
    for round in range(8):
        start = round * 10_000
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(place), str(start)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout
        for _ in range(20 + 17 * round):
            n, seq = map(int, child.stdout.readline().split())
            told[n] = seq
        os.kill(child.pid, signal.SIGKILL)
        for line in child.stdout.read().splitlines()[:-1]:
            n, seq = map(int, line.split())
            told[n] = seq
        child.wait()
        child.stdout.close()
    db = connect(place)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored = {int(id[1:]): seq for seq, id in db.execute("SELECT seq, message_id FROM messages")}
    db.close()
    assert told.items() <= stored.items()
    assert len(set(stored.values())) == len(stored)
    assert [stored[n] for n in sorted(stored)] == sorted(stored.values())


async def test_the_file_is_for_its_owner_alone(store: Database) -> None:
    await store.write(lambda tx: message(tx, "m"))
    for path in store.path.parent.iterdir():
        assert path.stat().st_mode & 0o077 == 0


async def test_a_write_is_durable_in_the_ways_that_were_asked_for(tmp_path: Path) -> None:
    def level(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA synchronous").fetchone()[0])

    for sync, expected in (("full", 2), ("normal", 1)):
        db = connect(tmp_path / sync, sync)
        assert (level(db), db.execute("PRAGMA journal_mode").fetchone()[0]) == (expected, "wal")
        db.close()


ONE_BY_ONE = """
import asyncio, os, sys
from pathlib import Path
from acp_core.protocols.wire.write import Database, add_log_entry
async def main():
    store = Database(Path(sys.argv[1]), lambda added: None)
    for number in range(20):
        await store.write(lambda tx: add_log_entry(tx, "acp.peer", {"n": number}))
        os.write(1, b"acknowledged")
    os._exit(0)
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_write_is_acknowledged_once_it_is_on_the_disk(tmp_path: Path) -> None:
    """By the system calls: all that was written before an acknowledgement is synced before it."""
    calls = "trace=pwrite64,fdatasync,fsync,write"
    command = ["strace", "-f", "-qq", "-e", calls, "-o", str(tmp_path / "calls")]
    writer = [sys.executable, "-c", ONE_BY_ONE, str(tmp_path / "s.sqlite3")]
    subprocess.run([*command, *writer], check=True, timeout=120, cwd=ROOT, capture_output=True)
    written, synced = 0, 0
    for line in (tmp_path / "calls").read_text().splitlines():
        if "pwrite64(" in line:
            written += 1
        elif ("fdatasync" in line or "fsync" in line) and line.endswith("= 0"):
            synced = written
        elif 'write(1, "acknowledged"' in line:
            assert written > 0
            assert synced == written
            written = synced = 0
