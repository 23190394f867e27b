"""Endpoints of binding D between agents: a channel, its frames in, and its frames out."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.conduct.agent.visits import Visit
from acp_core.protocols.wire.network.http.calls import Call, answer
from acp_core.protocols.wire.network.http.stream import (
    HEADERS,
    KEEPALIVE,
    event,
    gone,
    last_event_id,
)
from acp_core.protocols.wire.network.task_group import until_one_ends
from acp_core.protocols.wire.schema import invalid
from acp_core.protocols.wire.schema.decode import encode

FRAME, END = "acp.frame", "acp.end"


async def begin(call: Call) -> ASGIApp:
    """``POST /channel``: be a peer over HTTP alone."""
    await call.body(empty=True)
    id = call.agent.visits.begin().id
    return answer({"ok": True, "channel": id, "stream": f"/channel/{id}/stream"}, 201)


async def take(call: Call) -> ASGIApp:
    """``POST /channel/{id}``: frames, one per line."""
    visit = call.agent.visits.get(call.path("id"))
    try:
        text = (await call.data()).decode()
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8 text") from None
    lines = [line for line in text.split("\n") if line.strip()]
    return answer(
        {"ok": True, "taken": await visit.take(lines, call.number("seq"), call.number("seen"))}
    )


async def end(call: Call) -> ASGIApp:
    """``DELETE /channel/{id}``: end it."""
    visit = call.agent.visits.get(call.path("id"))
    await visit.close("the other side closed the connection")
    return answer({"ok": True, "channel": visit.id})


async def follow(call: Call) -> ASGIApp:
    """``GET /channel/{id}/stream``: the frames for who opened it, as events."""
    visit = call.agent.visits.get(call.path("id"))
    since = call.number("since")
    place = last_event_id(call) if since is None else since
    return FrameStream(visit, max(place, 0))


class FrameStream:
    """The frames of a channel behind a place, as an answer that ends with the channel."""

    def __init__(self, visit: Visit, place: int) -> None:
        self._visit = visit
        self._follower = visit.follow(place)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await until_one_ends(self._tell(send), gone(receive))
        finally:
            self._visit.left(self._follower)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await self._send(send, b": frames follow\n\n")
        visit = self._visit
        while visit.followed_by(self._follower):
            frames = await visit.after(self._place, self._follower, KEEPALIVE)
            if frames:
                self._place = frames[-1].number
                data = (event(each.number, FRAME, each.text.encode()) for each in frames)
                await self._send(send, b"".join(data))
            elif visit.why:
                await self._send(send, event(self._place, END, encode({"reason": visit.why})))
                break
            else:
                await self._send(send, b": keepalive\n\n")
        await asyncio.shield(send({"type": "http.response.body", "body": b""}))

    async def _send(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
