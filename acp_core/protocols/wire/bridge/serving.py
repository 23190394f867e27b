"""A folder, watched, beside an agent that tells of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from acp_core.fleet import Fleet
from acp_core.model import Snapshot
from acp_core.protocols.wire.bridge.acting import Acting
from acp_core.protocols.wire.bridge.feed import Feed
from acp_core.protocols.wire.bridge.setup import BridgeSetup
from acp_core.protocols.wire.conduct.agent.core import Agent

logger = logging.getLogger("acp.wire")
_AGAIN = 1.0  # seconds until what could not be told is tried again


class Bridge:
    """What the endpoints need. ``snapshot`` is the latest that was told."""

    def __init__(self, fleet: Fleet, setup: BridgeSetup, snapshot: Snapshot) -> None:
        self.fleet = fleet
        self.key = setup.folder
        self.allowed = setup.allowed
        self.snapshot = snapshot

    @property
    def about(self) -> dict[str, object]:
        """What the card says of it."""
        return {
            "protocol": self.snapshot.protocol,
            "name": self.snapshot.name,
            "snapshot": "/bridge/snapshot",
            "document": "/bridge/document",
            "event": "/bridge/event",
            "actions": "/bridge/actions",
            "allowed": sorted(self.allowed),
        }


@contextlib.asynccontextmanager
async def bridging(agent: Agent, setup: BridgeSetup) -> AsyncIterator[Bridge]:
    """Watch the folder and tell of it as long as the block lasts."""
    fleet = Fleet([Path(setup.folder)], discover=False)
    changes = fleet.changes()
    feed = Feed(agent, fleet, setup.folder)
    await feed.load()
    while not fleet.snapshots.get(setup.folder):
        await anext(changes)
    bridge = Bridge(fleet, setup, fleet.snapshots[setup.folder])
    await feed.tell(bridge.snapshot)

    async def follow() -> None:
        async for _ in changes:
            shown = fleet.snapshots.get(setup.folder)
            while shown is not None and shown is not bridge.snapshot:
                bridge.snapshot = shown
                try:
                    await feed.tell(shown)
                except Exception:  # it goes on with the next state, whatever was wrong with one
                    logger.exception("a change of the folder could not be told")
                    await asyncio.sleep(_AGAIN)
                shown = fleet.snapshots.get(setup.folder)

    work = [
        asyncio.create_task(follow()),
        asyncio.create_task(Acting(agent, fleet, setup).follow()),
    ]
    try:
        yield bridge
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await changes.aclose()  # type: ignore[attr-defined]
        await fleet.close()
