"""What is known of an agent elsewhere: the sum of what it said, record after record.

A record is one JSON object: what was observed, ``what`` it is, and when (``at``). The same records
make the same state, whether they come from the network or from a file, so that the past can be
shown by the rules of the present.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.decode import text
from acp_core.files.read_only import NEWER, is_newer
from acp_core.files.reading import Unreadable, open_regular
from acp_core.person.paths import state_folder
from acp_core.protocols.wire.read import folder as read_folder
from acp_core.protocols.wire.read.folder import (
    EVENTS,
    TASKS,
    Placed,
    Queue,
    Reach,
    Reading,
    moment,
)
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import (
    Json,
    LogEntry,
    Object,
    WireError,
    decode,
    encode,
    fields_of,
    now_text,
    time_of,
)
from acp_core.protocols.wire.schema.observed import PeerReport, Task

if TYPE_CHECKING:
    pass

ENTRY, CARD, PEERS, TASK, AWAY, ANEW = "entry", "card", "peers", "task", "away", "anew"

PEER = "peer"  # one of them: what an agent's own log tells

BYTES = 64 << 20  # of messages that are held; the oldest go

PEERS_MOST = 2_000

_SOURCES = ("recorded", "said by its sender", "inferred")  # of the time of an entry

_PEER = (
    "id", "name", "connected", "connected_at", "disconnected_at", "messages_sent",
    "messages_received", "queued", "queued_since", "error",
)  # fmt: skip


def record(what: str, **fields: Any) -> Json:
    """A record of now."""
    return {"at": now_text(), "what": what, **fields}


def entry(seq: int, kind: str, body: Json, *, live: bool = False) -> Json:
    """The record of an entry of its log; ``live``: it was written just now."""
    stamp = {"live": True} if live else {}
    return record(ENTRY, seq=seq, kind=kind, **stamp, body=body)


def peers(found: Iterable[Json]) -> list[Json]:
    """What is recorded of peers: not their cards, only whether they sign."""
    kept = []
    for peer, _ in zip(found, range(PEERS_MOST), strict=False):
        card = peer.get("agent_card")
        signs = bool(fields_of(card).get("identity"))
        plain = {name: peer[name] for name in _PEER if peer.get(name) is not None}
        kept.append({**plain, "signs": signs, "met": card is not None})
    return kept


@dataclass(frozen=True, slots=True)
class _Record:
    """A record that is none of an entry: one of these fields says what was observed."""

    at: object = None
    card: Object | None = None
    peers: tuple[PeerReport, ...] | None = None
    peer: PeerReport | None = None
    task: Task | None = None
    why: str = ""


class _Stalled(NamedTuple):
    """How many messages a peer had acknowledged, what waited for it, and since when it is so."""

    sent: int
    waiting: int
    at: float


class Known:
    """The state that records make. Used by one thread at a time."""

    def __init__(self) -> None:
        self.card: Json = {}
        self.away = ""
        self.heard: object = None  # when it said something last
        self.latest: object = None  # when the last record was made
        self.lost: object = None  # when it was first found not to answer
        self.last = 0  # the highest number of an entry
        self.peers: list[PeerReport] = []
        self.tasks: dict[str, Task] = {}
        self._entries: list[LogEntry] = []
        self._ends: list[int] = []  # for each entry the line up to which what followed it stands
        self._bytes = 0
        self._lines = 0
        self._written: dict[int, Placed] = {}
        self._floor: datetime | None = None  # the latest time of an entry, as far as it is known
        self._stalled: dict[str, _Stalled] = {}
        self.pause = 0.0  # seconds between two questions, where nothing is told by itself

    def take(self, told: Json) -> None:
        """One more record; one that is none counts as a line and changes nothing."""
        self._lines += 1
        self.latest = told.get("at")
        what = told.get("what")
        if what == ENTRY:
            self._entry(told)
        elif what == ANEW:
            self._entries, self._ends, self._bytes, self.last = [], [], 0, 0
            self._written, self._floor = {}, None
            self.tasks = {}
        else:
            self._change(what, basics.read_as(_Record, told))
        if what != AWAY and self.card:  # without its card, it never answered
            self.heard = told.get("at")
        if self._ends:
            self._ends[-1] = self._lines

    def _change(self, what: object, record: _Record) -> None:
        """Take over what a record says of the agent, but for entries of its log."""
        if what == CARD and record.card is not None:
            self.card = record.card
        elif what == PEERS and record.peers is not None:
            self.peers = [*record.peers]
            self._note_stalled(time_of(record.at))
        elif what == PEER and record.peer is not None:
            self._peer(record.peer)
        elif what == TASK and record.task is not None:
            self._task(record.task)
        elif what == AWAY:
            self.away = record.why
            self.lost = (self.lost or record.at) if self.away else None

    def skip(self) -> None:
        """A line that holds no record."""
        self._lines += 1

    def restart(self, before: int) -> None:
        """The file was written anew, with `records` after so many other lines."""
        first = before + 3  # the card, the peers, then the entries
        self._ends = list(range(first, first + len(self._entries)))
        self._lines = before + len(self.records())
        if self._ends:
            self._ends[-1] = self._lines

    def records(self) -> list[Json]:
        """The records that make this state, without what was before."""
        made = [
            record(CARD, card=self.card),
            record(PEERS, peers=[peer.raw for peer in self.peers]),
        ]
        made += [
            record(ENTRY, seq=each.seq, kind=each.kind, **self._stamp(each.seq),
                   body=read_folder.body_of(each))
            for each in self._entries
        ]  # fmt: skip
        made += [record(TASK, task=task.raw) for task in self.tasks.values()]
        return [*made, record(AWAY, why=self.away)] if self.away else made

    def holds(self, task: Json) -> bool:
        """Whether a task is known as it is."""
        known = self.tasks.get(str(task.get("id")))
        return known is not None and known.raw == task

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """The entries of its log that are held, in their order."""
        return tuple(self._entries)

    def reading(self, name: str, reach: Reach | None) -> Reading:
        """What it means. ``name`` is used until the agent has said its own."""
        own = text(self.card.get("name"))
        latest = sorted(self.tasks.values(), key=lambda task: task.updated_at, reverse=True)
        queues = {
            peer.id: Queue(peer.queued, peer.queued_since, self._stalled_since(peer.id))
            for peer in self.peers
            if peer.queued
        }
        return Reading(
            name=own if own and own.strip() else name,
            reach=reach,
            card=self.card,
            entries=tuple(self._entries),
            written=dict(self._written),
            tasks=tuple(latest),
            peers=tuple(self.peers),
            queues=queues,
            lines=tuple(self._ends),
            away=self.away,
            heard=time_of(self.heard),
            lost=time_of(self.lost),
            remote=True,
            pause=self.pause,
        )

    def raw(self, seq: int) -> str:
        """An entry as JSON; "" where there is none."""
        found = next((each for each in reversed(self._entries) if each.seq == seq), None)
        return found.body.decode("utf-8", "replace") if found else ""

    def _entry(self, told: Json) -> None:
        seq, kind, body = told.get("seq"), told.get("kind"), told.get("body")
        if type(seq) is not int or seq <= self.last:
            return
        if not isinstance(kind, str) or not isinstance(body, dict):
            return
        self.last = seq
        made = LogEntry(seq, kind, text(body.get("task_id")), encode(body))
        self._entries.append(made)
        self._ends.append(self._lines)
        placed = self._placed(told, made, time_of(body.get("ts")))
        if placed is not None:
            self._written[seq] = placed
        self._bytes += len(made.body)
        while len(self._entries) > EVENTS or self._bytes > BYTES:
            gone = min(len(self._entries), max(1, EVENTS // 10))
            self._bytes -= sum(len(each.body) for each in self._entries[:gone])
            for each in self._entries[:gone]:
                self._written.pop(each.seq, None)
            del self._entries[:gone], self._ends[:gone]

    def _note_stalled(self, at: datetime | None) -> None:
        """Note since when nothing of what waits for a peer was acknowledged."""
        before, self._stalled = self._stalled, {}
        for peer in self.peers:
            last, waiting = before.get(peer.id), peer.queued
            if waiting and last and last.sent == peer.sent and last.waiting <= waiting:
                self._stalled[peer.id] = last._replace(waiting=waiting)
            elif waiting and at:
                self._stalled[peer.id] = _Stalled(peer.sent, waiting, at.timestamp())

    def _stalled_since(self, id: str) -> float | None:
        found = self._stalled.get(id)
        return found.at if found else None

    def _placed(self, told: Json, entry: LogEntry, said: datetime | None) -> Placed | None:
        """When an entry was written; None where there is no reason to doubt what it says itself.

        What it says must lie between what came before it and the moment at which it was heard.
        Of a message that arrived it is the word of its sender, whom nobody has to believe.
        """
        written, source = moment(told.get("written")), told.get("source")
        if written is not None:
            return Placed(written, source if source in _SOURCES else _SOURCES[0])
        heard, about = time_of(told.get("at")), read_folder.message_of(entry)
        if heard is None:
            return None
        arrived, early = about is not None and about.arrived, self._floor or said
        live = told.get("live") is True
        fits = said is not None and early is not None and (
            _seconds(early, said) <= read_folder.FAR and _seconds(said, heard) <= read_folder.FAR
        )  # fmt: skip
        if live and (arrived or not fits):
            self._floor = heard
            return Placed(heard)
        if not fits or said is None:
            return Placed(min(self._floor or heard, heard), _SOURCES[2])
        if arrived:
            return Placed(said, _SOURCES[1])
        self._floor = said
        return None

    def _stamp(self, seq: int) -> Json:
        placed = self._written.get(seq)
        return {"written": placed.time.timestamp(), "source": placed.source} if placed else {}

    def _peer(self, peer: PeerReport) -> None:
        same = (n for n, each in enumerate(self.peers) if each.id == peer.id)
        place = next(same, len(self.peers))
        if place < PEERS_MOST:
            self.peers[place : place + 1] = [peer]

    def _task(self, task: Task) -> None:
        id = text(task.raw.get("id"))
        if not id:
            return
        self.tasks.pop(id, None)
        self.tasks[id] = task
        while len(self.tasks) > TASKS:
            del self.tasks[next(iter(self.tasks))]


def _seconds(later: datetime, earlier: datetime) -> float:
    """By how much a moment is after another one."""
    return (later - earlier).total_seconds()


FILE = "wire-log.jsonl"

SCHEMA = "acp.wire-log/1"

LARGEST = 128 << 20  # bytes after which the file begins anew with what is known

_HEAD = 4_096

_CHUNK = 1 << 20

_WORD = re.compile(r"[^\w.\-]+")


def recording_folder(key: str) -> Path:
    """Where what is known of the agent of this key is kept; it need not exist."""
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]
    word = _WORD.sub("_", key.partition("://")[2])[:40].strip("._")
    return state_folder() / "wire-seen" / f"{word}-{digest}"


def is_log(folder: Path) -> bool:
    """Whether a folder holds such a file."""
    try:
        descriptor, _ = open_regular(folder / FILE)
    except Unreadable:
        return False
    try:
        line = os.read(descriptor, _HEAD).partition(b"\n")[0]
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return _head(line) is not None


class Reader:
    """The records of a file, read on as it grows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.known = Known()
        self.key = ""
        self.own = False  # made of an agent's own log, not heard of it
        self.newer = False  # a later acp keeps it
        self._seen = (0, 0)  # inode and bytes that were read
        self._rest = b""

    def read(self) -> bool:
        """Read what is new; whether there was anything.

        Raises:
            Unreadable: the file cannot be read.
        """
        descriptor, found = open_regular(self.path)
        try:
            inode, place = self._seen
            if found.st_ino != inode or found.st_size < place:
                self.known, self.key, self._rest, place = Known(), "", b"", 0
                self.own = False
            elif found.st_size == place:
                return False
            os.lseek(descriptor, place, os.SEEK_SET)
            while data := os.read(descriptor, _CHUNK):
                place += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._take(line)
            self._seen = (found.st_ino, place)
        finally:
            os.close(descriptor)
        return True

    def _take(self, line: bytes) -> None:
        head = None if self.key else _head(line)
        if not self.key and head is None:
            self.newer = self.newer or is_newer(_schema(line), SCHEMA)
        if head is not None:
            self.key, self.own = head["key"], head.get("own") is True
            self.known.skip()
            return
        try:
            told = decode(line)
        except WireError:
            told = None
        if isinstance(told, dict):
            self.known.take(told)
        else:
            self.known.skip()


class Writer:
    """Keeps what is observed, where no other process does so already.

    ``problem`` says why nothing is kept; "" while it is.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.folder = recording_folder(key)
        self.problem = ""
        self._lock = -1
        self._file = -1
        self._size = 0

    def open(self) -> Known:
        """Begin; what is known from before."""
        reader = Reader(self.folder)
        try:
            atomic.private_folder(self.folder)
            import fcntl

            self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.problem = "another process uses it"
        except (ImportError, OSError) as error:
            self.problem = getattr(error, "strerror", None) or str(error)
        try:
            reader.read()
        except Unreadable as error:
            if not error.missing:
                self.problem = self.problem or error.reason
        if reader.newer:
            self.problem = self.problem or NEWER
        known = reader.known if reader.key == self._key else Known()
        if not self.problem:
            self._begin(known, fresh=reader.key != self._key)
        return known

    def add(self, records: Iterable[Json], known: Known) -> None:
        """Append records, which ``known`` has taken already."""
        if self._file < 0:
            return
        data = b"".join(encode(each) + b"\n" for each in records)
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(None, "the disk is full")
            self._size += written
            if self._size > LARGEST:
                self._begin(known, fresh=True)
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._let_go()

    def close(self) -> None:
        """Let go of the file."""
        self._let_go()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin(self, known: Known, *, fresh: bool) -> None:
        path = self.folder / FILE
        try:
            if fresh or not _ends_well(path):
                before = os.umask(0o077)
                try:
                    atomic.replace(path, b"".join(_lines(self._key, known)), sync=False)
                finally:
                    os.umask(before)
                known.restart(1)
            self._let_go()
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._let_go()

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lines(key: str, known: Known) -> Iterator[bytes]:
    yield json.dumps({"schema": SCHEMA, "key": key}).encode() + b"\n"
    for each in known.records():
        yield encode(each) + b"\n"


def _schema(line: bytes) -> object:
    try:
        return fields_of(decode(line)).get("schema")
    except WireError:
        return None


def _head(line: bytes) -> Json | None:
    try:
        head = fields_of(decode(line))
    except WireError:
        return None
    fits = head.get("schema") == SCHEMA and text(head.get("key")) is not None
    return head if fits else None


def _ends_well(path: Path) -> bool:
    """Whether a file ends with a whole line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not 0 < size <= LARGEST:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0  # seconds between two tries to reach it
