"""What is known of an agent elsewhere: the sum of what it said, record after record.

A record is one JSON object: what was observed, ``what`` it is, and when (``at``). The same records
make the same state, whether they come from the network or from a file, so that the past can be
shown by the rules of the present.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.files.decode import text
from acp_core.protocols.wire.read.folder import (
    EVENTS,
    TASKS,
    Placed,
    Queue,
    Reach,
    Reading,
    moment,
)
from acp_core.protocols.wire.schema import Json, lenient, now_text, time_of
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.schema.lenient import Object, fields_of
from acp_core.protocols.wire.schema.peers import PeerReport
from acp_core.protocols.wire.schema.tasks import Task
from acp_core.protocols.wire.view import timeline
from acp_core.protocols.wire.write.database import Entry

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
        self._entries: list[Entry] = []
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
            self._change(what, lenient.read(_Record, told))
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
                   body=timeline.body_of(each))
            for each in self._entries
        ]  # fmt: skip
        made += [record(TASK, task=task.raw) for task in self.tasks.values()]
        return [*made, record(AWAY, why=self.away)] if self.away else made

    def holds(self, task: Json) -> bool:
        """Whether a task is known as it is."""
        known = self.tasks.get(str(task.get("id")))
        return known is not None and known.raw == task

    @property
    def entries(self) -> tuple[Entry, ...]:
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
        made = Entry(seq, kind, text(body.get("task_id")), encode(body))
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

    def _placed(self, told: Json, entry: Entry, said: datetime | None) -> Placed | None:
        """When an entry was written; None where there is no reason to doubt what it says itself.

        What it says must lie between what came before it and the moment at which it was heard.
        Of a message that arrived it is the word of its sender, whom nobody has to believe.
        """
        written, source = moment(told.get("written")), told.get("source")
        if written is not None:
            return Placed(written, source if source in _SOURCES else _SOURCES[0])
        heard, about = time_of(told.get("at")), timeline.message_of(entry)
        if heard is None:
            return None
        arrived, early = about is not None and about.arrived, self._floor or said
        live = told.get("live") is True
        fits = said is not None and early is not None and (
            _seconds(early, said) <= timeline.FAR and _seconds(said, heard) <= timeline.FAR
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
