"""The tables of an agent's store."""

from __future__ import annotations

NEWER = "another version of acp"
"""What is said of a store that a program of another version wrote."""
VERSION = 1
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
