"""Endpoints of peers (core specification, section 8)."""

from __future__ import annotations

from starlette.types import ASGIApp

from acp_core.protocols.wire.network.http.calls import Call, answer
from acp_core.protocols.wire.schema import bodies, invalid


async def listing(call: Call) -> ASGIApp:
    """``GET /peers``: a bare list, or an object where JSON is asked for by name."""
    found = await call.agent.peers.as_json(call.agent.peers.every())
    if not call.wrapped:
        return answer(found)
    active = sum(peer["connected"] for peer in found)
    return answer({"peers": found, "count": len(found), "active": active})


async def get(call: Call) -> ASGIApp:
    """``GET /peer/{id}``."""
    peer = call.agent.peers.get(call.path("id"))
    return answer((await call.agent.peers.as_json([peer]))[0])


async def connect(call: Call) -> ASGIApp:
    """``POST /peers/connect``: keep a connection to the agent behind a link."""
    body = await call.body()
    link = bodies.take(body, "link")
    if link is None:
        raise invalid("link is missing")
    peer, known = await call.agent.peers.connect(link, bodies.take(body, "name"))
    content = {"ok": True, "peer_id": peer.id, "connecting_to": link, "name": peer.name}
    return answer({**content, "already_connected": True} if known else content)


async def rename(call: Call) -> ASGIApp:
    """``POST /peer/{id}/rename``."""
    body = await call.body()
    name = bodies.take(body, "name")
    if name is None:
        raise invalid("name is missing")
    peer = call.agent.peers.get(call.path("id"))
    before = await call.agent.peers.rename(peer, name)
    return answer({"ok": True, "peer_id": peer.id, "old_name": before, "new_name": name})


async def move(call: Call) -> ASGIApp:
    """``POST /peer/{id}/move``: let another peer get what waits for this one."""
    body = await call.body()
    to = bodies.take(body, "to")
    if to is None:
        raise invalid("to is missing")
    peers = call.agent.peers
    old, new = peers.get(call.path("id")), peers.get(to)
    moved = await peers.move(old, new)
    return answer({"ok": True, "peer_id": old.id, "to": new.id, "moved": moved})


async def forget(call: Call) -> ASGIApp:
    """``DELETE /peer/{id}``: forget it, and what waits for it."""
    peer = call.agent.peers.get(call.path("id"))
    await call.agent.peers.forget(peer)
    return answer({"ok": True, "peer_id": peer.id})
