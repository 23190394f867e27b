"""Binding E: TCP (core specification, section 7), for a local network.

The specification leaves open how a connection begins. Here the first line of whoever connects is
``{"type":"acp.hello","token":"..."}`` with the token of the link; from then on both sides send
what they send over any binding, one frame per line.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
from collections.abc import AsyncIterator

from acp_core.protocols.wire.conduct.agent.channel import ChannelClosed
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.agent.lines import SLACK, LineChannel
from acp_core.protocols.wire.conduct.agent.session import guest
from acp_core.protocols.wire.network.links import Link
from acp_core.protocols.wire.schema import ERROR, HELLO, Refusal
from acp_core.protocols.wire.schema.decode import decode_object, encode

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


async def dial(agent: Agent, link: Link) -> LineChannel:
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
            welcome = await _knows_token(agent, channel)
        if welcome:
            await guest(agent, channel)
        else:
            await channel.send(encode({"type": ERROR, "code": "invalid_token"}).decode())
    except ChannelClosed as error:
        logger.info("connection ended: %s", error)
    finally:
        await channel.close("")


async def _knows_token(agent: Agent, channel: LineChannel) -> bool:
    try:
        async with asyncio.timeout(agent.config.limits.hello_seconds):
            frame = decode_object(await channel.receive())
    except (Refusal, TimeoutError):
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
