"""Peers, tasks and messages as any agent may tell of them, of whatever make.

``PeerSeen``, ``People`` and ``Task`` are what is relied on of them. Agents of other makes tell in
shapes of their own what the specification tells in one (sections 1, 3.4, 4 and 8.2): ``card``,
``task``, ``peer``, ``message`` and ``event`` bring them into its form, by a table; what has that
form already stays as it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files.decode import flag, key, text, whole
from acp_core.model.text import clean_line, unseen
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import (
    ROLES,
    TERMINAL,
    Json,
    Object,
    TaskState,
    count,
    line_of,
    text_that,
    time_of,
    time_text,
)
from acp_core.protocols.wire.schema.bodies import data_part, in_line, shown_text, text_part


@dataclass(frozen=True, slots=True)
class PeerSeen:
    """A peer as one sees it. ``met``: its card came once, so that something can be sent to it."""

    id: str = ""
    name: str = key(read=text_that(bool), default="?")
    connected: bool = False
    connected_at: str | None = key(read=text_that(bool), default=None)
    disconnected_at: str | None = key(read=text_that(bool), default=None)
    sent: int = key("messages_sent", read=count, default=0)
    received: int = key("messages_received", read=count, default=0)
    signs: bool = False
    met: bool = False
    trouble: str = key("error", default="")


def _timestamp(value: object) -> float | None:
    at = time_of(value)
    return at.timestamp() if at else None


@dataclass(frozen=True, slots=True)
class PeerReport(PeerSeen):
    """A peer as an agent reports it; ``queued_since`` is in seconds since 1970."""

    queued: int = key(read=count, default=0)
    queued_since: float | None = key(read=_timestamp, default=None)
    raw: Object = whole()


UNKNOWN = "unknown sender"
"""Who sent what came over no peer's channel, and what no pinned key signed: its name is only claimed."""

PERSON = "human"
"""Who sends where the agent's owner writes to the agent itself."""

CLAIMED, NOTE = "_claimed_from", "_problem"
"""Fields of a message as programs get it: the name that it bears, and what is missing to prove it."""


class People(NamedTuple):
    """Who is known to an agent.

    Attributes:
        own: the agent's name.
        called: what each peer is called, by its id: with the id where others are called the same.
        names: all their names, folded (see `folded`).
    """

    own: str = ""
    called: tuple[tuple[str, str], ...] = ()
    names: frozenset[str] = frozenset()

    def of(self, id: object) -> str:
        """What a peer is called; "" where it is not known."""
        return next((name for each, name in self.called if each == id), "")


class Sender(NamedTuple):
    """Who sent a message.

    Attributes:
        name: the peer's, or `UNKNOWN`.
        claimed: another name that the message bears; "" where it bears none.
        unowned: nobody else is known to be called so.
    """

    name: str
    claimed: str = ""
    unowned: bool = False

    @property
    def words(self) -> str:
        """The name, with the claimed one beside it."""
        return f"{self.name} (says it is {self.claimed})" if self.claimed else self.name


def folded(name: object) -> str:
    """A name as people read it: names that look the same fold to the same (Unicode, NFKC)."""
    text = str(name or "")
    if not text.isascii():
        hidden = set(unseen(text))
        text = unicodedata.normalize("NFKC", "".join(each for each in text if each not in hidden))
    return " ".join(text.casefold().split())


def people(own: str, names: Mapping[str, str]) -> People:
    """Who is known, of the agent's name and its peers' names by their ids."""
    called = tuple((id, called_as(own, names.values(), name, id)) for id, name in names.items())
    return People(own, called, frozenset(map(folded, (own, *names.values()))))


def called_as(own: str, names: Iterable[str], name: str, id: str) -> str:
    """What a peer is called: its name, with its id where another one is called so, or the agent itself."""
    plain = folded(name)
    alone = plain != folded(own) and sum(folded(each) == plain for each in names) < 2
    return name if alone else f"{name} ({id})"


def sender(body: Json, known: People) -> Sender:
    """Who sent a message.

    Args:
        body: the envelope, with the receiver's flags.
        known: who is known now.
    """
    said = str(body.get("from") or "")
    if body.get("_direction") == "out":
        return Sender(said or known.own)
    noted = body.get("_sender")
    id = body.get("_peer_id") or body.get("_proven")
    if isinstance(id, str):
        called = known.of(id) or (noted if isinstance(noted, str) else "")
        if body.get("_other_name"):
            return Sender(called or UNKNOWN, said)
        return Sender(called if called and (noted or called.startswith(f"{said} (")) else said)
    if body.get("_other_name"):
        return Sender(noted if isinstance(noted, str) else UNKNOWN, said)
    if noted == UNKNOWN:
        return Sender(UNKNOWN, said, unowned=True)
    if "_peer_id" in body and not body.get("_bridge") and folded(said) in known.names:
        return Sender(UNKNOWN, said)
    return Sender(said)


def handed_on(envelope: Json, flags: Json, known: People) -> Json:
    """A message as programs get it: its ``from`` is who sent it; what it claims stands beside it."""
    found = sender({**envelope, **flags}, known)
    made = {**envelope, "from": found.name} if "from" in envelope or found.claimed else {**envelope}
    if found.claimed:
        made[CLAIMED] = found.claimed
    if missing := unsigned(flags):
        made[NOTE] = missing
    return made


def unsigned(flags: Json) -> str:
    """That a message bears no signature although its sender signs; "" where nothing is missing."""
    who = flags.get("_ed25519_missing")
    return f"not signed, though {who} signs" if isinstance(who, str) else ""


_KNOWN = {state.value for state in TaskState}

_OVER = {state.value for state in TERMINAL}

_LONG = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What holds parts: an input, an artifact."""

    parts: object = None

    @property
    def text(self) -> str:
        """What a reader sees of it."""
        return shown_text(self.parts)


@dataclass(frozen=True, slots=True)
class Task:
    """A task. Its id, status and direction are safe to show.

    Attributes:
        updated_at: as its maker wrote it; see `since`.
        raw: all that it holds.
    """

    id: str = key(read=line_of(300), default="None")
    status: str = key(read=line_of(20), default="None")
    direction: str = key(read=line_of(20), default="")
    peer_id: str = ""
    updated_at: str = ""
    error: str = key(read=str, default="")
    input: Content = Content()
    artifact: Content | None = None
    raw: Object = whole()

    @property
    def is_whole(self) -> bool:
        """Something can be done with it: it is called something, and is in a known state."""
        return self.raw.get("id") == self.id != "" and self.status in _KNOWN

    @property
    def is_open(self) -> bool:
        """Something can still follow."""
        return self.status not in _OVER

    @property
    def asks_us(self) -> bool:
        """It waits for an answer of the person here."""
        return self.status == "input_required" and self.direction != "received"

    @property
    def since(self) -> datetime | None:
        """When it changed last."""
        return time_of(self.updated_at)

    @property
    def about(self) -> str:
        """What it is about, safe to show."""
        return clean_line(in_line(self.input.text), _LONG)

    @property
    def sentence(self) -> str:
        """Its id, where it stands, and what it is about, in a line."""
        return f"{self.id}, {self.status}" + (f": {self.about}" if self.about else "")

    def is_orphan(self, met: Container[str]) -> bool:
        """It is open and went to a peer that is not known any more: nobody reports on it.

        Args:
            met: ids of the peers to whom something can be sent.
        """
        return self.is_open and self.direction == "delegated" and self.peer_id not in met


PARTIAL = "_partial"  # set on a message of which an event tells only a part

_DEEP = 4  # payloads inside each other

_MOST = 1000  # parts, or items of a list


class Shape(NamedTuple):
    """A field of the specification, and where it was seen to stand.

    Attributes:
        name: as the specification calls it.
        places: where it was seen, the specification's own first; a dot leads inside an object.
        read: makes the specification's form of what stands there; None where it is none.
    """

    name: str
    places: tuple[str, ...]
    read: Callable[[Any], Any]


_text = basics.text_that(bool)  # one that says something


def _time(value: Any) -> str | None:
    """A time as text: ISO 8601, or seconds (or milliseconds) since 1970."""
    if isinstance(value, str):
        return value if time_of(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    try:
        return time_text(datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _error(value: Any) -> str | None:
    told = value.get("message") or value.get("error") if isinstance(value, dict) else value
    return _text(told)


def _way(value: Any) -> str | None:
    ways = {"out": "out", "outbound": "out", "sent": "out", "in": "in", "inbound": "in"}
    return ways.get(text(value) or "")


def _whose(value: Any) -> str | None:
    """Who asked for a task: ``from_peer`` says that another agent did."""
    if value is True:
        return "received"
    return value if value in ("received", "delegated", "own") else None


def _skills(value: Any) -> list[Json] | None:
    """Skills as objects; older agents list their ids."""
    if not isinstance(value, list):
        return None
    named = [{"id": each, "name": each} if isinstance(each, str) else each for each in value]
    return basics.objects(named)


_PART = (
    Shape("content", ("content", "text", "data"), lambda value: value),
    Shape("url", ("url", "uri", "file.url", "file.uri"), _text),
    Shape("media_type", ("media_type", "mime_type", "mimeType"), _text),
    Shape("filename", ("filename", "name"), _text),
)


def _part(value: Any) -> Json | None:
    if isinstance(value, str):
        return text_part(value)
    if not isinstance(value, dict):
        return None
    kind = value.get("type") or value.get("kind")
    if kind in ("text", "data"):
        return {**value, "type": kind, **_taken(value, _PART[:1])}
    return {**value, "type": kind, **_taken(value, _PART[1:])} if kind == "file" else value


def _parts(value: Any) -> list[Json] | None:
    """Parts, of whatever says something."""
    found = _content(value)
    return found["parts"] if found else None


def _content(value: Any, deep: int = _DEEP) -> Json | None:
    """What holds parts: an input, an artifact; None where nothing is said."""
    if value is None or value in ("", [], {}) or not deep:
        return None
    if isinstance(value, str):
        return {"parts": [text_part(value)]}
    if isinstance(value, list):
        return _several(value[:_MOST], deep)
    if not isinstance(value, dict):
        return {"parts": [data_part(value)]}
    if isinstance(value.get("parts"), list):
        return {
            **value,
            "parts": [each for each in map(_part, value["parts"][:_MOST]) if each is not None],
        }
    if value.get("type") in ("text", "data", "file") or "kind" in value:
        return {"parts": [_part(value) or value]}
    for name in ("text", "content", "input", "payload", "message", "artifact", "output"):
        inside = _content(value.get(name), deep - 1)
        if inside:
            return inside
    return {"parts": [data_part(value)]}


def _several(values: list[Any], deep: int) -> Json | None:
    made = [_content(each, deep - 1) for each in values]
    parts = [part for each in made if each for part in each["parts"]]
    return {"parts": parts[:_MOST]} if parts else None


_CARD = (Shape("skills", ("skills",), _skills),)

_TASK = (
    Shape("id", ("id", "task_id"), _text),
    Shape("status", ("status", "state"), _text),
    Shape("created_at", ("created_at",), _time),
    Shape("updated_at", ("updated_at", "created_at"), _time),
    Shape("input", ("input", "payload", "parts", "text", "message"), _content),
    Shape("artifact", ("artifact", "artifacts", "output", "result"), _content),
    Shape("error", ("error",), _error),
    Shape("message_id", ("message_id", "origin_message_id"), _text),
    Shape("direction", ("direction", "from_peer"), _whose),
)

_PEER = (
    Shape("id", ("id", "peer_id"), _text),
    Shape("name", ("name", "agent_name", "agent_card.name", "agent_card.self.name"), _text),
    Shape("connected", ("connected", "ws_ready"), flag),
    Shape("connected_at", ("connected_at",), _time),
    Shape("disconnected_at", ("disconnected_at",), _time),
)

_MESSAGE = (
    Shape("message_id", ("message_id", "id", "raw.message_id", "raw.id"), _text),
    Shape("ts", ("ts", "timestamp", "raw.ts", "received_at", "created_at"), _time),
    Shape("from", ("from", "raw.from", "from_agent", "sender", "from_name"), _text),
    Shape("role", ("role", "raw.role"), lambda value: value if value in ROLES else None),
    Shape("parts", ("parts", "raw.parts", "text", "content", "payload", "message"), _parts),
    Shape("task_id", ("task_id", "raw.task_id"), _text),
    Shape("context_id", ("context_id", "raw.context_id"), _text),
    Shape("_direction", ("_direction", "direction", "raw.direction"), _way),
)

_ABOUT_TASK = (
    Shape("task_id", ("task_id", "task.id", "task.task_id", "id"), _text),
    Shape("ts", ("ts", "timestamp", "updated_at", "task.updated_at"), _time),
)

_STATUS = (
    *_ABOUT_TASK,
    Shape("state", ("state", "status", "task.status", "task.state"), _text),
    Shape("error", ("error", "task.error"), _error),
)

_ARTIFACT = (
    *_ABOUT_TASK,
    Shape("artifact", ("artifact", "artifacts", "task.artifact", "task.artifacts"), _content),
)

_SEEN_PEER = (
    Shape("peer_id", ("peer_id", "session_id", "peer.id"), _text),
    Shape("name", ("name", "peer_name", "agent_name", "peer.name"), _text),
    Shape("event", ("event", "state", "status"), _text),
    Shape("ts", ("ts", "timestamp"), _time),
)

_KINDS = {
    "message": "acp.message",
    "reply": "acp.reply",
    "status": "acp.status",
    "task": "acp.status",
    "task.status": "acp.status",
    "task.updated": "acp.status",
    "acp.task": "acp.status",
    "acp.task.status": "acp.status",
    "acp.task.updated": "acp.status",
    "artifact": "acp.artifact",
    "task.artifact": "acp.artifact",
    "acp.task.artifact": "acp.artifact",
    "peer": "acp.peer",
}
"""What other agents call an event, in its name or in the ``type`` of its data."""

_EVENTS: dict[str, tuple[Shape, ...]] = {
    "acp.message": _MESSAGE,
    "acp.reply": _MESSAGE,
    "acp.status": _STATUS,
    "acp.artifact": _ARTIFACT,
    "acp.peer": _SEEN_PEER,
}

_WHOLE = ("message_id", "ts", "from", "role", "parts")


def _taken(fields: Json, shapes: tuple[Shape, ...]) -> Json:
    """The fields of a table, each from the first place that has it."""
    made: Json = {}
    for shape in shapes:
        found = (shape.read(_at(fields, place)) for place in shape.places)
        value = next((each for each in found if each is not None), None)
        if value is not None:
            made[shape.name] = value
    return made


def _at(fields: Json, place: str) -> Any:
    value: Any = fields
    for name in place.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def card(told: Json) -> Json:
    """An AgentCard, flat; older agents wrap it in ``self``."""
    fields = basics.inside(told, "self", unless="name")
    return {**fields, **_taken(fields, _CARD)}


def task(told: Json) -> Json:
    """A task; some answers wrap it in ``task``."""
    fields = basics.inside(told, "task", unless="id")
    return {**fields, **_taken(fields, _TASK)}


def peer(told: Json) -> Json:
    """A peer."""
    return {**told, **_taken(told, _PEER)}


def message(told: Json) -> Json:
    """A message as a list of messages has it, or an event of a stream."""
    return event("acp.message", told)[1]


def event(name: str, told: Json) -> tuple[str, Json]:
    """An event of a stream: its kind, and what it says.

    Args:
        name: what the stream calls it; "message" where it says nothing.
        told: its data, in which ``type`` may say it better.
    """
    said = text(told.get("type")) or ""
    kind = name if name in _EVENTS else _KINDS.get(said, "")
    kind = kind or (said if said in _EVENTS else _KINDS.get(name, name))
    told = {name: value for name, value in told.items() if name != PARTIAL}
    if kind not in _EVENTS or (name == said == kind):
        return kind, told
    body = {**told, "type": kind, **_taken(told, _EVENTS[kind])}
    if _EVENTS[kind] is _MESSAGE and any(field not in body for field in _WHOLE):
        body[PARTIAL] = True
    return kind, body


def number(told: Json) -> int:
    """The place of an event in its agent's log where only its data says it; 0 where nothing does."""
    return basics.count(told.get("seq")) or basics.count(told.get("server_seq")) or 0
