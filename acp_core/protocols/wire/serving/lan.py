"""Sending and hearing datagrams: UDP multicast, 224.0.0.251 port 5354, two hops at most."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Callable

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.network.lan import Announcement, Heard, Neighbour, write_datagram

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


def said_of(agent: Agent) -> bytes:
    """What an agent says of itself; its token only where that was asked for."""
    config = agent.config
    token = agent.token if config.advertise_token else ""
    said = Announcement(config.name, token, agent.ws_port or 0, agent.http_port or 0)
    return write_datagram(said)


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
