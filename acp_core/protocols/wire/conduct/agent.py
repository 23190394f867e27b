"""An agent that runs: what it knows, and what it does with messages, tasks and peers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import httpx

from acp_core.protocols.wire import write
from acp_core.protocols.wire.conduct.peers import Dial, Peers
from acp_core.protocols.wire.conduct.relay import Converse, HttpChannels
from acp_core.protocols.wire.network import client as network_client
from acp_core.protocols.wire.network.channels import Channel
from acp_core.protocols.wire.network.lan import Heard
from acp_core.protocols.wire.network.links import is_loopback
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import (
    MAX_MESSAGE,
    Code,
    Json,
    LogEntry,
    WireError,
    encode,
    invalid,
    new_id,
    now_text,
)
from acp_core.protocols.wire.schema.bodies import is_web_address
from acp_core.protocols.wire.write import Database, Retention, Tx

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.answering import Setup
    from acp_core.protocols.wire.network.identity import Identity

logger = logging.getLogger("acp.wire")

STORE = "wire.sqlite3"

PRUNE_EVERY = 1000  # entries of the log

STRANGERS = 64  # connections at a time that have not said whose they are


class Shared(Protocol):
    """A folder that an agent tells of (see the room `bridge`)."""

    @property
    def about(self) -> dict[str, object]:
        """What the card says of it."""
        ...

    @property
    def endpoints(self) -> tuple[Any, ...]:
        """What it answers beyond an agent's endpoints."""
        ...


class Sharing(Protocol):
    """What makes an agent a bridge."""

    def open(self, agent: Agent) -> AbstractAsyncContextManager[Shared]:
        """Watch the folder and tell of it as long as the block lasts."""
        ...


class Connecting(NamedTuple):
    """What connects an agent with others: the connections that it makes, and those made to it."""

    dial: Dial
    converse: Converse


class Agent:
    """Everything that an agent holds while it runs. Used in one event loop.

    Attributes:
        token: what peers show; it stands in the link and stays the same over restarts.
        owner_token: what gives the whole HTTP interface; only this user can read where it is kept.
        instance_id: its own for good: a public key, of which it proves the private one to peers.
        session_id: new at every start.
        bridge: what it tells of, where it is a bridge.
        link, http_link, http_url, tcp_link, relay_link: where it is reached, once it is.
        ended: set when it has to end by itself.
    """

    def __init__(self, config: Config, store: Database, hub: Hub, connecting: Connecting) -> None:
        self.config = config
        self.store = store
        self.hub = hub
        self.identity: Identity | None = None
        self.instance: Identity
        self.peers = Peers(self, connecting.dial)
        self.webhooks = Webhooks(self)
        self.door = PendingConnections(STRANGERS)
        self.visits = HttpChannels(self, connecting.converse)
        self.heard = Heard()
        self.ended = asyncio.Event()
        self.session_id = new_id("sess")
        self.started_at = now_text()
        self.instance_id = self.token = self.owner_token = ""
        self.link: str | None = None
        self.http_link: str | None = None
        self.tcp_link: str | None = None
        self.relay_link: str | None = None
        self.http_url: str | None = None
        self.http_port: int | None = None
        self.ws_port: int | None = None
        self.bridge: Shared | None = None
        self.deduped = 0
        self.told: set[tuple[str, str, str]] = set()  # see `pins`
        self._replies: dict[str, list[asyncio.Future[Json]]] = {}
        self._pruned_at = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, config: Config, folder: Path, connecting: Connecting) -> Agent:
        """The agent whose store is in ``folder``, which must exist (see `process.open_agent`).

        Raises:
            StoreError, IdentityError: the store or the key file cannot be used.
        """
        from acp_core.protocols.wire.network import identity as network_identity
        from acp_core.protocols.wire.network.identity import load_or_make, new_seed

        identity: Identity | None = None
        if config.identity:
            identity = load_or_make(config.identity)
        hub = Hub()
        agents: list[Agent] = []
        store = Database(folder / STORE, lambda added: agents[0]._added(added), config.sync)
        agent = cls(config, store, hub, connecting)
        agents.append(agent)
        agent.identity = identity
        try:
            last = (await store.read(read_store.log_bounds))[1]
            hub.start(last)
            if not last:
                await agent.stored(read_store.BEGUN, now_text)
            agent.instance = network_identity.instance_of(
                await agent.stored("instance_seed", new_seed)
            )
            agent.instance_id = network_identity.instance_id(agent.instance)
            agent.token = await agent.stored("token", lambda: f"tok_{os.urandom(16).hex()}")
            agent.owner_token = await agent.stored(
                "owner_token", lambda: f"own_{os.urandom(24).hex()}"
            )
            await agent.peers.load()
        except BaseException:
            await store.close()
            raise
        return agent

    async def close(self) -> None:
        """End all connections and commit what is known."""
        await self.peers.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.store.close()

    @property
    def links(self) -> dict[str, str]:
        """The links by which peers reach it, by binding."""
        known = {"ws-p2p": self.link, "http-sse": self.http_link, "tcp": self.tcp_link,
                 "http-relay": self.relay_link}  # fmt: skip
        return {binding: link for binding, link in known.items() if link}

    @property
    def public_link(self) -> str | None:
        """The link that others are given: with TLS, the one that is encrypted."""
        return self.http_link if self.config.tls else self.link

    def card(self) -> Json:
        """The AgentCard as it is now."""
        config = self.config
        return bodies.make_card(
            bodies.About(
                name=config.name,
                description=config.description,
                skills=config.skills,
                instance_id=self.instance_id,
                session_id=self.session_id,
                public_key=self.identity.public_text if self.identity else None,
                hmac=config.secret is not None,
                lan_discovery=config.advertise,
                bindings=config.bindings,
                token_needed=config.token_needed,
                max_message=config.limits.message,
                link=self.public_link,
                http_port=self.http_port,
                bridge=self.bridge.about if self.bridge else None,
            )
        )

    def start(self, work: asyncio.Task[None]) -> None:
        """Keep a task until it ends; it is cancelled when the agent closes."""
        self._tasks.add(work)
        work.add_done_callback(self._tasks.discard)

    async def reply_to(self, correlation_id: str, seconds: float) -> Json | None:
        """The reply to a message, waiting for it at most so long; None when none came."""
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        waiting = self._replies.setdefault(correlation_id, [])
        waiting.append(future)
        try:
            known = await self.store.read(lambda db: read_store.find_reply(db, correlation_id))
            if known:
                return known
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            waiting.remove(future)
            if not waiting:
                self._replies.pop(correlation_id, None)

    def replied(self, envelope: Json) -> None:
        """Hand a reply to those who wait for it."""
        for future in self._replies.get(str(envelope.get("correlation_id")), []):
            if not future.done():
                future.set_result(envelope)

    async def stored(self, key: str, make: Callable[[], str]) -> str:
        """A value of its own that stays; made once."""

        def work(tx: Tx) -> str:
            value = read_store.find_value(tx.db, key)
            if value is None:
                value = make()
                write.keep_value(tx, key, value)
            return value

        return await self.store.write(work)

    def _added(self, entries: list[LogEntry]) -> None:
        self.hub.publish(entries)
        if self.hub.last - self._pruned_at >= PRUNE_EVERY:
            self._pruned_at = self.hub.last
            pruning = self.store.submit(lambda tx: write.prune(tx, self.config.retention))
            pruning.add_done_callback(_log_failure)


def _log_failure(pruning: asyncio.Future[int]) -> None:
    error = None if pruning.cancelled() else pruning.exception()
    if isinstance(error, sqlite3.Error):
        logger.warning("the store could not be made smaller: %s", error)
    elif error is not None:
        raise error


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of everything one agent bears."""

    message: int = MAX_MESSAGE  # bytes of an envelope
    queue: int = 50_000  # frames that wait for one peer
    peers: int = 256  # that are known
    streams: int = 4_000  # open /stream connections
    connections: int = 5_000  # HTTP connections
    address: int = 256  # HTTP connections from one address of another machine
    head_seconds: float = 15.0  # for the head of a request to arrive
    unread: int = 256  # frames of one peer that are not yet on the disk
    body_seconds: float = 30.0  # for the whole body of a request to arrive
    hello_seconds: float = 10.0  # for a peer's card to arrive
    frames: int = 10_000  # a second from one peer; beyond that it is read more slowly


@dataclass(frozen=True, slots=True)
class Config:
    """What an agent is called, where it listens, and what it trusts.

    Attributes:
        port, http_port: 0 lets the system choose; None is the place of last time, else the usual
            one, else the next that is free.
        tcp_port: where peers are taken over TCP; None: nowhere.
        stdio: whoever started the process is a peer, over standard input and output.
        children: programs to be run as peers, over their standard input and output.
        relay: the HTTP address of a relay, where peers reach the agent by it.
        relay_key: what that relay wants to see before it opens a room.
        advertise: say on the local network that the agent is there, and hear of others.
        advertise_token: with the token, so that everybody there can connect.
        interface: the address of the interface for that; "" is the usual one.
        secret: shared with all peers, for the HMAC.
        identity: the key file, where messages are signed with Ed25519.
        join: links of peers to which a connection is kept.
        webhook_hosts: where events may be posted to; this machine when empty.
        hosts: further names under which the HTTP interface is asked for.
        tls: the files with the certificate and the key with which HTTP is served.
        open_loopback: every account of this machine is taken for the owner, without a token.
        on_message: the program that answers, where one does.
        bridge: the folder of which it tells, where it is a bridge.
        sync: "full" or "normal", see `Database`.
    """

    name: str
    description: str = ""
    skills: list[Json] = field(default_factory=list)
    host: str = "127.0.0.1"
    port: int | None = None
    http_port: int | None = None
    tcp_port: int | None = None
    stdio: bool = False
    children: tuple[tuple[str, ...], ...] = ()
    relay: str | None = None
    relay_key: str | None = None
    advertise: bool = False
    advertise_token: bool = False
    interface: str = ""
    secret: str | None = None
    identity: str | None = None
    join: tuple[str, ...] = ()
    webhook_hosts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    open_loopback: bool = False
    tls: tuple[str, str] | None = None
    on_message: Setup | None = None
    bridge: Sharing | None = None
    sync: str = "full"
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)

    @property
    def open(self) -> bool:
        """Whether others than this machine can reach it."""
        return not is_loopback(self.host)

    @property
    def token_needed(self) -> bool:
        """Whether the owner has to show a token, as everybody has to who is not this machine."""
        return self.open or not self.open_loopback

    @property
    def plain_host(self) -> str:
        """Where peers are taken without encryption: with TLS, on this machine alone."""
        return "127.0.0.1" if self.tls else self.host

    @property
    def bindings(self) -> tuple[str, ...]:
        """The bindings that are served, as a card names them."""
        asked = {
            "stdio": self.stdio or bool(self.children),
            "tcp": self.tcp_port is not None,
            "http-relay": self.relay is not None,
        }
        return ("ws-p2p", "http-sse", *(name for name, there in asked.items() if there))


RECENT = 4096  # entries that followers get without asking the store

PAGE = 256


class Hub:
    """The end of the log. Followers keep a place in it each, so none can miss or get one twice."""

    def __init__(self) -> None:
        self.last = 0
        self._recent: list[LogEntry] = []
        self._complete_after = 0  # what follows this number is all in `_recent`
        self._grown = asyncio.Event()
        self.closed = False
        self.followers = 0  # streams that are open

    def start(self, last: int) -> None:
        """Begin behind the last number that was given."""
        self.last = self._complete_after = last

    def publish(self, entries: list[LogEntry]) -> None:
        """Add committed entries, in order."""
        self._recent += entries
        if len(self._recent) > 2 * RECENT:
            self._complete_after = self._recent[-RECENT - 1].seq
            del self._recent[:-RECENT]
        self.last = entries[-1].seq
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def close(self) -> None:
        """Wake everybody: nothing will come any more."""
        self.closed = True
        self._grown.set()

    async def grown(self, place: int, seconds: float) -> bool:
        """Wait until the log goes beyond ``place``; False when that took too long, or is over."""
        while self.last <= place and not self.closed:
            try:
                async with asyncio.timeout(seconds):
                    await self._grown.wait()
            except TimeoutError:
                break
        return self.last > place

    async def after(self, place: int, store: Database) -> list[LogEntry]:
        """The entries that follow ``place``, at most `PAGE`; empty when there is none."""
        if place >= self.last:
            return []
        if place >= self._complete_after:
            start = bisect_right(self._recent, place, key=lambda entry: entry.seq)
            return self._recent[start : start + PAGE]
        return await store.read(lambda db: read_store.entries_after(db, place, PAGE))


class PendingConnections:
    """Where strangers stand until they have said who they are. ``most``: how many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._here: dict[Channel, None] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def waiting(self, channel: Channel) -> Iterator[None]:
        """Let a connection stand here meanwhile."""
        self._here[channel] = None
        if len(self._here) > self._most:
            oldest = next(iter(self._here))
            del self._here[oldest]
            closing = asyncio.create_task(oldest.close("too many strangers"))
            self._leaving.add(closing)
            closing.add_done_callback(self._leaving.discard)
        try:
            yield
        finally:
            self._here.pop(channel, None)


if TYPE_CHECKING:
    pass

MOST = 16  # addresses

TRIES = 3

PAUSE = 0.5  # seconds before a second try

TIMEOUT = 10.0

KEY = "webhooks"


class Webhooks:
    """The addresses to which an agent posts what happens, from when it knows of them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._posting: dict[str, asyncio.Task[None]] = {}

    @property
    def urls(self) -> list[str]:
        """The addresses."""
        return list(self._posting)

    async def load(self) -> None:
        """Post to the addresses of last time."""
        kept = await self._agent.store.read(lambda db: store.find_value(db, KEY))
        for url in json.loads(kept) if kept else []:
            if self._is_allowed(url):
                self._begin(url)

    async def register(self, url: str | None) -> None:
        """Post to a further address.

        Raises:
            Refusal: it is none, its host is not allowed, or there are too many.
        """
        if url is None or not is_web_address(url):
            raise invalid("url: must be an http:// or https:// address")
        if not self._is_allowed(url):
            raise WireError(Code.FORBIDDEN, "url: its host is not allowed")
        if url in self._posting:
            return
        if len(self._posting) >= MOST:
            raise WireError(Code.BUSY, f"{MOST} addresses are registered already")
        self._begin(url)
        await self._save()

    async def deregister(self, url: str | None) -> None:
        """Post there no more; it need not be registered."""
        posting = self._posting.pop(url or "", None)
        if posting:
            posting.cancel()
            await self._save()

    def _begin(self, url: str) -> None:
        task = self._posting[url] = asyncio.create_task(self._post_all(url))
        self._agent.start(task)

    async def _save(self) -> None:
        kept = encode(self.urls).decode()
        await self._agent.store.write(lambda tx: write.keep_value(tx, KEY, kept))

    def _is_allowed(self, url: str) -> bool:
        """Never the agent itself: each event would make another."""
        parts = urlsplit(url)
        host, allowed = parts.hostname or "", self._agent.config.webhook_hosts
        if is_loopback(host) and parts.port == self._agent.http_port:
            return False
        return host in allowed if allowed else is_loopback(host)

    async def _post_all(self, url: str) -> None:
        hub = self._agent.hub
        place = hub.last
        async with httpx.AsyncClient(
            timeout=TIMEOUT, trust_env=False, verify=network_client.context(url)
        ) as client:
            while not hub.closed:
                await hub.grown(place, 60.0)
                for entry in await hub.after(place, self._agent.store):
                    await self._post(client, url, entry)
                    place = entry.seq

    async def _post(self, client: httpx.AsyncClient, url: str, entry: LogEntry) -> None:
        headers = {"content-type": "application/json", "x-acp-seq": str(entry.seq)}
        for attempt in range(TRIES):
            try:
                response = await client.post(url, content=entry.body, headers=headers)
                if response.status_code < 500:
                    return
            except httpx.HTTPError:
                pass
            await asyncio.sleep(PAUSE * 2**attempt)
        logger.warning("event %s could not be posted to %s", entry.seq, urlsplit(url).netloc)
