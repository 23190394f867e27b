"""Endpoints that tell about the agent: card, skills, status, link."""

from __future__ import annotations

import time

from starlette.types import ASGIApp

from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.schema import agent_card, bodies
from acp_core.protocols.wire.schema.basics import VERSION, Json, invalid
from acp_core.protocols.wire.serving.requests import ANYBODY, OWNER, Call, answer, page

_SILENT = "this agent does not listen on the local network (--advertise-mdns)"


async def get_card(call: Call) -> ASGIApp:
    """``GET /.well-known/acp.json``: flat, with ``self`` and ``peer`` for older clients.

    A link is a key: only who has one is shown it, and that of a peer only the owner.
    """
    own = call.agent.card()
    if call.rights == ANYBODY:
        own["link"] = None
    if call.rights != OWNER:
        return answer({**own, "self": own, "peer": None})
    connected = [peer for peer in call.agent.peers.every() if peer.connected]
    other = connected[-1].row.card if connected else None
    return answer({**own, "self": own, "peer": other})


async def get_status(call: Call) -> ASGIApp:
    """``GET /status``: figures."""
    agent = call.agent
    known = agent.peers.every()
    connected = [peer for peer in known if peer.connected]
    counters = await agent.store.read(store.count_traffic)
    created = await agent.store.read(store.count_tasks)
    _, last = await agent.store.read(store.log_bounds)
    own = agent.card()
    return answer({
        "ok": True,
        "acp_version": VERSION,
        "version": own["version"],
        "agent_name": agent.config.name,
        "connected": bool(connected),
        "role": "peer",
        "link": agent.public_link,
        "session_id": agent.session_id,
        "instance_id": agent.instance_id,
        "agent_card": own,
        "peer_card": connected[-1].row.card if connected else None,
        "http_port": agent.http_port,
        "ws_port": agent.ws_port,
        "messages_sent": sum(sent for sent, _ in counters.values()),
        "messages_received": sum(came for _, came in counters.values()),
        "messages_deduped": agent.deduped,
        "messages_queued": sum(peer.depth for peer in known),
        "tasks_created": created,
        "started_at": agent.started_at,
        "max_msg_bytes": agent.config.limits.message,
        "server_seq": last,
        "peer_count": len(connected),
        "streams": agent.hub.followers,
    })  # fmt: skip


async def get_link(call: Call) -> ASGIApp:
    """``GET /link``: what peers are given; ``links`` has the one of each binding."""
    agent = call.agent
    return answer({"link": agent.public_link, "session_id": agent.session_id, "links": agent.links})


async def discover(call: Call) -> ASGIApp:
    """``GET /discover``: agents that were heard of on the local network."""
    agent = call.agent
    found, active = agent.heard.listed(time.time()), agent.config.advertise
    note = "anyone on the network can announce anything" if active else _SILENT
    content: Json = {"lan_peers": found, "peers": found, "count": len(found)}
    return answer({**content, "mdns_active": active, "note": note})


async def skill_list(call: Call) -> ASGIApp:
    """``GET /skills``: a bare list, or a page where JSON is asked for by name."""
    limit, offset = call.count("limit"), call.count("offset")
    tag, query = call.text("tag"), call.text("q")
    fitting = agent_card.find_skills(call.agent.config.skills, query or "", 1000)
    if tag is not None:
        fitting = [skill for skill in fitting if tag in (skill.get("tags") or [])]
    plain = [{k: v for k, v in skill.items() if k != "match_score"} for skill in fitting]
    found = plain[offset : offset + limit]
    return answer(page(found, len(plain), limit, offset, "skills") if call.wrapped else found)


async def skill_query(call: Call) -> ASGIApp:
    """``POST /skills/query`` (core specification, section 9), and as GET with a query."""
    if call.request.method == "POST":
        body = await call.body(empty=True)
    else:
        body = {name: call.text(name) for name in ("query", "skill_id", "capability")}
        body["limit"] = call.number("limit")
    given: int | None = bodies.take(body, "limit")
    limit = 5 if given is None else given
    wanted = bodies.take(body, "skill_id") or bodies.take(body, "capability")
    query = bodies.take(body, "query")
    config = call.agent.config
    found = agent_card.find_skills(config.skills, query or wanted or "", min(limit, 1000))
    content: Json = {"ok": True, "skills": found, "agent": config.name}
    if wanted and query is None:
        largest = config.limits.message
        content |= agent_card.support(config.skills, wanted, config.name, body, largest)
    return answer(content)


async def list_peers(call: Call) -> ASGIApp:
    """``GET /peers``: a bare list, or an object where JSON is asked for by name."""
    found = await call.agent.peers.as_json(call.agent.peers.every())
    if not call.wrapped:
        return answer(found)
    active = sum(peer["connected"] for peer in found)
    return answer({"peers": found, "count": len(found), "active": active})


async def get_peer(call: Call) -> ASGIApp:
    """``GET /peer/{id}``."""
    peer = call.agent.peers.get(call.path("id"))
    return answer((await call.agent.peers.as_json([peer]))[0])


async def connect_peer(call: Call) -> ASGIApp:
    """``POST /peers/connect``: keep a connection to the agent behind a link."""
    body = await call.body()
    link = bodies.take(body, "link")
    if link is None:
        raise invalid("link is missing")
    peer, known = await call.agent.peers.connect(link, bodies.take(body, "name"))
    content = {"ok": True, "peer_id": peer.id, "connecting_to": link, "name": peer.name}
    return answer({**content, "already_connected": True} if known else content)


async def rename_peer(call: Call) -> ASGIApp:
    """``POST /peer/{id}/rename``."""
    body = await call.body()
    name = bodies.take(body, "name")
    if name is None:
        raise invalid("name is missing")
    peer = call.agent.peers.get(call.path("id"))
    before = await call.agent.peers.rename(peer, name)
    return answer({"ok": True, "peer_id": peer.id, "old_name": before, "new_name": name})


async def move_peer(call: Call) -> ASGIApp:
    """``POST /peer/{id}/move``: let another peer get what waits for this one."""
    body = await call.body()
    to = bodies.take(body, "to")
    if to is None:
        raise invalid("to is missing")
    peers = call.agent.peers
    old, new = peers.get(call.path("id")), peers.get(to)
    moved = await peers.move(old, new)
    return answer({"ok": True, "peer_id": old.id, "to": new.id, "moved": moved})


async def forget_peer(call: Call) -> ASGIApp:
    """``DELETE /peer/{id}``: forget it, and what waits for it."""
    peer = call.agent.peers.get(call.path("id"))
    await call.agent.peers.forget(peer)
    return answer({"ok": True, "peer_id": peer.id})


async def register(call: Call) -> ASGIApp:
    """``POST /webhooks/register``."""
    url = bodies.take(await call.body(), "url")
    await call.agent.webhooks.register(url)
    return answer({"ok": True, "registered": url, "total": len(call.agent.webhooks.urls)})


async def deregister(call: Call) -> ASGIApp:
    """``POST /webhooks/deregister``."""
    await call.agent.webhooks.deregister(bodies.take(await call.body(), "url"))
    return answer({"ok": True, "remaining": len(call.agent.webhooks.urls)})
