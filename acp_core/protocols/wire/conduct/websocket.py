"""Binding A: WebSocket (core specification, section 7)."""

from __future__ import annotations

import asyncio
import hmac
import random
import socket
import time
from http import HTTPStatus

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.http11 import Request, Response

from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.peers import Peer
from acp_core.protocols.wire.conduct.session import PeerRefused, Session, guest
from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.network.channels import Channel, ChannelClosed
from acp_core.protocols.wire.network.links import Link
from acp_core.protocols.wire.schema.basics import ERROR, Code, WireError
from acp_core.protocols.wire.schema.untrusted_json import encode

KEEPALIVE = 15.0  # seconds between pings, and within which one is answered

SLACK = 65536  # bytes of a frame beyond the largest message

BEYOND = 16 << 20  # bytes up to which a larger one is refused alone; beyond, the connection ends

QUEUE = 4  # frames that have come and were not looked at; the sender waits beyond

BACKLOG = 128

GUESTS = 64  # connections beyond those of known peers


class WebSocketChannel:
    """A WebSocket as a `Channel`.

    Args:
        limit: bytes of a frame; a larger one is refused alone.
    """

    rewrites = False

    def __init__(self, connection: Connection, limit: int) -> None:
        self._socket = connection
        self._limit = limit

    async def send(self, text: str) -> None:
        """See `Channel.send`."""
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise ChannelClosed(_reason(error)) from None

    async def receive(self) -> str:
        """See `Channel.receive`. Bytes are taken as UTF-8."""
        try:
            data = await self._socket.recv()
        except ConnectionClosed as error:
            raise ChannelClosed(_reason(error)) from None
        if self._too_large(data):
            raise WireError(Code.TOO_LARGE, "the frame is too large", max_bytes=self._limit - SLACK)
        return data if isinstance(data, str) else data.decode("utf-8", "replace")

    async def flushed(self) -> None:
        """See `Channel.flushed`: the answer to a ping comes after what was sent before it."""
        try:
            await (await self._socket.ping())
        except ConnectionClosed as error:
            raise ChannelClosed(_reason(error)) from None

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        await self._socket.close(1000, reason[:100])

    def _too_large(self, data: str | bytes) -> bool:
        if isinstance(data, str) and self._limit // 4 < len(data) <= self._limit:
            return len(data.encode()) > self._limit
        return len(data) > self._limit


async def dial_websocket(agent: Agent, link: Link) -> WebSocketChannel:
    """Connect to the agent behind a link.

    Raises:
        ChannelClosed: it cannot be reached.
    """
    limit = agent.config.limits.message + SLACK
    try:
        connection = await connect(
            link.websocket,
            proxy=None,
            compression=None,
            open_timeout=10,
            close_timeout=2,
            ping_interval=KEEPALIVE,
            ping_timeout=KEEPALIVE,
            max_size=limit + BEYOND,
            max_queue=QUEUE,
        )
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, ValueError) as error:
        raise ChannelClosed(str(error) or type(error).__name__) from None
    return WebSocketChannel(connection, limit)


async def listen(agent: Agent, where: socket.socket) -> Server:
    """Take connections of peers at a socket that is bound."""
    limit = agent.config.limits.message + SLACK

    async def taken(connection: ServerConnection) -> None:
        if len(connection.server.connections) > agent.config.limits.peers + GUESTS:
            await connection.close(1013, "too many connections")
            return
        request = connection.request
        if request is None or not _knows_token(agent, request.path):
            await connection.send(encode({"type": ERROR, "code": "invalid_token"}).decode())
            return
        # Only who knows the token may fill so much memory before it is told that it is too much.
        _take_more(connection, limit + BEYOND)
        await guest(agent, WebSocketChannel(connection, limit))

    return await serve(
        taken,
        sock=where,
        compression=None,
        process_request=_no_browser,
        open_timeout=10,
        close_timeout=2,
        ping_interval=KEEPALIVE,
        ping_timeout=KEEPALIVE,
        max_size=limit,
        max_queue=QUEUE,
        backlog=BACKLOG,
    )


async def _no_browser(connection: ServerConnection, request: Request) -> Response | None:
    """A web page may open WebSockets to this machine, and its browser says so: none is let in."""
    await asyncio.sleep(0)
    if request.headers.get("Origin"):
        return connection.respond(HTTPStatus.FORBIDDEN, "no web pages\n")
    return None


def _knows_token(agent: Agent, path: str) -> bool:
    return hmac.compare_digest(path.strip("/").encode(), agent.token.encode())


def _take_more(connection: Connection, limit: int) -> None:
    for name in ("max_message_size", "max_size"):  # as the library's versions call it
        if hasattr(connection.protocol, name):
            setattr(connection.protocol, name, limit)
            return


def _reason(error: ConnectionClosed) -> str:
    frame = error.rcvd or error.sent
    return (frame.reason or f"closed with code {frame.code}") if frame else "the connection broke"


FIRST, LONGEST = 0.1, 15.0  # seconds between two tries

STEADY = 5.0  # seconds after which a connection counts as a good one


async def keep_connected(agent: Agent, peer: Peer) -> None:
    """Connect to a peer whenever there is no connection with it, as long as that is wanted."""
    pause = FIRST
    while now := agent.peers.dialled_by(asyncio.current_task(), peer):
        peer = now
        await peer.alone.wait()
        began = time.monotonic()
        try:
            channel = await _dial(agent, links.parse_any(peer.row.link or ""))
            await Session(agent, channel, peer).run()
        except (ChannelClosed, PeerRefused, links.LinkError) as error:
            peer.trouble = str(error)
        if time.monotonic() - began > STEADY:
            pause = FIRST
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST)


async def _dial(agent: Agent, link: links.AnyLink) -> Channel:
    """A connection over the binding that the link names."""
    from acp_core.protocols.wire.conduct import http_dialing, relay, streams

    if isinstance(link, links.HttpLink):
        return await http_dialing.dial(agent, link)
    if isinstance(link, links.RelayLink):
        return await relay.dial_relay(agent, link)
    return await (
        streams.dial_tcp(agent, link) if link.scheme == "tcp" else dial_websocket(agent, link)
    )
