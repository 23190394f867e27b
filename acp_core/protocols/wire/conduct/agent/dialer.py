"""Keeping a connection to a peer by its link, again and again."""

from __future__ import annotations

import asyncio
import random
import time

from acp_core.protocols.wire.conduct.agent.channel import Channel, ChannelClosed
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.agent.peers import Peer
from acp_core.protocols.wire.conduct.agent.session import PeerRefused, Session
from acp_core.protocols.wire.network import links

FIRST, LONGEST = 0.1, 15.0  # seconds between two tries
STEADY = 5.0  # seconds after which a connection counts as a good one


async def keep_connected(agent: Agent, peer: Peer) -> None:
    """Connect to a peer whenever there is no connection with it, as long as that is wanted."""
    pause = FIRST
    while now := agent.peers.dialled_by(asyncio.current_task(), peer):
        peer = now
        await peer.alone.wait()
        began = time.monotonic()
        try:
            channel = await _dial(agent, links.parse_any(peer.row.link or ""))
            await Session(agent, channel, peer).run()
        except (ChannelClosed, PeerRefused, links.LinkError) as error:
            peer.trouble = str(error)
        if time.monotonic() - began > STEADY:
            pause = FIRST
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST)


async def _dial(agent: Agent, link: links.AnyLink) -> Channel:
    """A connection over the binding that the link names."""
    from acp_core.protocols.wire.conduct.agent import relay, tcp, visiting, websocket

    if isinstance(link, links.HttpLink):
        return await visiting.dial(agent, link)
    if isinstance(link, links.RelayLink):
        return await relay.dial(agent, link)
    return await (tcp.dial(agent, link) if link.scheme == "tcp" else websocket.dial(agent, link))
