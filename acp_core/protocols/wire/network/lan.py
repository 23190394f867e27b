"""Agents on the local network (core specification, section 6.4): announced and heard.

Datagrams go by UDP multicast to 224.0.0.251, port 5354, two hops at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.network.links import Link, authority, is_token
from acp_core.protocols.wire.schema.basics import (
    Json,
    WireError,
    decode_object,
    encode,
    is_name,
    time_text,
)

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


logger = logging.getLogger("acp.wire")

GROUP, PORT = "224.0.0.251", 5354

HOPS = 2

EVERY = 30.0  # seconds between two announcements

RATE = 200  # datagrams a second that are looked at


class NoMulticast(NetworkError):
    """The network cannot be used for this; the message is one line."""


class Listener(asyncio.DatagramProtocol):
    """Keeps what is heard.

    Args:
        heard: where it is kept.
        told: called with an agent that is new, or says something new.
        own: what our own agent says, which is not to be found itself.
    """

    def __init__(
        self, heard: Heard, told: Callable[[Neighbour], None] | None = None, own: bytes = b""
    ) -> None:
        self._heard = heard
        self._told = told
        self._own = own
        self._second, self._count = 0, 0

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """See asyncio. A flood is passed over."""
        if data == self._own:
            return
        now = time.time()
        if int(now) != self._second:
            self._second, self._count = int(now), 0
        self._count += 1
        if self._count > RATE:
            return
        found = self._heard.add(data, addr[0], now)
        if found and self._told:
            self._told(found)

    def error_received(self, error: Exception) -> None:
        """See asyncio: the network has gone, and may come back."""
        logger.info("the local network: %s", error)


@contextlib.asynccontextmanager
async def listening(listener: Listener, interface: str = "") -> AsyncIterator[None]:
    """Hear what agents say.

    Args:
        interface: the address of the interface; "" for the usual one.

    Raises:
        NoMulticast: that is not possible.
    """
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: listener, sock=_made(lambda made: _to_hear(made, interface))
    )
    try:
        yield
    finally:
        transport.close()


async def announce(data: bytes, interface: str = "") -> None:
    """Say a datagram now and every half minute, until cancelled.

    Raises:
        NoMulticast: that is not possible.
    """
    with _made(lambda made: _to_say(made, interface)) as made:
        while True:
            try:
                made.sendto(data, (GROUP, PORT))
            except OSError as error:
                logger.info("the local network: %s", error)
            await asyncio.sleep(EVERY * random.uniform(0.95, 1.0))


def _to_hear(made: socket.socket, interface: str) -> None:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((GROUP, PORT))
    member = socket.inet_aton(GROUP) + socket.inet_aton(interface or "0.0.0.0")
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)


def _to_say(made: socket.socket, interface: str) -> None:
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOPS)
    if interface:
        where = socket.inet_aton(interface)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, where)


def _made(prepare: Callable[[socket.socket], None]) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        prepare(made)
    except OSError as error:
        made.close()
        raise NoMulticast(f"the local network cannot be used: {error.strerror}") from None
    return made
