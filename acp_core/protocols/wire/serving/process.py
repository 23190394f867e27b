"""An agent as a process: its sockets and bindings, its life from ready to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from acp_core.files import interrupts
from acp_core.model.errors import NetworkError
from acp_core.protocols.kit.guard import check
from acp_core.protocols.wire import matters, write
from acp_core.protocols.wire.conduct import connections as conduct_connections
from acp_core.protocols.wire.conduct.agent import Agent, Config, Connecting
from acp_core.protocols.wire.conduct.connections import keep_connected
from acp_core.protocols.wire.conduct.session import guest
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.agent_directory import Running
from acp_core.protocols.wire.network.lan import Announcement, write_datagram
from acp_core.protocols.wire.network.links import Link, LinkError, authority, loopback_or, relay_at
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.folder import problem
from acp_core.protocols.wire.schema.basics import HTTP_OFFSET, WS_PORT, encode
from acp_core.protocols.wire.serving.endpoints import application
from acp_core.protocols.wire.serving.http import connections

logger = logging.getLogger("acp.wire")

SWITCH = 0.0002  # s; the store's thread waits so long for its turn at each statement, not 5 ms

PORTS = 100  # agents that one machine has beside each other at the usual ports

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """Leaves signals to us: the store has to be closed too."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say also when it is done."""
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield


def run(config: Config, ready: Callable[[Running], None]) -> None:
    """Run an agent until it is asked to end (SIGINT, SIGTERM).

    Args:
        ready: called once, when it can be reached.

    Raises:
        Refused: its store or its disk cannot be used.
        AgentRunning, CannotListen, StoreError, IdentityError, Refusal: it cannot be started.
        OSError: its folder cannot be made.
    """
    with agent_directory.claimed(config.name) as folder:
        check(matters.obstacles(folder, problem(folder)), matters.START)
        more_files()
        sys.setswitchinterval(SWITCH)
        interrupts.run_loop(lambda: _run(config, folder, ready))


async def _run(config: Config, folder: Path, ready: Callable[[Running], None]) -> None:
    agent = await open_agent(config, folder)
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, agent.ended.set)
    try:
        peers, web = await _sockets(agent)
        async with listening(agent, peers, web) as server:
            for link in config.join:
                await agent.peers.connect(link, None)
            agent.peers.start()
            about = Running(
                config.name, os.getpid(), agent.link or "", agent.http_url or "", agent.owner_token,
                agent.tcp_link or "", agent.relay_link or "", config.tls[0] if config.tls else "",
            )  # fmt: skip
            card = encode(agent.card()).decode()
            await agent.store.write(lambda tx: write.keep_value(tx, "card", card))
            agent_directory.announce_running(folder, about)
            ready(about)
            await _asked_to_end(server, agent.ended)
    finally:
        await agent.close()


async def open_agent(config: Config, folder: Path) -> Agent:
    """The agent whose store is in ``folder``, which must exist, able to connect with others.

    Raises:
        StoreError, IdentityError: the store or the key file cannot be used.
    """
    return await Agent.open(config, folder, Connecting(keep_connected, guest))


@contextlib.asynccontextmanager
async def listening(
    agent: Agent, peers: socket.socket, web: socket.socket
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve peers and the HTTP interface at two bound sockets; gives the task that does so."""
    config = agent.config
    agent.ws_port, agent.http_port = peers.getsockname()[1], web.getsockname()[1]
    host = loopback_or(config.host)
    agent.link = str(Link("acp", loopback_or(config.plain_host), agent.ws_port or 0, agent.token))
    agent.http_url = (
        f"{'https' if config.tls else 'http'}://{authority(host, agent.http_port or 0)}"
    )
    agent.http_link = f"{agent.http_url}/{agent.token}"
    async with contextlib.AsyncExitStack() as stack:
        if config.bridge:
            agent.bridge = await stack.enter_async_context(config.bridge.open(agent))
        yield await stack.enter_async_context(_served(agent, peers, web))


@contextlib.asynccontextmanager
async def _served(
    agent: Agent, peers: socket.socket, web: socket.socket
) -> AsyncIterator[asyncio.Task[None]]:
    config = agent.config
    cert, key = config.tls or (None, None)
    server = _Server(
        uvicorn.Config(
            application(agent),
            ssl_certfile=cert,
            ssl_keyfile=key,
            loop="asyncio",
            http=connections(config.limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=2048,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=2,
        )
    )
    listener = await conduct_connections.listen(agent, peers)
    serving = asyncio.create_task(server.serve(sockets=[web]))
    try:
        await agent.webhooks.load()
        started = asyncio.create_task(server.up.wait())
        await asyncio.wait({started, serving}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(open_bindings(agent))
            if config.on_message:
                from acp_core.protocols.wire.conduct.answering import answering

                await stack.enter_async_context(answering(agent, config.on_message))
            yield serving
    finally:
        agent.hub.close()
        server.should_exit = True
        await agent.peers.close()
        listener.close()
        await asyncio.gather(serving, listener.wait_closed(), return_exceptions=True)


async def _asked_to_end(serving: asyncio.Task[None], ended: asyncio.Event) -> None:
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({waiting, serving}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _sockets(agent: Agent) -> tuple[socket.socket, socket.socket]:
    """The sockets for peers and for HTTP, at the ports that are asked for or of last time."""
    config = agent.config
    before = await agent.store.read(lambda db: store.find_value(db, "ports"))
    problem = "no port is free"
    for ws, web in _candidates(config, before):
        try:
            pair = _bind_both(config, ws, web)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problem = f"port {ws} (and {ws + HTTP_OFFSET if web is None else web}): {reason}"
            continue
        if config.port is None:
            numbers = " ".join(str(each.getsockname()[1]) for each in pair)
            await agent.store.write(lambda tx: write.keep_value(tx, "ports", numbers))  # noqa: B023
        return pair
    raise CannotListen(problem)


def _candidates(config: Config, before: str | None) -> Iterator[tuple[int, int | None]]:
    if config.port is not None:
        yield config.port, config.http_port
        if config.port == 0 and config.http_port is None:  # chosen anew: its neighbour was taken
            yield from [(0, None)] * PORTS
        return
    if before and len(kept := before.split()) == 2 and all(map(str.isdecimal, kept)):
        ws, web = map(int, kept)
        yield ws, web if config.http_port is None else config.http_port
        logger.warning("port %s is taken by another program: the link is a new one", ws)
    for number in range(WS_PORT, WS_PORT + PORTS):
        yield number, config.http_port


def _bind_both(config: Config, ws: int, web: int | None) -> tuple[socket.socket, socket.socket]:
    peers = bind(config.plain_host, ws)
    try:
        usual = int(peers.getsockname()[1]) + HTTP_OFFSET
        port = web if web is not None else (usual if usual < 65536 else 0)
        return peers, bind(config.host, port)
    except BaseException:
        peers.close()
        raise


@contextlib.asynccontextmanager
async def open_bindings(agent: Agent) -> AsyncIterator[None]:
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
            if config.stdio:
                channel = await conduct_connections.channel_of(
                    agent, *conduct_connections.own_pipes()
                )
                await stack.enter_async_context(
                    run_bindings(conduct_connections.serve_parent(agent, channel))
                )
            for command in config.children:
                await stack.enter_async_context(
                    run_bindings(conduct_connections.keep_running(agent, command))
                )
        yield


@contextlib.asynccontextmanager
async def run_bindings(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something go on meanwhile, and end it."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _tcp(agent: Agent, port: int) -> AsyncIterator[None]:

    host = agent.config.plain_host
    try:
        made = bind(host, port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CannotListen(f"TCP port {port}: {reason}") from None
    agent.tcp_link = str(Link("tcp", loopback_or(host), made.getsockname()[1], agent.token))
    async with conduct_connections.listening(agent, made):
        yield


@contextlib.asynccontextmanager
async def _relay(agent: Agent, address: str) -> AsyncIterator[None]:
    from acp_core.protocols.wire.conduct import relay

    token = await agent.stored("relay_token", lambda: f"tok_{os.urandom(16).hex()}")
    key = await agent.stored("relay_key", lambda: os.urandom(24).hex())
    try:
        link = relay_at(address, token)
    except LinkError as error:
        raise CannotListen(f"--relay: {error}") from None
    agent.relay_link = str(link)
    async with run_bindings(relay.host_room(agent, link, key, agent.config.relay_key)):
        yield


@contextlib.asynccontextmanager
async def _lan(agent: Agent) -> AsyncIterator[None]:
    from acp_core.protocols.wire.network import lan

    said, interface = announcement_of(agent), agent.config.interface
    listener = lan.Listener(agent.heard, own=said)
    async with (
        lan.listening(listener, interface),
        run_bindings(lan.announce(said, interface)),
    ):
        yield


class CannotListen(NetworkError):
    """No socket can be had; the message is one line."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0: at any.

    Raises:
        OSError, OverflowError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio turns off the delay of small packets (40 ms) on each connection.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2048)
    except BaseException:
        made.close()
        raise
    made.setblocking(False)
    return made


def more_files() -> None:
    """Each stream and connection takes a file: ask for as many as the system gives."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(65536, hard) if hard != resource.RLIM_INFINITY else 65536
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def announcement_of(agent: Agent) -> bytes:
    """What an agent says of itself; its token only where that was asked for."""
    config = agent.config
    token = agent.token if config.advertise_token else ""
    said = Announcement(config.name, token, agent.ws_port or 0, agent.http_port or 0)
    return write_datagram(said)
