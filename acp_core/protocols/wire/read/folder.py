"""Reading an agent's own folder, and what its log's entries say, while it runs or after it ended.

The store is opened for reading alone, and kept open: to open it anew would itself be a change in
the folder. What it holds was sent by strangers; what cannot be read as expected is left out, or
makes the whole unreadable, in one line.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from acp_core.files.decode import text
from acp_core.files.reading import Unreadable, open_regular, read_head
from acp_core.model.errors import Unusable
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.agent_directory import Running
from acp_core.protocols.wire.network.links import is_token
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.store import NEWER, STORE_VERSION, PeerRow
from acp_core.protocols.wire.schema import basics, observed
from acp_core.protocols.wire.schema.basics import Json, LogEntry, fields_of, from_base64, time_of
from acp_core.protocols.wire.schema.bodies import in_line, shown_text, spoken
from acp_core.protocols.wire.schema.observed import PeerSeen, People, Task

FILE = "wire.sqlite3"

EVENTS = 5_000  # of the end of the log

TASKS = 500  # the latest

RUNNING, NOT_KNOWN = "running", "not known"  # whether an agent ran at a moment of its past

_SEED = "A" * 43  # 32 bytes in base64url

_LATEST = 10_000_000_000.0  # seconds since 1970: a later time is none

_MAGIC = b"SQLite format 3\x00"

_FOR_NOW = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN)

_WRONG = (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class CannotRead(Unusable):
    """The store cannot be read now; the message is one line.

    ``damage``: it is there, and broken; reading it again changes nothing.
    """

    def __init__(self, message: str, *, damage: bool = False) -> None:
        super().__init__(message)
        self.damage = damage


class Reach(NamedTuple):
    """Where an agent is asked, with which token, and whether that gives its owner's rights."""

    url: str
    token: str | None
    owner: bool = True


class Placed(NamedTuple):
    """When an entry was written into a log, and how that is known.

    ``source`` is as an event's: ``recorded``, ``said by its sender`` or ``inferred``.
    """

    time: datetime
    source: str = "recorded"


class Queue(NamedTuple):
    """How much waits for a peer, and since when (seconds since 1970; None: not known).

    ``stalled``: since when it was seen that nothing of it was acknowledged, where ``since`` is
    not told.
    """

    waiting: int
    since: float | None
    stalled: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of an agent: what its folder held, or what it answered.

    Attributes:
        reach: where it is asked; None where nothing can be asked of it now.
        away: why it cannot be asked; "" where it is simply stopped, or runs.
        heard: when something was heard of it last, where it is away.
        lost: since when it does not answer, where it is away.
        remote: whether it is elsewhere.
        pause: seconds between two questions, where it is asked again and again because it cannot
            tell by itself what happens while it also answers; 0 otherwise.
        written: when messages were written into its log, by entry, as far as known. What they
            say of their time is their sender's.
        then: of its past, whether it ran at that moment, in a word; "" for the present.
        unknown: of its past, what nothing tells.
        begun: since when its store is one; None where that is not told.
        queues: by the id of a peer.
        lines: for each entry, where a file is recorded: the line of it up to which that entry, and
            what followed from it, stand.
    """

    name: str
    reach: Reach | None
    card: Json
    entries: tuple[LogEntry, ...] = ()
    tasks: tuple[Task, ...] = ()
    peers: tuple[PeerSeen, ...] = ()
    queues: dict[str, Queue] = field(default_factory=dict)
    lines: tuple[int, ...] = ()
    away: str = ""
    heard: datetime | None = None
    lost: datetime | None = None
    remote: bool = False
    pause: float = 0.0
    written: Mapping[int, Placed] = field(default_factory=dict)
    then: str = ""
    unknown: str = ""
    begun: datetime | None = None

    @property
    def met(self) -> frozenset[str]:
        """The ids of the peers to whom something can be sent."""
        return frozenset(peer.id for peer in self.peers if peer.met)


def _is_usable(db: sqlite3.Connection) -> bool:
    """Whether an agent can be who it was: its key and its tokens, where it has some, are some."""
    kept = dict(db.execute("SELECT key, value FROM meta"))
    seed = from_base64(kept.get("instance_seed", _SEED))
    tokens = (kept.get(name, "x") for name in ("token", "owner_token"))
    return seed is not None and len(seed) == 32 and all(map(is_token, tokens))


def is_store(folder: Path) -> bool:
    """Whether a folder holds the store of an agent."""
    try:
        return read_head(folder / FILE, len(_MAGIC)) == _MAGIC
    except Unreadable:
        return False


def problem(folder: Path) -> str:
    """Why the store in a folder cannot be used; "" where it can, or where there is none yet."""
    if not (folder / FILE).exists() or not (folder / FILE).stat().st_size:
        return ""
    source = Source(folder)
    try:
        source.read()
    except CannotRead as error:
        return str(error) if error.damage else ""
    finally:
        source.close()
    return ""


class Source:
    """An agent's folder, read again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._seen: object = None
        self._last: Reading | None = None
        self._entries: list[LogEntry] = []
        self._written: dict[int, Placed] = {}

    def read(self) -> Reading:
        """What it holds now; the very object of the last call where nothing changed.

        Raises:
            CannotRead: it cannot be read.
        """
        running = agent_directory.running_in(self._folder)
        try:
            db = self._connected()
            seen = (running, db.execute("PRAGMA data_version").fetchone()[0])
            if self._last is None or seen != self._seen:
                self._last, self._seen = self._all(db, running), seen
            return self._last
        except OSError as error:
            self.close()
            raise CannotRead(f"{FILE}: {error.strerror or error}") from None
        except _WRONG as error:
            self.close()
            damage = getattr(error, "sqlite_errorcode", 0) & 0xFF not in _FOR_NOW
            raise CannotRead(f"{FILE} cannot be read: {error}", damage=damage) from None

    def raw(self, seq: int) -> str:
        """An entry of the log as JSON; "" where there is none."""
        found = next((entry for entry in self._entries if entry.seq == seq), None)
        return found.body.decode("utf-8", "replace") if found else ""

    def close(self) -> None:
        """Let go of the file."""
        if self._db is not None:
            self._db.close()
        self._db, self._seen, self._last = None, None, None
        self._entries, self._written = [], {}

    def _connected(self) -> sqlite3.Connection:
        path = self._folder / FILE
        descriptor, found = open_regular(path)  # SQLite would wait for whoever writes into a pipe
        os.close(descriptor)
        inode = found.st_ino
        if self._db is not None and inode == self._inode:
            return self._db
        self.close()
        where = f"file:{quote(str(path))}?mode=ro"
        db = sqlite3.connect(
            where, uri=True, timeout=2, check_same_thread=False, isolation_level=None
        )
        self._db, self._inode = db, inode
        db.execute("PRAGMA query_only=ON")
        db.execute("PRAGMA trusted_schema=OFF")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != STORE_VERSION:
            raise ValueError(f"written by {NEWER} ({version})")
        return db

    def _all(self, db: sqlite3.Connection, running: Running | None) -> Reading:
        _, last = store.log_bounds(db)
        known = self._entries[-1].seq if self._entries else 0
        place_now = max(known, last - EVENTS)
        while new := store.entries_after(db, place_now, 1000):
            self._entries += new
            place_now = new[-1].seq
            self._written |= _written(db, new[0].seq, place_now)
        for gone in self._entries[:-EVENTS]:
            self._written.pop(gone.seq, None)
        del self._entries[:-EVENTS]
        found, _ = store.find_tasks(db, store.TaskFilter(), TASKS, sort="updated_at", newest=True)
        if not _is_usable(db):
            raise ValueError("its key or its tokens are invalid")
        card = store.find_value(db, "card")
        return Reading(
            name=unquote(self._folder.name),
            reach=Reach(running.http_url, running.owner_token) if running else None,
            card=fields_of(json.loads(card) if card else None),
            begun=time_of(store.find_value(db, store.BEGUN)),
            entries=tuple(self._entries),
            written=dict(self._written),
            tasks=tuple(basics.read_as(Task, task) for task in found),
            peers=tuple(_seen(row, running) for row in store.all_peers(db)),
            queues={id: Queue(*depth) for id, depth in store.queue_depths(db).items()},
        )


def seconds(value: object) -> float | None:
    """A moment in seconds since 1970, where a value can be one."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        return None
    return float(value) if math.isfinite(value) and 0 < value < _LATEST else None


def moment(value: object) -> datetime | None:
    """The same as a moment."""
    right = seconds(value)
    return None if right is None else datetime.fromtimestamp(right, UTC)


def _written(db: sqlite3.Connection, first: int, last: int) -> dict[int, Placed]:
    found = db.execute("SELECT seq, at FROM messages WHERE seq BETWEEN ? AND ?", (first, last))
    return {seq: Placed(right) for seq, at in found if (right := moment(at)) is not None}


def _seen(row: PeerRow, running: Running | None) -> PeerSeen:
    on, off = row.connected_at, row.disconnected_at
    connected = running is not None and on is not None and (off is None or on > off)
    return PeerSeen(
        row.id, row.name, connected, on, off, row.sent, row.received,
        signs=bool(row.public_key), met=row.identity is not None,
    )  # fmt: skip


def waits_since(peer: PeerSeen, queue: Queue) -> datetime | None:
    """Since when something waits for a peer, as far as known; at the earliest since it is away."""
    if queue.since is None:
        return None if peer.connected else time_of(peer.disconnected_at)
    return moment(queue.since)


def heir(peer: PeerSeen, reading: Reading) -> PeerSeen | None:
    """The only other peer of this name that is connected: perhaps the same, back with a new link."""
    same = [p for p in reading.peers if p.connected and p.id != peer.id and p.name == peer.name]
    return same[0] if len(same) == 1 else None


if TYPE_CHECKING:
    pass

FAR = 300.0  # seconds by which a time that somebody says may be off before that is said

_FLAGS = {
    "_sig_invalid": "the shared secret's signature is wrong",
    "_sig_missing": "not signed with the shared secret",
    "_ed25519_other_key": "signed with another key than before",
    "_ed25519_invalid": "the Ed25519 signature is wrong",
}

SUSPECT = ("refused", "moved")  # another key for a peer; another agent behind its link

BAD = ("_sig_invalid", "_ed25519_invalid")

_GOOD = ("_sig_verified", "_ed25519_verified")

VERIFIED, OLD = "verified", "verified, but old"

UNSIGNED, WRONG = "not verified", "wrongly signed"

KINDS = (VERIFIED, OLD, UNSIGNED, WRONG)

MESSAGE_KINDS = ("acp.message", "acp.reply")

NOBODY_KNOWN = People()


class Message(NamedTuple):
    """What is counted of a message. ``context`` is "" where it belongs to none.

    ``claimed``: a name that it bears and that is not its sender's, ``who``.
    """

    who: str
    claimed: str
    arrived: bool
    signed: str
    context: str
    at: datetime | None
    text: str


def people_of(reading: Reading) -> People:
    """Who is known to an agent."""
    return observed.people(reading.name, {each.id: each.name for each in reading.peers})


@lru_cache(maxsize=20_000)
def message_of(entry: LogEntry, people: People = NOBODY_KNOWN) -> Message | None:
    """What is counted of an entry, where it is a message; ``people``: who is known to its agent."""
    if entry.kind not in MESSAGE_KINDS:
        return None
    body = body_of(entry)
    sender = observed.sender(body, people)
    return Message(
        clean_line(sender.name or "?", 64),
        clean_name(sender.claimed, 64),
        body.get("_direction") != "out",
        signature_state(body),
        text(body.get("context_id")) or "",
        time_of(body.get("ts")),
        clean_line(in_line(shown_text(body.get("parts"))), 200),
    )


def questions(tasks: Iterable[Task], entries: Iterable[LogEntry]) -> dict[str, str]:
    """By the id of each task that waits for an answer of the person here: what is asked.

    That is what was said last in it by who works on it; nothing stands there where nothing was.
    """
    wanted = {task.id: task for task in tasks if task.asks_us}
    answers: dict[str, str] = {}
    if not wanted:
        return answers
    for entry in entries:
        id = clean_line(entry.task_id or "", 300)
        if id not in wanted or not is_of_worker(body_of(entry), wanted[id]):
            continue
        message = message_of(entry)
        if message and message.text:
            said = clean_line(spoken(body_of(entry).get("parts")), 200)
            answers[id] = said if message.arrived else ""
    return {id: text for id, text in answers.items() if text}


def is_of_worker(body: Json, task: Task) -> bool:
    """Whether a message in a task is of who works on it, or of the agent itself, as far as that is told."""
    if body.get("_direction") == "out" or "_peer_id" not in body:
        return True
    return (body["_peer_id"] or body.get("_proven")) == (task.peer_id or None)


def signature_state(body: Json) -> str:
    """How a message that arrived was signed: one of `KINDS`.

    What lacks its sender's usual signature is not verified: the shared secret signs no contents.
    """
    if any(body.get(flag) for flag in BAD):
        return WRONG
    if observed.unsigned(body) or not any(body.get(flag) for flag in _GOOD):
        return UNSIGNED
    return OLD if body.get("_sig_old") else VERIFIED


def signature_problem(body: Json) -> str:
    """What is wrong with a message's signatures, or missing, in words; "" where nothing is."""
    return "; ".join(filter(None, (mismatch(body), clean_line(observed.unsigned(body), 120))))


def mismatch(body: Json) -> str:
    """What is wrong with the signatures that a message has, or should have with a shared secret."""
    return next((words for flag, words in _FLAGS.items() if body.get(flag)), "")


class Suspect(NamedTuple):
    """That somebody is not who a peer was before. ``name``: the peer's; safe to show."""

    name: str
    reason: str
    since: datetime | None


def suspect(entry: LogEntry) -> Suspect | None:
    """What an entry about a peer says against somebody, or None."""
    body = body_of(entry)
    if body.get("event") not in SUSPECT:
        return None
    name, reason = (clean_line(str(body.get(key) or ""), 300) for key in ("name", "reason"))
    return Suspect(name, reason, time_of(body.get("ts")))


def taken_down(entry: LogEntry, written: Mapping[int, Placed]) -> datetime | None:
    """When an entry was written into the log, as far as known; else when it says that it was."""
    placed = written.get(entry.seq)
    return time_of(body_of(entry).get("ts")) if placed is None else placed.time


def body_of(entry: LogEntry) -> Json:
    """An entry's JSON object; an empty one where it is none."""
    try:
        return fields_of(json.loads(entry.body))
    except (ValueError, RecursionError):
        return {}
