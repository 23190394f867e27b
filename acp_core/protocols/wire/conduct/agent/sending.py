"""Messages that this agent sends."""

from __future__ import annotations

from typing import NamedTuple

from acp_core.protocols.wire.conduct.agent import tasks
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.agent.peers import Peer
from acp_core.protocols.wire.schema import (
    MESSAGE,
    Code,
    Json,
    Refusal,
    new_id,
    now_text,
    signatures,
)
from acp_core.protocols.wire.schema.bodies import Draft
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.write import messages, peers
from acp_core.protocols.wire.write import tasks as stored_tasks
from acp_core.protocols.wire.write.database import Tx
from acp_core.protocols.wire.write.messages import Stored

NOBODY = "nobody"  # the origin of what goes to no peer


class Sent(NamedTuple):
    """A message on its way. ``queued``: the peer is away and gets it when it returns."""

    message_id: str
    seq: int
    queued: bool
    task: Json | None
    envelope: Json


def envelope_of(agent: Agent, draft: Draft, seq: int, type: str = MESSAGE) -> Json:
    """The envelope of a draft, not yet signed (core specification, section 1)."""
    envelope: Json = {
        "type": type,
        "message_id": draft.message_id,
        "server_seq": seq,
        "ts": now_text(),
        "from": agent.config.name,
        "role": draft.role,
        "parts": draft.parts,
    }
    for name, value in (("task_id", draft.task_id), ("context_id", draft.context_id)):
        if value is not None:
            envelope[name] = value
    return {**envelope, **draft.carried}


def check_size(agent: Agent, envelope: Json, largest: int | None = None) -> None:
    """Refuse an envelope that is larger than a message may be.

    Raises:
        Refusal: it is.
    """
    limit = min(agent.config.limits.message, largest or agent.config.limits.message)
    size = len(encode(envelope))
    if size > limit:
        raise Refusal(
            Code.TOO_LARGE,
            f"the message has {size} bytes; the limit is {limit}",
            failed=envelope.get("message_id"),
            max_bytes=limit,
        )


async def send(agent: Agent, draft: Draft, peer_id: str | None, type: str = MESSAGE) -> Sent:
    """Send a message to a peer; it is on the disk when this returns.

    Args:
        peer_id: to whom; None: to the only one there is.

    Raises:
        Refusal: too large, no such peer, never connected, too much waits for it already.
    """
    draft = _with_ids(draft)
    envelope = envelope_of(agent, draft, 2**53, type)
    check_size(agent, envelope)
    peer = agent.peers.choose(peer_id)
    check_size(agent, envelope, peer.card.max_message)
    room, new = peer.reserve(agent.config.limits.queue), False
    try:
        sent, new = await agent.store.write(lambda tx: _write(agent, tx, draft, peer, type, room))
    finally:
        peer.reserved(new)
    peer.wake.set()
    return sent


def _with_ids(draft: Draft) -> Draft:
    from dataclasses import replace

    id = draft.message_id or new_id("msg")
    carried = draft.carried
    if draft.sync and "correlation_id" not in carried:
        carried = {**carried, "correlation_id": id}
    task_id = draft.task_id or (new_id("task") if draft.create_task else None)
    return replace(draft, message_id=id, carried=carried, task_id=task_id)


def _write(
    agent: Agent, tx: Tx, draft: Draft, peer: Peer, type: str, room: bool
) -> tuple[Sent, bool]:
    id = draft.message_id or ""
    if not room and messages.find(tx.db, "out", peer.id, id) is None:
        raise Refusal(Code.BUSY, f"too many messages are waiting for {peer.name}")

    def make(seq: int) -> tuple[Json, Json]:
        envelope = envelope_of(agent, draft, seq, type)
        return signatures.sign(envelope, agent.config.secret, agent.identity), {}

    stored = messages.add(tx, "out", peer.id, id, peer.id, make)
    task: Json | None = None
    task_id = stored.envelope.get("task_id")
    if stored.new:
        peers.push(tx, peer.id, id, encode(stored.envelope).decode(), counts=True)
        task = _task_of(tx, draft, peer)
    elif task_id:
        task = stored_tasks.get(tx.db, task_id)
    queued = not peer.connected and peers.is_waiting(tx.db, peer.id, id)
    return Sent(id, stored.seq, queued, task, stored.envelope), stored.new


def _task_of(tx: Tx, draft: Draft, peer: Peer) -> Json | None:
    """The task that a message belongs to; a new one where one was asked for."""
    if draft.task_id is None:
        return None
    known = stored_tasks.get(tx.db, draft.task_id)
    if known or not draft.create_task:
        return known
    return tasks.create(
        tx,
        tasks.DELEGATED,
        draft.parts,
        id=draft.task_id,
        peer_id=peer.id,
        message_id=draft.message_id,
        context_id=draft.context_id,
    )


async def reply(agent: Agent, correlation_id: str, draft: Draft) -> Sent:
    """Answer a message that waits for a reply.

    Raises:
        Refusal: no such message arrived.
    """
    from dataclasses import replace

    from acp_core.protocols.wire.schema import REPLY

    asked = await agent.store.read(lambda db: messages.asked(db, correlation_id))
    if asked is None:
        raise Refusal(Code.NOT_FOUND, "no message with this correlation id arrived")
    peer_id, _ = asked
    draft = replace(draft, carried={**draft.carried, "correlation_id": correlation_id})
    return await answer(agent, draft, peer_id, REPLY)


async def answer(agent: Agent, draft: Draft, peer_id: str | None, type: str) -> Sent:
    """Send to a peer, or to who posted over HTTP: that one reads it where it asks for it.

    Raises:
        Refusal: as for `send`.
    """
    if peer_id is not None:
        return await send(agent, draft, peer_id, type)
    draft = _with_ids(draft)
    check_size(agent, envelope_of(agent, draft, 2**53, type))

    def work(tx: Tx) -> Stored:
        def make(seq: int) -> tuple[Json, Json]:
            envelope = envelope_of(agent, draft, seq, type)
            return signatures.sign(envelope, agent.config.secret, agent.identity), {}

        return messages.add(tx, "out", NOBODY, draft.message_id or "", None, make)

    stored = await agent.store.write(work)
    agent.replied(stored.envelope)
    return Sent(draft.message_id or "", stored.seq, False, None, stored.envelope)
