"""Finding agents on the local network (core specification, section 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.protocols.wire.network.links import Link, authority, is_token
from acp_core.protocols.wire.schema.basics import Json, WireError, is_name, time_text
from acp_core.protocols.wire.schema.untrusted_json import decode_object, encode

MARK = b"ACP1"

LARGEST = 1024  # bytes

FORGOTTEN = 120.0  # seconds after the last datagram of an agent

MOST = 256  # agents that are remembered

MOST_OF_ONE = 16  # of one address


class Announcement(NamedTuple):
    """What an agent says. ``token`` is "" where it keeps it to itself."""

    name: str
    token: str
    ws_port: int
    http_port: int


def write_datagram(said: Announcement) -> bytes:
    """The datagram. A name that is too long for one is cut."""
    name = said.name
    while True:
        body = {"v": 1, "name": name, "tok": said.token, "wp": said.ws_port, "hp": said.http_port}
        data = MARK + encode(body)
        if len(data) <= LARGEST:
            return data
        name = name[:-1]


def read_datagram(data: bytes) -> Announcement | None:
    """What a datagram says; None where it is none, or says what cannot be."""
    if not data.startswith(MARK) or len(data) > LARGEST:
        return None
    try:
        fields = decode_object(data[len(MARK) :])
    except WireError:
        return None
    name, token = fields.get("name"), fields.get("tok", "")
    ports = fields.get("wp"), fields.get("hp")
    if fields.get("v") != 1 or isinstance(fields["v"], bool) or not is_name(name):
        return None
    if not all(type(port) is int and 0 < port < 65536 for port in ports):
        return None
    if not isinstance(token, str) or (token and not is_token(token)):
        return None
    return Announcement(str(name), token, *map(int, map(str, ports)))


@dataclass(slots=True)
class Neighbour:
    """An agent that was heard of. ``seen``: when last, in seconds since 1970."""

    said: Announcement
    address: str
    seen: float

    @property
    def link(self) -> str | None:
        """Its link, where it told its token."""
        said = self.said
        return str(Link("acp", self.address, said.ws_port, said.token)) if said.token else None

    def as_json(self) -> Json:
        """As ``GET /discover`` tells it."""
        said = self.said
        return {
            "name": said.name,
            "token": said.token or None,
            "link": self.link,
            "ip": self.address,
            "ws_port": said.ws_port,
            "http_port": said.http_port,
            "http_url": f"http://{authority(self.address, said.http_port)}",
            "seen_at": time_text(datetime.fromtimestamp(self.seen, UTC)),
        }


class Heard:
    """The agents that were heard of lately; bounded, whoever sends how much.

    A host on the network can fill its own share of the table, and that alone.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], Neighbour] = {}

    def add(self, data: bytes, address: str, now: float) -> Neighbour | None:
        """Take a datagram; the agent where it was not known so before."""
        said = read_datagram(data)
        if said is None:
            return None
        self.forget(now)
        key = (address, said.ws_port)
        known = self._known.get(key)
        if known:
            changed, known.said, known.seen = known.said != said, said, now
            return known if changed else None
        of_one = [place for place in self._known if place[0] == address]
        if len(of_one) >= MOST_OF_ONE:
            del self._known[min(of_one, key=lambda place: self._known[place].seen)]
        elif len(self._known) >= MOST:
            return None
        made = self._known[key] = Neighbour(said, address, now)
        return made

    def forget(self, now: float) -> None:
        """Drop who was not heard of for too long."""
        for key, known in list(self._known.items()):
            if now - known.seen > FORGOTTEN:
                del self._known[key]

    def listed(self, now: float) -> list[Json]:
        """All of them as ``GET /discover`` tells them, in the order in which they came up."""
        self.forget(now)
        return [known.as_json() for known in self._known.values()]
