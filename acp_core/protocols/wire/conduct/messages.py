"""Messages and other frames: those that arrive, and those that are sent."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.protocols.wire import write
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.peers import Peer
from acp_core.protocols.wire.network import identity
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.store import StoredMessage
from acp_core.protocols.wire.schema.agent_card import UNNAMED
from acp_core.protocols.wire.schema.basics import (
    MAX_ID,
    MESSAGE,
    REPLY,
    Code,
    Json,
    WireError,
    invalid,
    new_id,
    now_text,
    outside,
)
from acp_core.protocols.wire.schema.bodies import Draft, is_path_ident, text_part
from acp_core.protocols.wire.schema.observed import PERSON, UNKNOWN, called_as, folded
from acp_core.protocols.wire.schema.untrusted_json import encode
from acp_core.protocols.wire.write import Tx

_ASKS = ("sync", "timeout", "create_task", "peer_id", "text", "content")
"""Fields of a request that are none of an envelope."""


class Taken(NamedTuple):
    """A message that arrived. ``new`` is false where it had come before."""

    new: bool
    seq: int
    envelope: Json
    task: Json | None


def take(agent: Agent, peer: Peer, frame: Json, whole: bool = True) -> asyncio.Future[Taken]:
    """Take a message from a peer; it is on the disk when the future is done.

    Args:
        whole: it came as it was sent; else what carried it may have changed it.

    Raises:
        Refusal: an id in it is none.
    """
    envelope, flags = _envelope(agent, peer, frame)
    if not whole:
        flags = identity.unverifiable(flags)
    origin = peer.row.identity or peer.id

    def work(tx: Tx) -> Taken:
        id = envelope["message_id"]
        stored = write.add_message(tx, "in", origin, id, peer.id, lambda seq: (envelope, flags))
        if not stored.new:
            return Taken(False, stored.seq, stored.envelope, None)
        write.count_received(tx, peer.id)
        task = write.task_arrived(tx, peer.id, envelope)
        return Taken(True, stored.seq, envelope, task)

    return agent.store.submit(work)


def update(agent: Agent, peer: Peer, frame: Json) -> asyncio.Future[None]:
    """Take what a peer says of a task; the future raises `Refusal` where it may not say that."""
    origin = peer.row.identity or peer.id
    id = frame.get("message_id")

    def work(tx: Tx) -> None:
        if not isinstance(id, str) or write.is_first_arrival(tx, origin, id[:MAX_ID]):
            write.task_reported(tx, peer.id, frame)

    return agent.store.submit(work)


async def post(agent: Agent, body: Json, draft: Draft, sender: str, *, owner: bool = False) -> Sent:
    """Take a message that somebody posted, under a name that no channel proves.

    Args:
        owner: the owner of the agent did, who may say who writes.

    Raises:
        Refusal: it is too large.
    """
    envelope = {name: value for name, value in outside(body).items() if name not in _ASKS}
    id = draft.message_id or new_id("msg")
    flags = _posted_flags(agent, envelope, sender, owner=owner)
    envelope |= {"role": draft.role, "parts": draft.parts, "message_id": id, "from": sender}
    envelope.setdefault("type", MESSAGE)
    if not isinstance(envelope.get("ts"), str):
        envelope["ts"] = now_text()
    if draft.sync:
        envelope.setdefault("correlation_id", id)
    if draft.create_task and draft.task_id is None:
        envelope["task_id"] = new_id("task")
    check_size(agent, envelope)

    def work(tx: Tx) -> Taken:
        stored = write.add_message(
            tx, "in", f"http:{sender}", id, None, lambda seq: (envelope, flags)
        )
        task_id = stored.envelope.get("task_id")
        task = write.task_arrived(tx, None, stored.envelope) if stored.new else None
        if task is None and isinstance(task_id, str):
            task = store.find_task(tx.db, task_id)
        return Taken(stored.new, stored.seq, stored.envelope, task)

    taken = await agent.store.write(work)
    if not taken.new:
        agent.deduped += 1
    return Sent(id, taken.seq, False, taken.task, taken.envelope)


def _posted_flags(agent: Agent, envelope: Json, sender: str, *, owner: bool) -> Json:
    """What is to be said of a message without a channel: it is a peer's where that one's key signed it."""
    named = _of_name(agent, sender)
    pinned = [each for each in named if each.row.public_key]
    for each in pinned:
        flags = identity.check_signatures(envelope, agent.config.secret, each.row.public_key)
        if flags.get("_ed25519_verified"):
            flags["_proven"] = each.id
            return identity.aged(flags, envelope, datetime.now(UTC))
    key = pinned[0].row.public_key if pinned else None
    flags = identity.check_signatures(envelope, agent.config.secret, key)
    flags = identity.aged(flags, envelope, datetime.now(UTC))
    flags |= identity.missing_signature(envelope, pinned[0].name if pinned else "")
    reserved = map(folded, (agent.config.name, PERSON))
    if named or (not owner and folded(sender) in reserved):
        flags["_other_name"] = True  # somebody else's, as far as is known
    if named or not owner:
        flags["_sender"] = UNKNOWN
    return flags


def _channel_flags(agent: Agent, peer: Peer, envelope: Json) -> Json:
    """What the channel says of a message's sender, where its ``from`` says something else."""
    said, own = folded(envelope.get("from")), {folded(peer.name), folded(peer.card.name)}
    names = [each.name for each in agent.peers.every()]
    called = called_as(agent.config.name, names, peer.name, peer.id)
    of_name = [] if said in own else _of_name(agent, envelope.get("from"))
    taken = bool(of_name) or said in map(folded, (agent.config.name, PERSON))
    # A card may bear no name: then there is nothing else to go by, unless the name is another's.
    other = said not in own and (peer.card.name != UNNAMED or taken)
    flags: Json = {"_other_name": True} if other else {}
    if other or called != peer.name:
        flags["_sender"] = called
    signs = next((each for each in (peer, *of_name) if each.row.public_key), None)
    return flags | identity.missing_signature(envelope, signs.name if signs else "")


def _of_name(agent: Agent, name: object) -> list[Peer]:
    """The peers that are called so."""
    wanted = folded(name)
    return [
        each
        for each in agent.peers.every()
        if wanted in (folded(each.name), folded(each.card.name))
    ]


def _envelope(agent: Agent, peer: Peer, frame: Json) -> tuple[Json, Json]:
    """The envelope of a frame as it came, and what is to be said of it.

    What lacks parts (older agents send any object) becomes a text that a reader can see.
    """
    given = outside(frame)
    flags = identity.check_signatures(given, agent.config.secret, peer.row.public_key)
    flags = identity.aged(flags, given, datetime.now(UTC))
    named = given.get("message_id") is not None  # null says as little as nothing
    id = given["message_id"] if named else given.get("id")
    if id is None:
        id = new_id("msg")
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
        raise invalid("message_id: must be a text")
    task_id = given.get("task_id")
    if task_id is not None and not is_path_ident(task_id):
        raise invalid("task_id: must be an id without blanks and without / ? # : %")
    if isinstance(given.get("parts"), list):
        envelope = given if named else {**given, "message_id": id}
        if envelope.get("type") not in (MESSAGE, REPLY):
            flags["_legacy"] = True
    else:
        said = next((given[n] for n in ("text", "content") if isinstance(given.get(n), str)), None)
        text = encode(given).decode() if said is None else said
        envelope = {**given, "message_id": id, "parts": [text_part(text)]}
        envelope["type"] = REPLY if given.get("type") == REPLY else MESSAGE
        envelope.setdefault("role", "agent")
        envelope.setdefault("from", peer.name)
        envelope.setdefault("ts", now_text())
        flags |= {"_legacy": True, "_raw": frame}
    return envelope, flags | _channel_flags(agent, peer, envelope)


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
        raise WireError(
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
    if not room and store.find_message(tx.db, "out", peer.id, id) is None:
        raise WireError(Code.BUSY, f"too many messages are waiting for {peer.name}")

    def make(seq: int) -> tuple[Json, Json]:
        envelope = envelope_of(agent, draft, seq, type)
        return identity.sign_message(envelope, agent.config.secret, agent.identity), {}

    stored = write.add_message(tx, "out", peer.id, id, peer.id, make)
    task: Json | None = None
    task_id = stored.envelope.get("task_id")
    if stored.new:
        write.queue_frame(tx, peer.id, id, encode(stored.envelope).decode(), counts=True)
        task = _task_of(tx, draft, peer)
    elif task_id:
        task = store.find_task(tx.db, task_id)
    queued = not peer.connected and store.is_unacknowledged(tx.db, peer.id, id)
    return Sent(id, stored.seq, queued, task, stored.envelope), stored.new


def _task_of(tx: Tx, draft: Draft, peer: Peer) -> Json | None:
    """The task that a message belongs to; a new one where one was asked for."""
    if draft.task_id is None:
        return None
    known = store.find_task(tx.db, draft.task_id)
    if known or not draft.create_task:
        return known
    return write.create_task(
        tx,
        write.DELEGATED,
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

    from acp_core.protocols.wire.schema.basics import REPLY

    asked = await agent.store.read(lambda db: store.find_asker(db, correlation_id))
    if asked is None:
        raise WireError(Code.NOT_FOUND, "no message with this correlation id arrived")
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

    def work(tx: Tx) -> StoredMessage:
        def make(seq: int) -> tuple[Json, Json]:
            envelope = envelope_of(agent, draft, seq, type)
            return identity.sign_message(envelope, agent.config.secret, agent.identity), {}

        return write.add_message(tx, "out", NOBODY, draft.message_id or "", None, make)

    stored = await agent.store.write(work)
    agent.replied(stored.envelope)
    return Sent(draft.message_id or "", stored.seq, False, None, stored.envelope)
