"""Events as they happen, and again from any place: ``/stream``.

Each follower keeps a place in the agent's durable log and reads on from there. So it gets every
entry once, whether it was there, came back, or is slow.
"""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.http_channel import HttpChannel
from acp_core.protocols.wire.network.channels import until_one_ends
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.schema.basics import (
    TERMINAL,
    Code,
    Json,
    LogEntry,
    WireError,
    invalid,
    now_text,
)
from acp_core.protocols.wire.schema.untrusted_json import encode
from acp_core.protocols.wire.serving.requests import Call, answer

KEEPALIVE = 15.0  # seconds; clients wait for 30

PADDING = b": " + b" " * 1021 + b"\n"

"""Behind the first event: clients that read in blocks of 256 or 512 bytes see that at once."""

BLOCK = 512

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]

_ENDS = tuple(f'"state":"{state.value}"'.encode() for state in TERMINAL)


async def stream(call: Call) -> ASGIApp:
    """``GET /stream``: everything, from now on or from a place."""
    return await _follow(call, None)


async def subscribe(call: Call) -> ASGIApp:
    """``GET /tasks/{id}:subscribe``: what happens to one task, until it is over."""
    id = call.path("id")
    task = await call.agent.store.read(lambda db: store.find_task(db, id))
    if task is None:
        raise WireError(Code.NOT_FOUND, "no such task")
    return await _follow(call, task)


async def _follow(call: Call, task: Json | None) -> ASGIApp:
    agent = call.agent
    oldest, last = await agent.store.read(store.log_bounds)
    given = call.number("since")
    since = -1 if given is None else given
    if since < 0:
        since = last_event_id(call)
    if call.request.method == "HEAD":
        return Response(headers={"content-type": "text/event-stream; charset=utf-8"})
    if agent.hub.followers >= agent.config.limits.streams:
        raise WireError(Code.BUSY, "too many streams are open")
    place = last if since < 0 else min(since, last)
    ready = {
        "type": "acp.ready",
        "ts": now_text(),
        "agent": agent.config.name,
        "seq": last,
        "since": place,
        "missed": max(0, oldest - place - 1),
    }
    blocks = call.request.headers.get("user-agent", "").startswith("Python-urllib")
    return EventStream(agent, place, ready, task, blocks=blocks)


def last_event_id(call: Call) -> int:
    """The number of the event that a follower who comes back had last; -1 where it says none."""
    said = call.request.headers.get("last-event-id", "").strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else -1


class EventStream:
    """An answer that does not end while the follower stays.

    Args:
        place: the number of the last entry that the follower has.
        task: only what happens to this task, until it is over.
        blocks: fill up each piece to whole blocks, for a client that reads such.
    """

    def __init__(
        self, agent: Agent, place: int, ready: Json, task: Json | None, *, blocks: bool
    ) -> None:
        self._agent = agent
        self._place = place
        self._ready = ready
        self._task = task
        self._blocks = blocks
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self._agent.hub.followers += 1
        work = [asyncio.create_task(self._tell(send)), asyncio.create_task(gone(receive))]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._agent.hub.followers -= 1
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await self._send(send, event(self._place, "acp.ready", encode(self._ready)) + PADDING)
        hub, task = self._agent.hub, self._task
        over = task is not None and self._over(task)
        last = hub.last  # what became of a task that is over stands up to here
        going = not over or self._place < last
        while going and not hub.closed:
            if not await hub.grown(self._place, KEEPALIVE):
                await self._send(send, b": keepalive\n\n")
                continue
            entries = await hub.after(self._place, self._agent.store)
            if not entries:
                continue
            self._place = entries[-1].seq
            told = [entry for entry in entries if self._wanted(entry)]
            if told:
                data = b"".join(event(entry.seq, entry.kind, entry.body) for entry in told)
                await self._send(send, data)
            ended = task is not None and any(map(_ends, told))
            going = self._place < last if over else not ended
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, data: bytes) -> None:
        if self._blocks:
            lacking = -(self._sent + len(data)) % BLOCK
            if lacking:
                lacking += BLOCK if lacking < 3 else 0
                data += b":" + b" " * (lacking - 3) + b"\n\n"
        self._sent += len(data)
        await send({"type": "http.response.body", "body": data, "more_body": True})

    def _wanted(self, entry: LogEntry) -> bool:
        return self._task is None or entry.task_id == self._task["id"]

    def _over(self, task: Json) -> bool:
        return task["status"] in {state.value for state in TERMINAL}


def event(seq: int, kind: str, body: bytes) -> bytes:
    """One server-sent event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), body)


def _ends(entry: LogEntry) -> bool:
    return entry.kind == "acp.status" and any(mark in entry.body for mark in _ENDS)


async def gone(receive: Receive) -> None:
    """Wait until nobody is there any more who reads the answer."""
    while (await receive())["type"] != "http.disconnect":
        pass


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

    def __init__(self, visit: HttpChannel, place: int) -> None:
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
