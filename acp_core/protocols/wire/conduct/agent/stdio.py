"""Binding B: standard input and output (core specification, section 7), one frame per line.

A program that an agent starts is a peer of it, and an agent that was started so has whoever
started it as a peer. No token is needed: nobody else holds the pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import stat
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.agent.lines import SLACK, LineChannel
from acp_core.protocols.wire.conduct.agent.session import guest

logger = logging.getLogger("acp.wire")
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
