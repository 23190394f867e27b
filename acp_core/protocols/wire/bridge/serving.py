"""A folder, watched, beside an agent that tells of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from functools import partial

from acp_core.model import Snapshot
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Watched
from acp_core.protocols.kit import owner_inputs
from acp_core.protocols.wire.bridge.acting import Acting
from acp_core.protocols.wire.bridge.feed import Feed
from acp_core.protocols.wire.bridge.setup import Allowed, BridgeSetup
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.schema import invalid

logger = logging.getLogger("acp.wire")
_AGAIN = 1.0  # seconds until what could not be told is tried again


class Bridge:
    """What the endpoints need. ``snapshot`` is the latest that was told."""

    def __init__(self, watched: Watched, setup: BridgeSetup, snapshot: Snapshot) -> None:
        self.watched = watched
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


async def _check_allowed(watched: Watched, setup: BridgeSetup) -> None:
    """See to it that each act that others may ask for is one.

    Raises:
        Refusal: it is none; says which there are now.
    """
    for name in sorted(setup.allowed):
        if not await watched.call(partial(watched.knows, name=name)):
            there = [each.name for each in await watched.call(watched.actions)]
            raise invalid(
                f"--allow {clean_line(name, 60)}: unknown action;"
                f" possible now: {', '.join(there) or 'none'}"
            )


async def _allowed(watched: Watched, setup: BridgeSetup) -> list[Allowed]:
    """What others may ask for, and with which inputs."""
    found = []
    for name in sorted(setup.allowed):
        try:
            action = await watched.call(partial(watched.action, name=name))
        except (Refused, OSError):
            action = None
        if action is None:
            found.append(Allowed(name, note="not possible now"))
        elif reason := owner_inputs.against(action):
            found.append(Allowed(name, note=f"refused: {reason}"))
        else:
            inputs = (each.name for each in owner_inputs.open_fields(action))
            found.append(Allowed(name, tuple(inputs)))
    return found


@contextlib.asynccontextmanager
async def bridging(agent: Agent, setup: BridgeSetup) -> AsyncIterator[Bridge]:
    """Watch the folder and tell of it as long as the block lasts."""
    watched = setup.watch(setup.folder)
    changes = watched.changes()
    feed = Feed(agent, watched, setup.folder)
    await feed.load()
    while not (first := watched.snapshot):
        await anext(changes)
    await _check_allowed(watched, setup)
    if setup.tell is not None:
        setup.tell(await _allowed(watched, setup))
    bridge = Bridge(watched, setup, first)
    await feed.tell(bridge.snapshot)

    async def follow() -> None:
        async for _ in changes:
            shown = watched.snapshot
            while shown is not None and shown is not bridge.snapshot:
                bridge.snapshot = shown
                try:
                    await feed.tell(shown)
                except Exception:  # it goes on with the next state, whatever was wrong with one
                    logger.exception("could not publish a change of the folder")
                    await asyncio.sleep(_AGAIN)
                shown = watched.snapshot

    work = [
        asyncio.create_task(follow()),
        asyncio.create_task(Acting(agent, watched, setup).follow()),
    ]
    try:
        yield bridge
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await changes.aclose()  # type: ignore[attr-defined]
        await watched.close()
