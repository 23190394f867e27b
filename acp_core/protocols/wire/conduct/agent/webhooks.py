"""Events posted to addresses that the owner named: one follower of the log for each.

Only hosts that the agent's configuration allows are posted to (this machine, where it names
none), and a redirection is not followed: who may ask this agent must not make it ask others.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from acp_core.protocols.wire.network import trust
from acp_core.protocols.wire.network.links import is_loopback
from acp_core.protocols.wire.schema import Code, Refusal, invalid
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.schema.parts import is_web_address
from acp_core.protocols.wire.write import keep
from acp_core.protocols.wire.write.database import Entry

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.core import Agent

logger = logging.getLogger("acp.wire")
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
        kept = await self._agent.store.read(lambda db: keep.get(db, KEY))
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
            raise Refusal(Code.FORBIDDEN, "url: its host is not allowed")
        if url in self._posting:
            return
        if len(self._posting) >= MOST:
            raise Refusal(Code.BUSY, f"{MOST} addresses are registered already")
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
        await self._agent.store.write(lambda tx: keep.put(tx, KEY, kept))

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
            timeout=TIMEOUT, trust_env=False, verify=trust.context(url)
        ) as client:
            while not hub.closed:
                await hub.grown(place, 60.0)
                for entry in await hub.after(place, self._agent.store):
                    await self._post(client, url, entry)
                    place = entry.seq

    async def _post(self, client: httpx.AsyncClient, url: str, entry: Entry) -> None:
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
