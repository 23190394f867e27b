"""What is known of an agent elsewhere: the sum of what it said, record after record.

A record is one JSON object: what was observed, ``what`` it is, and when (``at``). The same records
make the same state, whether they come from the network or from a file, so that the past can be
shown by the rules of the present.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.protocols.wire.read.folder import (
    EVENTS,
    TASKS,
    PeerSeen,
    Placed,
    Queue,
    Reach,
    Reading,
    moment,
)
from acp_core.protocols.wire.schema import Json, lenient, now_text, time_of
from acp_core.protocols.wire.schema.decode import encode
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
        signs = isinstance(card, dict) and bool(card.get("identity"))
        plain = {name: peer[name] for name in _PEER if peer.get(name) is not None}
        kept.append({**plain, "signs": signs, "met": card is not None})
    return kept


class _Standing(NamedTuple):
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
        self.said: object = None  # when the last record was made
        self.lost: object = None  # when it was first found not to answer
        self.last = 0  # the highest number of an entry
        self.peers: list[Json] = []
        self.tasks: dict[str, Task] = {}
        self._entries: list[Entry] = []
        self._ends: list[int] = []  # for each entry the line up to which what followed it stands
        self._bytes = 0
        self._lines = 0
        self._written: dict[int, Placed] = {}
        self._floor: datetime | None = None  # the latest time of an entry, as far as it is known
        self._standing: dict[str, _Standing] = {}
        self.pause = 0.0  # seconds between two questions, where nothing is told by itself

    def take(self, told: Json) -> None:
        """One more record; one that is none counts as a line and changes nothing."""
        self._lines += 1
        self.said = told.get("at")
        what = told.get("what")
        if what == ENTRY:
            self._entry(told)
        elif what == CARD and isinstance(told.get("card"), dict):
            self.card = told["card"]
        elif what == PEERS and isinstance(told.get("peers"), list):
            self.peers = [each for each in told["peers"] if isinstance(each, dict)]
            self._stand(time_of(told.get("at")))
        elif what == PEER and isinstance(told.get("peer"), dict):
            self._peer(told["peer"])
        elif what == TASK and isinstance(told.get("task"), dict):
            self._task(told["task"])
        elif what == AWAY:
            self.away = str(told.get("why") or "")
            self.lost = (self.lost or told.get("at")) if self.away else None
        elif what == ANEW:
            self._entries, self._ends, self._bytes, self.last = [], [], 0, 0
            self._written, self._floor = {}, None
            self.tasks = {}
        if what != AWAY and self.card:  # without its card, it never answered
            self.heard = told.get("at")
        if self._ends:
            self._ends[-1] = self._lines

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
        made = [record(CARD, card=self.card), record(PEERS, peers=self.peers)]
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
        own = self.card.get("name")
        latest = sorted(self.tasks.values(), key=lambda task: task.updated_at, reverse=True)
        queues = {
            id: Queue(count(peer.get("queued")), _since(peer), self._stood(id))
            for peer in self.peers
            for id in [_text(peer.get("id"))]
            if count(peer.get("queued"))
        }
        return Reading(
            name=own if isinstance(own, str) and own.strip() else name,
            reach=reach,
            card=self.card,
            entries=tuple(self._entries),
            written=dict(self._written),
            tasks=tuple(latest),
            peers=tuple(map(_peer, self.peers)),
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
        if not isinstance(seq, int) or isinstance(seq, bool) or seq <= self.last:
            return
        if not isinstance(kind, str) or not isinstance(body, dict):
            return
        self.last = seq
        task = body.get("task_id")
        made = Entry(seq, kind, task if isinstance(task, str) else None, encode(body))
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

    def _stand(self, at: datetime | None) -> None:
        """Note since when nothing of what waits for a peer was acknowledged."""
        before, self._standing = self._standing, {}
        for peer in self.peers:
            id, waiting = _text(peer.get("id")), count(peer.get("queued"))
            sent, last = count(peer.get("messages_sent")), before.get(id)
            if waiting and last and last.sent == sent and last.waiting <= waiting:
                self._standing[id] = last._replace(waiting=waiting)
            elif waiting and at:
                self._standing[id] = _Standing(sent, waiting, at.timestamp())

    def _stood(self, id: str) -> float | None:
        found = self._standing.get(id)
        return found.at if found else None

    def _placed(self, told: Json, entry: Entry, said: datetime | None) -> Placed | None:
        """When an entry was written; None where there is no reason to doubt what it says itself.

        What it says must lie between what came before it and the moment at which it was heard.
        Of a message that arrived it is the word of its sender, whom nobody has to believe.
        """
        written, source = moment(told.get("written")), told.get("source")
        if written is not None:
            return Placed(written, source if source in _SOURCES else _SOURCES[0])
        heard, about = time_of(told.get("at")), timeline.said(entry)
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

    def _peer(self, peer: Json) -> None:
        same = (n for n, each in enumerate(self.peers) if each.get("id") == peer.get("id"))
        place = next(same, len(self.peers))
        if place < PEERS_MOST:
            self.peers[place : place + 1] = [peer]

    def _task(self, task: Json) -> None:
        id = task.get("id")
        if not isinstance(id, str) or not id:
            return
        self.tasks.pop(id, None)
        self.tasks[id] = lenient.read(Task, task)
        while len(self.tasks) > TASKS:
            del self.tasks[next(iter(self.tasks))]


def _peer(peer: Json) -> PeerSeen:
    return PeerSeen(
        _text(peer.get("id")),
        _text(peer.get("name")) or "?",
        peer.get("connected") is True,
        _text(peer.get("connected_at")) or None,
        _text(peer.get("disconnected_at")) or None,
        count(peer.get("messages_sent")),
        count(peer.get("messages_received")),
        signs=peer.get("signs") is True,
        met=peer.get("met") is True,
        trouble=_text(peer.get("error")),
    )


def _since(peer: Json) -> float | None:
    at = time_of(peer.get("queued_since"))
    return at.timestamp() if at else None


def _seconds(later: datetime, earlier: datetime) -> float:
    """By how much a moment is after another one."""
    return (later - earlier).total_seconds()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """A number that somebody said, where it is one that counts something; else 0."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15
    return value if whole and isinstance(value, int) else 0
