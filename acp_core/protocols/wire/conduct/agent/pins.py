"""Whether who connects is who it was before; where it is not, that is told in the log, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_core.protocols.wire.schema import Code, Refusal, now_text
from acp_core.protocols.wire.schema.agent_card import PeerCard
from acp_core.protocols.wire.view.timeline import SUSPECT
from acp_core.protocols.wire.write import messages
from acp_core.protocols.wire.write.database import Tx

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.core import Agent
    from acp_core.protocols.wire.conduct.agent.peers import Peer

REFUSED, MOVED = SUSPECT
"""Events ``acp.peer``: another key was shown for a peer; another agent answers at the link."""
TOLD = 1000  # of them are remembered, so that no stranger fills the log


async def check(agent: Agent, known: Peer, card: PeerCard) -> None:
    """Hold the key for messages against the one that the peer showed first.

    Raises:
        Refusal: it is another one.
    """
    pinned = known.row.public_key
    if pinned is None or card.public_key is None or card.public_key == pinned:
        return
    why = f"a different key than {known.name} had before"
    await _tell(agent, known, REFUSED, f"{why}: {card.public_key}")
    raise Refusal(Code.FORBIDDEN, f"{why}; who refuses it can forget that one (DELETE /peer/ID)")


async def moved(agent: Agent, asked: Peer, card: PeerCard) -> None:
    """Note that behind a peer's link there is somebody else; what waits for it stays."""
    asked.trouble = "another agent answers at the link"
    await _tell(agent, asked, MOVED, f"{asked.trouble}: {card.name}")


async def _tell(agent: Agent, peer: Peer, event: str, reason: str) -> None:
    if (peer.id, event, reason) in agent.told or len(agent.told) >= TOLD:
        return
    agent.told.add((peer.id, event, reason))
    body = {"type": "acp.peer", "ts": now_text(), "event": event, "peer_id": peer.id,
            "name": peer.name, "reason": reason}  # fmt: skip

    def work(tx: Tx) -> None:
        messages.log(tx, "acp.peer", body)

    await agent.store.write(work)
