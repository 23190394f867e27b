"""How an agent is reached beside WebSocket and HTTP, where that was asked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.agent.sockets import CannotListen, bind, reachable
from acp_core.protocols.wire.network.links import Link, LinkError, relay_at


@contextlib.asynccontextmanager
async def opened(agent: Agent) -> AsyncIterator[None]:
    """Serve them.

    Raises:
        CannotListen: a port cannot be had.
        NoPipe: standard input or output is a file.
        NoMulticast: the local network cannot be used.
    """
    config = agent.config
    async with contextlib.AsyncExitStack() as stack:
        if config.tcp_port is not None:
            await stack.enter_async_context(_tcp(agent, config.tcp_port))
        if config.relay is not None:
            await stack.enter_async_context(_relay(agent, config.relay))
        if config.advertise:
            await stack.enter_async_context(_lan(agent))
        if config.stdio or config.children:
            from acp_core.protocols.wire.conduct.agent import stdio

            if config.stdio:
                channel = await stdio.channel_of(agent, *stdio.own_pipes())
                await stack.enter_async_context(running(stdio.serve_parent(agent, channel)))
            for command in config.children:
                await stack.enter_async_context(running(stdio.keep_running(agent, command)))
        yield


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something go on meanwhile, and end it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _tcp(agent: Agent, port: int) -> AsyncIterator[None]:
    from acp_core.protocols.wire.conduct.agent import tcp

    host = agent.config.plain_host
    try:
        made = bind(host, port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotListen(f"TCP port {port}: {reason}") from None
    agent.tcp_link = str(Link("tcp", reachable(host), made.getsockname()[1], agent.token))
    async with tcp.listening(agent, made):
        yield


@contextlib.asynccontextmanager
async def _relay(agent: Agent, address: str) -> AsyncIterator[None]:
    from acp_core.protocols.wire.conduct.agent import relay

    token = await agent.stored("relay_token", lambda: f"tok_{os.urandom(16).hex()}")
    key = await agent.stored("relay_key", lambda: os.urandom(24).hex())
    try:
        link = relay_at(address, token)
    except LinkError as error:
        raise CannotListen(f"--relay: {error}") from None
    agent.relay_link = str(link)
    async with running(relay.host(agent, link, key, agent.config.relay_key)):
        yield


@contextlib.asynccontextmanager
async def _lan(agent: Agent) -> AsyncIterator[None]:
    from acp_core.protocols.wire.network.lan import network

    said, interface = network.said_of(agent), agent.config.interface
    listener = network.Listener(agent.heard, own=said)
    async with (
        network.listening(listener, interface),
        running(network.announce(said, interface)),
    ):
        yield
