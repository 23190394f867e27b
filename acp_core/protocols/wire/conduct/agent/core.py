"""An agent: its store, its peers, and who it is."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from acp_core.protocols.wire.conduct.agent.config import Config
from acp_core.protocols.wire.conduct.agent.door import Door
from acp_core.protocols.wire.conduct.agent.hub import Hub
from acp_core.protocols.wire.conduct.agent.peers import Dial, Peers
from acp_core.protocols.wire.conduct.agent.visits import Converse, Visits
from acp_core.protocols.wire.conduct.agent.webhooks import Webhooks
from acp_core.protocols.wire.network.lan.datagram import Heard
from acp_core.protocols.wire.schema import Json, new_id, now_text
from acp_core.protocols.wire.schema import agent_card as card
from acp_core.protocols.wire.write import keep, messages
from acp_core.protocols.wire.write.database import Database, Entry, Tx

if TYPE_CHECKING:
    from acp_core.protocols.wire.bridge.serving import Bridge
    from acp_core.protocols.wire.network.identity import Identity

logger = logging.getLogger("acp.wire")
STORE = "wire.sqlite3"
PRUNE_EVERY = 1000  # entries of the log
STRANGERS = 64  # connections at a time that have not said whose they are


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
        self.door = Door(STRANGERS)
        self.visits = Visits(self, connecting.converse)
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
        self.bridge: Bridge | None = None
        self.deduped = 0
        self.told: set[tuple[str, str, str]] = set()  # see `pins`
        self._replies: dict[str, list[asyncio.Future[Json]]] = {}
        self._pruned_at = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(cls, config: Config, folder: Path, connecting: Connecting) -> Agent:
        """The agent whose store is in ``folder``, which must exist (see `serve.open_agent`).

        Raises:
            StoreError, IdentityError: the store or the key file cannot be used.
        """
        from acp_core.protocols.wire.conduct.agent import proof
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
            last = (await store.read(messages.bounds))[1]
            hub.start(last)
            if not last:
                await agent.stored(keep.BEGUN, now_text)
            agent.instance = proof.instance_of(await agent.stored("instance_seed", new_seed))
            agent.instance_id = proof.instance_id(agent.instance)
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
        return card.make(
            card.About(
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
            known = await self.store.read(lambda db: messages.answers(db, correlation_id))
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
            value = keep.get(tx.db, key)
            if value is None:
                value = make()
                keep.put(tx, key, value)
            return value

        return await self.store.write(work)

    def _added(self, entries: list[Entry]) -> None:
        self.hub.publish(entries)
        if self.hub.last - self._pruned_at >= PRUNE_EVERY:
            self._pruned_at = self.hub.last
            pruning = self.store.submit(lambda tx: keep.prune(tx, self.config.retention))
            pruning.add_done_callback(_log_failure)


def _log_failure(pruning: asyncio.Future[int]) -> None:
    error = None if pruning.cancelled() else pruning.exception()
    if isinstance(error, sqlite3.Error):
        logger.warning("the store could not be made smaller: %s", error)
    elif error is not None:
        raise error
