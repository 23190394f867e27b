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
import os
import random
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Sequence
from typing import BinaryIO

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.session import guest
from acp_core.protocols.wire.network.channels import SLACK, ChannelClosed, LineChannel
from acp_core.protocols.wire.network.links import Link
from acp_core.protocols.wire.schema.basics import ERROR, HELLO, WireError
from acp_core.protocols.wire.schema.untrusted_json import decode_object, encode

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


FIRST, LONGEST = 0.2, 30.0  # seconds before a program that ended is started again

STEADY = 10.0  # seconds after which a program counts as one that works

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
    pause = FIRST
    while True:
        began = time.monotonic()
        try:
            await _run(agent, command)
        except OSError as error:
            logger.warning("%s cannot be started: %s", command[0], error.strerror)
        if time.monotonic() - began > STEADY:
            pause = FIRST
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST)


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
