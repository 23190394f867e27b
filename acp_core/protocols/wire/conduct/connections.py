"""Bindings A (WebSocket) and E (TCP), and programs over pipes (core specification, section 7).

The specification leaves open how a connection over TCP begins. Here the first line of whoever
connects is ``{"type":"acp.hello","token":"..."}`` with the token of the link; from then on both
sides send what they send over any binding, one frame per line. ``keep_connected`` dials again
what broke, by whichever binding its link names.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import random
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.http11 import Request, Response

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.conduct.peers import Peer
from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.network.channels import SLACK, Channel, ChannelClosed, LineChannel
from acp_core.protocols.wire.network.links import Link
from acp_core.protocols.wire.schema.basics import (
    ERROR,
    HELLO,
    Code,
    WireError,
    decode_object,
    encode,
)

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent import Agent

from acp_core.protocols.wire.conduct.session import PeerRefused, Session, guest

logger = logging.getLogger("acp.wire")

OPENING = 10.0  # seconds for a connection to be there

_ALIVE = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 15),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 30_000),
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
)


async def dial_tcp(agent: Agent, link: Link) -> LineChannel:
    """Connect to the agent behind a ``tcp://`` link.

    Raises:
        ChannelClosed: it cannot be reached.
    """
    limit = agent.config.limits.message + SLACK
    try:
        async with asyncio.timeout(OPENING):
            reader, writer = await asyncio.open_connection(link.host, link.port, limit=limit)
    except TimeoutError:
        raise ChannelClosed("it does not answer") from None
    except (OSError, ValueError) as error:
        raise ChannelClosed(str(error) or type(error).__name__) from None
    _keep_alive(writer)
    channel = LineChannel(reader, writer)
    await channel.send(encode({"type": HELLO, "token": link.token}).decode())
    return channel


@contextlib.asynccontextmanager
async def listening(agent: Agent, where: socket.socket) -> AsyncIterator[None]:
    """Take connections of peers at a socket that is bound."""
    working: set[asyncio.Task[None]] = set()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        work = asyncio.create_task(_take(agent, LineChannel(reader, writer)))
        working.add(work)
        work.add_done_callback(working.discard)
        _keep_alive(writer)

    limit = agent.config.limits.message + SLACK
    server = await asyncio.start_server(taken, sock=where, limit=limit, backlog=128)
    try:
        yield
    finally:
        server.close()
        for work in working:
            work.cancel()
        await asyncio.gather(*working, return_exceptions=True)


async def _take(agent: Agent, channel: LineChannel) -> None:
    try:
        with agent.door.waiting(channel):
            welcome = await _hello_has_token(agent, channel)
        if welcome:
            await guest(agent, channel)
        else:
            await channel.send(encode({"type": ERROR, "code": "invalid_token"}).decode())
    except ChannelClosed as error:
        logger.info("connection ended: %s", error)
    finally:
        await channel.close("")


async def _hello_has_token(agent: Agent, channel: LineChannel) -> bool:
    try:
        async with asyncio.timeout(agent.config.limits.hello_seconds):
            frame = decode_object(await channel.receive())
    except (WireError, TimeoutError):
        return False
    token = frame.get("token")
    return (
        frame.get("type") == HELLO
        and isinstance(token, str)
        and hmac.compare_digest(token.encode(), agent.token.encode())
    )


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Let the system find out that the other side is gone, also while nothing is said."""
    made = writer.get_extra_info("socket")
    for level, name, value in _ALIVE:
        if made is not None and hasattr(socket, name):
            with contextlib.suppress(OSError):
                made.setsockopt(level, getattr(socket, name), value)


FIRST_RESTART, LONGEST_RESTART = 0.2, 30.0  # seconds before a program that ended is started again

STEADY_PROGRAM = 10.0  # seconds after which a program counts as one that works

GRACE = 3.0  # seconds that a program has to end once its input has

_LINE = 4096  # bytes of a line that a program says to its standard error


class NoPipe(NetworkError):
    """Standard input or output cannot be used; the message is one line."""


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output, for frames alone: what is printed goes to the standard error."""
    frames = os.dup(1)
    os.dup2(2, 1)
    return sys.stdin.buffer, os.fdopen(frames, "wb", 0)


async def channel_of(agent: Agent, source: BinaryIO, sink: BinaryIO) -> LineChannel:
    """The channel over two pipes.

    Raises:
        NoPipe: one of them is a file.
    """
    if not (_flows(source) and _flows(sink)):
        raise NoPipe("--stdio: standard input and output have to be pipes")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=agent.config.limits.message + SLACK)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sink
        )
    except (OSError, ValueError):
        raise NoPipe("--stdio: standard input and output have to be pipes") from None
    return LineChannel(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def _flows(stream: BinaryIO) -> bool:
    """Whether what is said there can be waited for: a pipe, a socket or a terminal."""
    mode = os.fstat(stream.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(stream.fileno())


async def serve_parent(agent: Agent, channel: LineChannel) -> None:
    """Have whoever started this process as a peer; when it goes, the agent ends."""
    try:
        await guest(agent, channel)
    finally:
        agent.ended.set()


async def keep_running(agent: Agent, command: Sequence[str]) -> None:
    """Run a program whose standard input and output are those of a peer, again when it ends."""
    pause = FIRST_RESTART
    while True:
        began = time.monotonic()
        try:
            await _run(agent, command)
        except OSError as error:
            logger.warning("%s cannot be started: %s", command[0], error.strerror)
        if time.monotonic() - began > STEADY_PROGRAM:
            pause = FIRST_RESTART
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST_RESTART)


async def _run(agent: Agent, command: Sequence[str]) -> None:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe,
        limit=agent.config.limits.message + SLACK, start_new_session=True,
    )  # fmt: skip
    assert child.stdin and child.stdout and child.stderr
    telling = asyncio.create_task(_tell(command[0], child.stderr))
    try:
        await guest(agent, LineChannel(child.stdout, child.stdin))
    finally:
        child.stdin.close()
        await asyncio.shield(_end(child))
        telling.cancel()
    logger.warning("%s ended (exit code %s)", command[0], child.returncode)


async def _end(child: asyncio.subprocess.Process) -> None:
    """Wait for the end of a program that has no input any more; make it end at last."""
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None and child.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await child.wait()
                return


async def _tell(name: str, errors: asyncio.StreamReader) -> None:
    """Put what a program says to its standard error into the log, in bounded lines."""
    while said := await errors.read(_LINE):
        for line in said.decode("utf-8", "replace").splitlines():
            if line.strip():
                logger.warning("%s: %s", os.path.basename(name), line)


KEEPALIVE = 15.0  # seconds between pings, and within which one is answered

WEBSOCKET_SLACK = 65536  # bytes of a frame beyond the largest message

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
            raise WireError(
                Code.TOO_LARGE, "the frame is too large", max_bytes=self._limit - WEBSOCKET_SLACK
            )
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
    limit = agent.config.limits.message + WEBSOCKET_SLACK
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
    limit = agent.config.limits.message + WEBSOCKET_SLACK

    async def taken(connection: ServerConnection) -> None:
        if len(connection.server.connections) > agent.config.limits.peers + GUESTS:
            await connection.close(1013, "too many connections")
            return
        request = connection.request
        if request is None or not _request_has_token(agent, request.path):
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


def _request_has_token(agent: Agent, path: str) -> bool:
    return hmac.compare_digest(path.strip("/").encode(), agent.token.encode())


def _take_more(connection: Connection, limit: int) -> None:
    for name in ("max_message_size", "max_size"):  # as the library's versions call it
        if hasattr(connection.protocol, name):
            setattr(connection.protocol, name, limit)
            return


def _reason(error: ConnectionClosed) -> str:
    frame = error.rcvd or error.sent
    return (frame.reason or f"closed with code {frame.code}") if frame else "the connection broke"


FIRST_RETRY, LONGEST_RETRY = 0.1, 15.0  # seconds between two tries

STEADY_CONNECTION = 5.0  # seconds after which a connection counts as a good one


async def keep_connected(agent: Agent, peer: Peer) -> None:
    """Connect to a peer whenever there is no connection with it, as long as that is wanted."""
    pause = FIRST_RETRY
    while now := agent.peers.dialled_by(asyncio.current_task(), peer):
        peer = now
        await peer.alone.wait()
        began = time.monotonic()
        try:
            channel = await _dial(agent, links.parse_any(peer.row.link or ""))
            await Session(agent, channel, peer).run()
        except (ChannelClosed, PeerRefused, links.LinkError) as error:
            peer.trouble = str(error)
        if time.monotonic() - began > STEADY_CONNECTION:
            pause = FIRST_RETRY
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST_RETRY)


async def _dial(agent: Agent, link: links.AnyLink) -> Channel:
    """A connection over the binding that the link names."""
    from acp_core.protocols.wire.conduct import relay

    if isinstance(link, links.HttpLink):
        return await relay.dial(agent, link)
    if isinstance(link, links.RelayLink):
        return await relay.dial_relay(agent, link)
    return await (dial_tcp(agent, link) if link.scheme == "tcp" else dial_websocket(agent, link))
