"""What was not recorded, as far as an agent's own log tells it: its states at earlier moments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from acp_core.files.decode import key
from acp_core.model.format import dated
from acp_core.model.past import PastLog
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.read.folder import NOT_KNOWN, RUNNING, Reading, seconds
from acp_core.protocols.wire.read.known import BYTES, ENTRY, FILE, PEER, SCHEMA, TASK, Known
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import (
    MAX_DEPTH,
    Json,
    LogEntry,
    encode,
    time_of,
    too_deep,
)
from acp_core.protocols.wire.schema.bodies import shown_text, text_part
from acp_core.protocols.wire.schema.observed import PeerSeen, Task

NEAR = 1.0  # seconds around an entry within which the agent that wrote it ran

_SHOWN = 2_000  # characters of what a task was asked, and of its artifact

_SHORT = 300  # characters of a field of an entry that is too large to be told whole

_UNKNOWN = "its log does not contain the card, the waiting messages, or whether the agent ran between entries"


def past_log(reading: Reading) -> PastLog | None:
    """The past of the agent of whose folder this is; None where its log holds nothing."""
    if not reading.entries:
        return None
    changes = _Changes(reading)
    data = bytearray(_line({"schema": SCHEMA, "key": reading.name or "agent", "own": True}))
    ends: list[int] = []
    times: list[float | None] = []
    sizes = _affordable(reading.entries)
    for made in changes.before():
        data += _line(made)
    for entry, whole in zip(reading.entries, sizes, strict=True):
        body = folder.body_of(entry)
        placed = reading.written.get(entry.seq)
        written = placed.time.timestamp() if placed else None
        at = _own_time(body) if written is None else written
        moment = {"at": datetime.fromtimestamp(at, UTC).isoformat()} if at is not None else {}
        stamp = {} if written is None else {"written": written}
        head = {**moment, **stamp, "what": ENTRY, "seq": entry.seq, "kind": str(entry.kind)}
        data += _entry_line(head, body, whole)
        for made in changes.after(entry, body):
            data += _line({**moment, **made})
        ends.append(len(data))
        times.append(at)
    return PastLog(FILE, bytes(data), tuple(ends), tuple(times))


def state_then(known: Known, name: str, now: datetime) -> Reading:
    """What records of a past mean as of a moment.

    Args:
        known: the state that they made.
        name: of the agent.
        now: the moment.
    """
    read = known.reading(name, None)
    at = time_of(known.latest)
    near = at is not None and abs((now - at).total_seconds()) <= NEAR
    first = read.entries[0].seq if read.entries else 1
    unknown = _UNKNOWN + (f"; entries before {first} are not read" if first > 1 else "")
    phase = RUNNING if near else NOT_KNOWN
    return replace(read, remote=False, away="", heard=None, then=phase, unknown=unknown)


def state_ended(read: Reading, heard: datetime | None) -> Reading:
    """What was heard of an agent, long after it was heard.

    Args:
        read: what it was.
        heard: when that ended.
    """
    unknown = f"the last contact was {dated(heard)}"
    return replace(read, remote=False, reach=None, away="", then=NOT_KNOWN, unknown=unknown)


class _Changes:
    """What each entry changed: one peer, or one task."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known = {peer.id: peer for peer in reading.peers}
        self._made = {str(task.raw.get("id")): task for task in reading.tasks}
        self._peers: dict[str, Json] = {}
        self._tasks: dict[str, Json] = {}

    def before(self) -> Iterator[Json]:
        """What stood there before the first entry that is read, where there were earlier ones."""
        first = self._reading.entries[0]
        since = time_of(folder.body_of(first).get("ts"))
        if first.seq <= 1 or since is None:
            return
        for peer in self._reading.peers:
            if _earlier(peer.connected_at, since):
                yield self._peer(peer.id, **_stood(peer, since))
        for id, task in self._made.items():
            state = _state_before(task, since)
            if state:
                yield self._task(id, **state)

    def after(self, entry: LogEntry, body: Json) -> Iterator[Json]:
        """What followed from an entry."""
        at, id = body.get("ts"), body.get("task_id")
        if entry.kind == "acp.status" and isinstance(id, str):
            given = {name: body[name] for name in ("direction", "peer_id", "error") if name in body}
            yield self._task(id, status=str(body.get("state")), updated_at=at, **given)
        elif entry.kind == "acp.artifact" and isinstance(id, str):
            artifact = body.get("artifact")
            if isinstance(artifact, dict):
                yield self._task(id, artifact=_short(artifact), updated_at=at)
        elif entry.kind == "acp.peer":
            yield from self._about_peer(body, at)
        elif folder.message_of(entry) and isinstance(body.get("_peer_id"), str):
            peer = str(body["_peer_id"])
            count = "messages_sent" if body.get("_direction") == "out" else "messages_received"
            yield self._peer(peer, **{count: self._peers.get(peer, {}).get(count, 0) + 1})

    def _about_peer(self, body: Json, at: object) -> Iterator[Json]:
        peer, event = body.get("peer_id"), body.get("event")
        if not isinstance(peer, str):
            return
        name = {"name": body["name"]} if isinstance(body.get("name"), str) else {}
        if event == "connected":
            yield self._peer(peer, connected=True, connected_at=at, **name)
        elif event == "disconnected":
            yield self._peer(peer, connected=False, disconnected_at=at, **name)
        elif event in folder.SUSPECT:
            yield self._peer(peer, error=str(body.get("reason"))[:_SHORT], **name)

    def _peer(self, id: str, **fields: object) -> Json:
        seen = self._known.get(id)
        base = self._peers.get(id) or {"id": id, "name": seen.name if seen else id}
        self._peers[id] = base | fields
        return {"what": PEER, "peer": self._peers[id]}

    def _task(self, id: str, **fields: object) -> Json:
        made = self._made.get(id, Task())
        base = self._tasks.get(id) or {
            "id": id,
            "created_at": made.raw.get("created_at"),
            "input": _short(made.raw.get("input")),
            "direction": made.raw.get("direction"),
            "peer_id": made.raw.get("peer_id"),
            "status": NOT_KNOWN,
        }
        self._tasks[id] = base | fields
        return {"what": TASK, "task": self._tasks[id]}


def _earlier(at: object, since: datetime) -> bool:
    said = time_of(at)
    return said is not None and said < since


def _stood(peer: PeerSeen, since: datetime) -> Json:
    on, off = time_of(peer.connected_at), time_of(peer.disconnected_at)
    left = on is not None and off is not None and on <= off < since
    gone = {"disconnected_at": peer.disconnected_at} if left else {}
    return {"connected": not left, "connected_at": peer.connected_at, **gone}


@dataclass(frozen=True, slots=True)
class _Step:
    status: str = key(read=str, default="None")
    at: object = None


@dataclass(frozen=True, slots=True)
class _History:
    history: tuple[_Step, ...] = ()


def _state_before(task: Task, since: datetime) -> Json:
    """The last state that a task says it was in before a time; nothing where it says none."""
    steps = basics.read_as(_History, task.raw).history
    past = [step for step in steps if _earlier(step.at, since)]
    return {"status": past[-1].status, "updated_at": past[-1].at} if past else {}


def _short(value: object) -> Json:
    parts = value.get("parts") if isinstance(value, dict) else None
    return {"parts": [text_part(shown_text(parts)[:_SHOWN])]} if parts else {}


def _affordable(entries: tuple[LogEntry, ...]) -> list[bool]:
    """Which entries are told whole: the latest ones, as far as there is room for them."""
    room, whole = BYTES // 2, []
    for entry in reversed(entries):
        room -= len(entry.body)
        whole.append(room >= 0)
    return whole[::-1]


def _entry_line(head: Json, body: Json, whole: bool) -> bytes:
    if whole and not too_deep(body, MAX_DEPTH - 2):
        try:
            return _line({**head, "body": body})
        except ValueError:  # half of a surrogate pair, or a number that is none
            pass
    plain = {
        name: value
        for name, value in body.items()
        if isinstance(value, str | bool) and len(str(value)) <= _SHORT
    }
    return _line({**head, "body": plain})


def _line(record: Json) -> bytes:
    try:
        return encode(record) + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "replace") + b"\n"


def _own_time(body: Json) -> float | None:
    at = time_of(body.get("ts"))
    return seconds(at.timestamp()) if at else None
