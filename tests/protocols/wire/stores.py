"""Stores of agents in many states, reached or damaged, made without running any agent."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from acp_core.protocols.wire import write
from acp_core.protocols.wire.network.agent_directory import folder_of
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.schema.basics import Json, encode, time_text
from acp_core.protocols.wire.schema.bodies import text_part
from acp_core.protocols.wire.write import DELEGATED, LOCAL, RECEIVED, Tx, connect

Spec = dict[str, Any]
STATES = ("submitted", "working", "input_required", "completed", "failed", "canceled")
AGES = (10.0, 400.0, 7_200.0, 200_000.0)  # seconds: just now, away, without progress, long ago

_ages = st.sampled_from(AGES)
_peers = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["Ben", "Ben", "Cara", "My Agent", "-x", "a'b"]),
        "met": st.booleans(),
        "on": st.sampled_from(["never", "ended", "cut"]),  # cut: nobody could note the end
        "age": _ages,
        "queue": st.integers(0, 3),
        "stranger": st.booleans(),
    }
)
_tasks = st.fixed_dictionaries(
    {
        "status": st.sampled_from(STATES),
        "direction": st.sampled_from([DELEGATED, LOCAL, RECEIVED]),
        "peer": st.integers(0, 3),
        "age": _ages,
        "words": st.sampled_from(["Boil it", "", "\x1b[2J"]),
    }
)
_messages = st.fixed_dictionaries(
    {
        "flags": st.sampled_from(["", "", "_sig_invalid", "_sig_missing", "_sig_verified"]),
        "out": st.booleans(),
        "ts": st.sampled_from(["now", "2020-01-01T00:00:00Z", "never"]),
        "task": st.integers(0, 4),
    }
)
specs = st.fixed_dictionaries(
    {
        "peers": st.lists(_peers, max_size=3),
        "tasks": st.lists(_tasks, max_size=4),
        "messages": st.lists(_messages, max_size=4),
    }
)


def make(name: str, spec: Spec) -> Path:
    """The folder of an agent of this name, with what is described in its store."""
    folder = folder_of(name)
    folder.mkdir(parents=True)
    with closing(connect(folder / "wire.sqlite3", "normal")) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute("BEGIN")
        tx = Tx(db)
        for each in spec["peers"]:
            _peer(tx, each)
        for number, each in enumerate(spec["tasks"]):
            _task(tx, f"task_{number}", each)
        for number, each in enumerate(spec["messages"]):
            _message(tx, f"m{number}", each, len(spec["tasks"]))
        write.keep_value(
            tx, "card", encode({"name": name, "instance_id": "i", "acp_version": "0.8"}).decode()
        )
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def frame(id: str) -> str:
    """A message as it goes out."""
    return encode({"type": "acp.message", "message_id": id}).decode()


def _at(ago: float) -> str:
    return time_text(datetime.now(UTC) - timedelta(seconds=ago))


def _peer(tx: Tx, each: Spec) -> None:
    number = len(read_store.all_peers(tx.db)) + 1
    row = write.add_peer(
        tx, f"identity {number}" if each["met"] else None, each["name"], None, False
    )
    if each["on"] != "never":
        off = _at(each["age"]) if each["on"] == "ended" else None
        row = row._replace(connected_at=_at(each["age"] + 60), disconnected_at=off)
    write.save_peer(tx, row._replace(card={"name": each["name"]} if each["met"] else None))
    for one in range(each["queue"] if each["met"] else 0):
        id = f"f{number}_{one}"
        write.queue_frame(tx, row.id, id, frame(id), counts=True)
    tx.db.execute(
        "UPDATE outgoing SET at = ? WHERE peer_id = ?", (time.time() - each["age"], row.id)
    )
    if each["stranger"]:
        said = {"event": "refused", "peer_id": row.id, "name": each["name"], "reason": "another key",
                "ts": _at(each["age"])}  # fmt: skip
        write.add_log_entry(tx, "acp.peer", said)


def _task(tx: Tx, id: str, each: Spec) -> None:
    peer = f"peer_{each['peer']:03}" if each["peer"] else None  # may be one that is forgotten
    direction = each["direction"] if peer else LOCAL
    made: Json = {
        "id": id, "status": each["status"], "direction": direction, "peer_id": peer,
        "created_at": _at(each["age"]), "updated_at": _at(each["age"]),
        "input": {"parts": [text_part(each["words"])]}, "history": [],
        "context_id": None,
    }  # fmt: skip
    if each.get("artifact"):
        made["artifact"] = {"parts": [text_part(each["artifact"])]}
    write.save_task(tx, made)
    body = {"task_id": id, "state": each["status"], "direction": direction, "ts": _at(each["age"])}
    write.add_log_entry(tx, "acp.status", body, id)


def _message(tx: Tx, id: str, each: Spec, known: int) -> None:
    ts = _at(5) if each["ts"] == "now" else each["ts"]
    task = {"task_id": f"task_{each['task'] - 1}"} if 0 < each["task"] <= known else {}
    flags = {each["flags"]: True} if each["flags"] else {}

    def envelope(seq: int) -> tuple[Json, Json]:
        return {"type": "acp.message", "message_id": id, "server_seq": seq, "ts": ts, "from": "Ben",
                "role": "user", "parts": [text_part("Hello")], **task}, flags  # fmt: skip

    write.add_message(tx, "out" if each["out"] else "in", "Ben", id, None, envelope)


def _statement(*statements: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with closing(sqlite3.connect(folder / "wire.sqlite3")) as db:
            for each in statements:
                db.execute(each)
            db.commit()

    return damage


def _cut(bytes: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        store = folder / "wire.sqlite3"
        store.write_bytes(store.read_bytes()[:bytes])

    return damage


def _text(folder: Path) -> None:
    (folder / "wire.sqlite3").write_text("no database, and no beginning of one")


DAMAGE: dict[str, Callable[[Path], None]] = {
    "cut in its first page": _cut(2_000),
    "cut behind its first page": _cut(8_192),
    "no database": _text,
    "of another version": _statement("PRAGMA user_version = 99"),
    **{
        f"without {table}": _statement(f"DROP TABLE {table}")
        for table in ("log", "messages", "tasks", "peers", "outgoing", "meta")
    },
    "a task that is no object": _statement("UPDATE tasks SET content = '[1]'"),
    "a task that is no JSON": _statement("UPDATE tasks SET content = '{'"),
    "a task without fields": _statement("UPDATE tasks SET content = '{}'"),
    "tasks of no state": _statement("UPDATE tasks SET content = json_set(content, '$.status', 'asleep')"),
    "a message that is no JSON": _statement("UPDATE messages SET envelope = '{' WHERE seq % 2"),
    "a message that is no object": _statement("UPDATE messages SET envelope = '[]'"),
    "a card that is none": _statement("UPDATE meta SET value = '[]' WHERE key = 'card'"),
    "a card that is no JSON": _statement("UPDATE meta SET value = '{' WHERE key = 'card'"),
    "a peer's card that is no JSON": _statement("UPDATE peers SET card = '{'"),
    "a peer's card that is no object": _statement("UPDATE peers SET card = '[]'"),
    "times that are none": _statement("UPDATE peers SET connected_at = 'x', disconnected_at = 7"),
    "a name that is none": _statement("UPDATE peers SET name = ''"),
    "no tokens": _statement("DELETE FROM meta"),
    "ports that are none": _statement("INSERT OR REPLACE INTO meta VALUES ('ports', 'x')"),
    "a token that is none": _statement("INSERT OR REPLACE INTO meta VALUES ('token', '')"),
    "a seed that is none": _statement("INSERT OR REPLACE INTO meta VALUES ('instance_seed', 'x')"),
}  # fmt: skip
"""What can be wrong with a store; what follows from each depends on what else is in it."""
