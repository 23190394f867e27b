"""Endpoints of messages: sending, reading again, replies."""

from __future__ import annotations

from functools import partial

from starlette.types import ASGIApp

from acp_core.protocols.wire.conduct import messages as conduct_messages
from acp_core.protocols.wire.conduct.messages import Sent
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.read.store import MessageFilter
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import Code, Json, WireError, invalid, is_name
from acp_core.protocols.wire.schema.bodies import Draft, data_part
from acp_core.protocols.wire.schema.untrusted_json import decode_object
from acp_core.protocols.wire.serving.requests import PEER, Call, answer, page
from acp_core.protocols.wire.write import records


async def send(call: Call) -> ASGIApp:
    """``POST /message:send``: the owner sends, anybody else's message arrives."""
    body = await call.message()
    return await _send(call, body, bodies.draft(body))


async def send_to(call: Call) -> ASGIApp:
    """``POST /peer/{id}/send``: the same, to one peer."""
    body = await call.message()
    draft = bodies.draft(body)
    peer = call.agent.peers.get(call.path("id"))
    sent = await conduct_messages.send(call.agent, draft, peer.id)
    return await _answer(call, draft, sent, peer_id=peer.id)


async def send_anything(call: Call) -> ASGIApp:
    """``POST /send``, as older clients do it: any object."""
    body = await call.message()
    if not any(name in body for name in ("parts", "text", "content")):
        body = {"parts": [data_part(body)], "role": "user", "message_id": body.get("message_id")}
    body.setdefault("role", "user")
    draft = bodies.draft(body)
    sent = await conduct_messages.send(call.agent, draft, draft.peer_id)
    return answer({"ok": True, "id": sent.message_id, "message_id": sent.message_id})


async def _send(call: Call, body: Json, draft: Draft) -> ASGIApp:
    agent = call.agent
    if call.rights == PEER or draft.sender not in (None, agent.config.name):
        sender = draft.sender or "unnamed"
        if not is_name(sender):
            raise invalid("from: must be the name of an agent (1 to 64 printable characters)")
        owner = call.rights != PEER
        sent = await conduct_messages.post(agent, body, draft, sender, owner=owner)
        return await _answer(call, draft, sent)
    sent = await conduct_messages.send(agent, draft, draft.peer_id)
    return await _answer(call, draft, sent)


async def _answer(call: Call, draft: Draft, sent: Sent, **more: object) -> ASGIApp:
    content: Json = {
        "ok": True,
        "message_id": sent.message_id,
        "server_seq": sent.seq,
        "task": sent.task,
        **more,
    }
    if sent.queued:
        content["queued"] = True
    if draft.sync:
        correlation = str(sent.envelope.get("correlation_id"))
        reply = await call.agent.reply_to(correlation, draft.timeout)
        if reply is None:
            raise WireError(Code.TIMEOUT, "no reply came in time", failed=sent.message_id)
        content["reply"] = reply
    return answer(content, 202 if sent.queued else 200)


async def reply(call: Call) -> ASGIApp:
    """``POST /reply``: answer a message that waits for it."""
    body = await call.message()
    correlation = bodies.take(body, "correlation_id")
    if correlation is None:
        raise invalid("correlation_id is missing")
    if body.get("role") is None:
        body = {**body, "role": "agent"}
    sent = await conduct_messages.reply(call.agent, correlation, bodies.draft(body))
    content = {"ok": True, "message_id": sent.message_id, "server_seq": sent.seq}
    return answer(
        {**content, "queued": True} if sent.queued else content, 202 if sent.queued else 200
    )


async def wait_reply(call: Call) -> ASGIApp:
    """``GET /wait/{correlation_id}``: the reply to a message, when it comes."""
    seconds = bodies.bounded_seconds(call.text("timeout"), "timeout")
    found = await call.agent.reply_to(call.path("id"), seconds)
    if found is None:
        raise WireError(Code.TIMEOUT, "no reply came in time")
    return answer({"ok": True, "reply": found})


async def poll(call: Call) -> ASGIApp:
    """``GET /recv``: what arrived since the last call; nothing is told twice."""
    limit = call.count("limit")
    found, remaining = await call.agent.store.write(lambda tx: records.take_unpolled(tx, limit))
    return answer({"messages": found, "count": len(found), "remaining": remaining})


async def listing(call: Call) -> ASGIApp:
    """``GET /messages``: what was sent and what arrived, with filters, by pages."""
    return await _page(call, call.text("context_id"))


async def context(call: Call) -> ASGIApp:
    """``GET /context/{id}/messages``: one conversation (core specification, section 6.3)."""
    return await _page(call, call.path("id"))


async def _page(call: Call, context_id: str | None) -> ASGIApp:
    limit, offset = call.count("limit"), call.count("offset")
    role, direction = call.text("role"), call.text("direction")
    after = call.time("received_after")
    since = call.number("since_seq")
    wanted = MessageFilter(
        peer_id=call.text("peer_id"),
        role=role,
        context_id=context_id,
        task_id=call.text("task_id"),
        direction=direction,
        since_seq=since,
        received_after=after.timestamp() if after else None,
    )
    _, newest = call.newest_first("seq")
    found, total = await call.agent.store.read(
        lambda db: read_store.find_messages(db, wanted, limit, offset, newest=newest)
    )
    content = page(found, total, limit, offset, "messages")
    return answer({"context_id": context_id, **content} if context_id else content)


async def history(call: Call) -> ASGIApp:
    """``GET /history``: the latest messages that arrived, oldest first."""
    limit = call.count("limit")
    found, total = await call.agent.store.read(
        lambda db: read_store.find_messages(db, MessageFilter(direction="in"), limit, newest=True)
    )
    return answer({"history": found[::-1], "total": total})


async def offline_queue(call: Call) -> ASGIApp:
    """``GET /offline-queue``: what waits for peers that are away."""
    store, limit = call.agent.store, call.agent.config.limits.queue
    depths = await store.read(read_store.queue_depths)
    queue: Json = {}
    for peer_id, (depth, oldest) in depths.items():
        rows = await store.read(
            partial(read_store.outgoing_after, peer_id=peer_id, after=0, limit=100)
        )
        frames = [decode_object(row.frame) for row in rows]
        queue[peer_id] = {"depth": depth, "oldest": oldest, "messages": frames}
    total = sum(depth for depth, _ in depths.values())
    content = {"total_queued": total, "max_per_peer": limit, "queue": queue}
    return answer(content)
