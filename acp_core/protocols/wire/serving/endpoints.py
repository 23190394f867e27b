"""The endpoints (core specification, section 3): the agent and its peers, messages, tasks; their table and description.

One table names every endpoint; the application serves them, and their OpenAPI description is made of
it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire import state, write
from acp_core.protocols.wire.conduct import peers as conduct_peers
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.peers import Sent
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.read.store import MessageFilter, TaskFilter
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import (
    ROLES,
    STATUS,
    TERMINAL,
    VERSION,
    Code,
    Json,
    TaskState,
    WireError,
    decode_object,
    invalid,
    is_name,
    new_id,
)
from acp_core.protocols.wire.schema.bodies import (
    FIELDS,
    SENDING,
    Draft,
    check_parts,
    data_part,
    parts_of,
)
from acp_core.protocols.wire.serving import http
from acp_core.protocols.wire.serving.http import (
    ANYBODY,
    OWNER,
    PEER,
    Call,
    Endpoint,
    Guard,
    Param,
    answer,
    limit_params,
    page,
    refuse,
    serve,
)
from acp_core.protocols.wire.write import Tx

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
    fitting = bodies.find_skills(call.agent.config.skills, query or "", 1000)
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
    found = bodies.find_skills(config.skills, query or wanted or "", min(limit, 1000))
    content: Json = {"ok": True, "skills": found, "agent": config.name}
    if wanted and query is None:
        largest = config.limits.message
        content |= bodies.support(config.skills, wanted, config.name, body, largest)
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


def _needed(body: Json, name: str) -> str:
    value: str | None = bodies.take(body, name)
    if value is None:
        raise invalid(f"{name} is missing")
    return value


async def connect_peer(call: Call) -> ASGIApp:
    """``POST /peers/connect``: keep a connection to the agent behind a link."""
    body = await call.body()
    link = _needed(body, "link")
    peer, known = await call.agent.peers.connect(link, bodies.take(body, "name"))
    content = {"ok": True, "peer_id": peer.id, "connecting_to": link, "name": peer.name}
    return answer({**content, "already_connected": True} if known else content)


async def rename_peer(call: Call) -> ASGIApp:
    """``POST /peer/{id}/rename``."""
    body = await call.body()
    name = _needed(body, "name")
    peer = call.agent.peers.get(call.path("id"))
    before = await call.agent.peers.rename(peer, name)
    return answer({"ok": True, "peer_id": peer.id, "old_name": before, "new_name": name})


async def move_peer(call: Call) -> ASGIApp:
    """``POST /peer/{id}/move``: let another peer get what waits for this one."""
    body = await call.body()
    to = _needed(body, "to")
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


async def send_message(call: Call) -> ASGIApp:
    """``POST /message:send``: the owner sends, anybody else's message arrives."""
    body = await call.message()
    return await _send(call, body, bodies.draft(body))


async def send_to(call: Call) -> ASGIApp:
    """``POST /peer/{id}/send``: the same, to one peer."""
    body = await call.message()
    draft = bodies.draft(body)
    peer = call.agent.peers.get(call.path("id"))
    sent = await conduct_peers.send(call.agent, draft, peer.id)
    return await _answer(call, draft, sent, peer_id=peer.id)


async def send_anything(call: Call) -> ASGIApp:
    """``POST /send``, as older clients do it: any object."""
    body = await call.message()
    if not any(name in body for name in ("parts", "text", "content")):
        body = {"parts": [data_part(body)], "role": "user", "message_id": body.get("message_id")}
    body.setdefault("role", "user")
    draft = bodies.draft(body)
    sent = await conduct_peers.send(call.agent, draft, draft.peer_id)
    return answer({"ok": True, "id": sent.message_id, "message_id": sent.message_id})


async def _send(call: Call, body: Json, draft: Draft) -> ASGIApp:
    agent = call.agent
    if call.rights == PEER or draft.sender not in (None, agent.config.name):
        sender = draft.sender or "unnamed"
        if not is_name(sender):
            raise invalid("from: must be the name of an agent (1 to 64 printable characters)")
        owner = call.rights != PEER
        sent = await conduct_peers.post(agent, body, draft, sender, owner=owner)
        return await _answer(call, draft, sent)
    sent = await conduct_peers.send(agent, draft, draft.peer_id)
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


async def reply_to_message(call: Call) -> ASGIApp:
    """``POST /reply``: answer a message that waits for it."""
    body = await call.message()
    correlation = _needed(body, "correlation_id")
    if body.get("role") is None:
        body = {**body, "role": "agent"}
    sent = await conduct_peers.reply(call.agent, correlation, bodies.draft(body))
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


async def poll_messages(call: Call) -> ASGIApp:
    """``GET /recv``: what arrived since the last call; nothing is told twice."""
    limit = call.count("limit")
    found, remaining = await call.agent.store.write(lambda tx: write.take_unpolled(tx, limit))
    return answer({"messages": found, "count": len(found), "remaining": remaining})


async def list_messages(call: Call) -> ASGIApp:
    """``GET /messages``: what was sent and what arrived, with filters, by pages."""
    return await _page(call, call.text("context_id"))


async def list_context(call: Call) -> ASGIApp:
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


Changing = Callable[[Tx], tuple[Json, bool]]

"""Changes a task; says also whether its peer will be told."""

_PAUSES = {TaskState.INPUT_REQUIRED.value, *(each.value for each in TERMINAL)}


async def list_tasks(call: Call) -> ASGIApp:
    """``GET /tasks``: a bare list, or a page where JSON is asked for by name."""
    status = call.text("status", "state")
    limit, offset = call.count("limit"), call.count("offset")
    cursor = call.text("cursor")
    sort, newest = call.newest_first("created_at", "updated_at")
    wanted = TaskFilter(
        status=status,
        peer_id=call.text("peer_id"),
        context_id=call.text("context_id"),
        direction=call.text("direction"),
        created_after=call.time_text("created_after"),
        updated_after=call.time_text("updated_after"),
    )
    found, total = await call.agent.store.read(
        lambda db: store.find_tasks(
            db, wanted, limit, offset, sort=sort, newest=newest, cursor=cursor
        )
    )
    if not call.wrapped:
        return answer(found)
    content = page(found, total, limit, offset, "tasks")
    content["next_cursor"] = found[-1]["id"] if found and len(found) == limit else None
    return answer(content)


async def create_task(call: Call) -> ASGIApp:
    """``POST /tasks``: a task of our own, for a peer (``delegate``), or from a peer."""
    body = await call.body()
    role = body.get("role")
    if role is not None and role not in ROLES:
        raise invalid('role: must be "user" or "agent"')
    parts = _input(body)
    id, context = bodies.take(body, "task_id"), bodies.take(body, "context_id")
    message_id, peer_id = bodies.take(body, "message_id"), bodies.take(body, "peer_id")
    if call.rights != PEER and (bodies.take(body, "delegate") or peer_id is not None):
        return await _delegate(call, parts, id, context, message_id, peer_id)
    direction = write.RECEIVED if call.rights == PEER else write.LOCAL

    def work(tx: Tx) -> Json:
        return write.create_task(
            tx, direction, parts, id=id, message_id=message_id, context_id=context
        )

    return _task_answer(await call.agent.store.write(work), 201)


async def _delegate(
    call: Call,
    parts: list[Json],
    id: str | None,
    context: str | None,
    message_id: str | None,
    peer_id: str | None,
) -> ASGIApp:
    draft = Draft(
        parts,
        "user",
        message_id,
        id or new_id("task"),
        context,
        peer_id,
        None,
        False,
        0.0,
        True,
        {},
    )
    sent = await conduct_peers.send(call.agent, draft, peer_id)
    if sent.task is None:
        raise WireError(Code.NOT_FOUND, "the message was sent before, without a task")
    return _task_answer(sent.task, 201)


def _input(body: Json) -> list[Json]:
    """What a new task is about, in whichever form it was given."""
    given = body.get("input")
    if isinstance(given, dict) and "parts" in given:
        return check_parts(given["parts"])
    for value in (body, given, body.get("payload")):
        if isinstance(value, dict):
            parts = parts_of(value)
            if parts is not None:
                return parts
    for name in ("payload", "input"):
        if body.get(name) is not None:
            return [data_part(body[name])]
    raise invalid("parts, text, input or payload is missing")


async def get_task(call: Call) -> ASGIApp:
    """``GET /tasks/{id}``."""
    return answer(await _task(call))


async def _task(call: Call) -> Json:
    id = call.path("id")
    task = await call.agent.store.read(lambda db: store.find_task(db, id))
    if task is None or not _may_see(call, task):
        raise WireError(Code.NOT_FOUND, "no such task")
    return task


def _may_see(call: Call, task: Json) -> bool:
    """Who showed the link's token sees the tasks that came in this way; at a bridge, all."""
    all_of_them = call.rights != PEER or call.agent.bridge is not None
    return all_of_them or (task["direction"] == write.RECEIVED and task["peer_id"] is None)


async def update_task(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:update``: the worker says where the task stands."""
    body = await call.body()
    await _task(call)
    given = body.get("status", body.get("state"))
    if given is None:
        raise invalid("status is missing")
    wanted, artifact = state.task_state(given), write.artifact_of(body)
    error, id = bodies.take(body, "error"), call.path("id")

    def work(tx: Tx) -> tuple[Json, bool]:
        task = write.task_known(tx, id)
        if task["direction"] == write.DELEGATED:
            raise WireError(
                Code.FORBIDDEN, "only the peer that works on this task can report on it"
            )
        news = write.update_task(tx, task, wanted, artifact, error)
        return task, news and write.tell_task(tx, task)

    return _task_answer(await _changed(call, work))


async def cancel_task(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:cancel``; one that is canceled already stays so."""
    await call.body(empty=True)
    await _task(call)
    id = call.path("id")

    def work(tx: Tx) -> tuple[Json, bool]:
        task = write.task_known(tx, id)
        news = write.update_task(tx, task, TaskState.CANCELED, None, None)
        return task, news and write.tell_task(tx, task)

    task = await _changed(call, work)
    return answer({**task, "ok": True, "task_id": id, "task": task})


async def resume_task(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:continue``: the input for which the task waits."""
    body = await call.body()
    task, parts = await _task(call), parts_of(body)
    if parts is None:
        raise invalid("parts (or text) is missing")
    state.resumed(TaskState(task["status"]))
    id, agent = call.path("id"), call.agent
    message_id = bodies.take(body, "message_id") or new_id("msg")
    if task["direction"] == write.DELEGATED:
        context = task["context_id"]
        draft = Draft(parts, "user", message_id, id, context, None, None, False, 0.0, False, {})
        await conduct_peers.send(agent, draft, task["peer_id"])

    def work(tx: Tx) -> tuple[Json, bool]:
        now = write.task_known(tx, id)
        write.update_task(tx, now, state.resumed(TaskState(now["status"])), None, None)
        if now["direction"] == write.DELEGATED:
            return now, False
        envelope = {"type": "acp.message", "message_id": message_id, "ts": now["updated_at"],
                    "from": agent.config.name, "role": "user", "parts": parts, "task_id": id}  # fmt: skip
        if now["context_id"]:
            envelope["context_id"] = now["context_id"]
        write.add_message(tx, "in", "owner", message_id, now["peer_id"], lambda seq: (envelope, {}))
        return now, write.tell_task(tx, now)

    return _task_answer(await _changed(call, work))


async def wait_task(call: Call) -> ASGIApp:
    """``GET /tasks/{id}/wait``: the task when it is over or asks something; 202 when it is not."""
    seconds = bodies.bounded_seconds(call.text("timeout"), "timeout")
    began, hub = time.monotonic(), call.agent.hub
    while True:
        place = hub.last
        task = await _task(call)
        left = began + seconds - time.monotonic()
        waited = round(time.monotonic() - began, 3)
        if task["status"] in _PAUSES:
            return answer({"ok": True, "task": task, "waited": waited})
        if left <= 0 or hub.closed:
            return answer({"ok": True, "task": task, "waited": waited, "timeout": True}, 202)
        await hub.grown(place, left)
        await asyncio.sleep(0)


async def _changed(call: Call, work: Changing) -> Json:
    task, told = await call.agent.store.write(work)
    if told:
        call.agent.peers.queued(task["peer_id"])
    return task


def _task_answer(task: Json, status: int = 200) -> ASGIApp:
    return answer({**task, "ok": True, "task": task}, status)


def application(agent: Agent) -> ASGIApp:
    """The agent's HTTP interface as an ASGI application."""
    return Guard(_Router(agent), agent)


class _Router:
    """Finds the endpoint of a request: most stand under a plain path and need no search."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._plain: dict[str, dict[str, Endpoint]] = {}
        self._others: list[tuple[re.Pattern[str], dict[str, Endpoint]]] = []
        named: dict[str, dict[str, Endpoint]] = {}
        for place in endpoints_of(agent):
            for path in place.paths:
                methods = named if "{" in path else self._plain
                methods.setdefault(path, {})[place.method] = place
        self._others = [(compile_path(path)[0], methods) for path, methods in named.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        found, params = self._find(scope["path"])
        method = scope["method"]
        place = found.get("GET" if method == "HEAD" else method)
        if place is None:
            await _unknown(method, bool(found))(scope, receive, send)
            return
        scope["path_params"] = params
        app = await serve(self._agent, place, Request(scope, receive))
        await app(scope, receive, send)

    def _find(self, path: str) -> tuple[dict[str, Endpoint], dict[str, str]]:
        plain = self._plain.get(path)
        if plain is not None:
            return plain, {}
        for pattern, methods in self._others:
            match = pattern.match(path)
            if match:
                return methods, match.groupdict()
        return {}, {}


def _unknown(method: str, known: bool) -> Response:
    """What has no endpoint. ``OPTIONS`` lets no web page in: no header says that one may ask."""
    if method == "OPTIONS":
        return Response(status_code=204, headers={"allow": "GET, POST, DELETE, OPTIONS"})
    if known:
        return refuse(WireError(Code.INVALID, f"{method} is not possible here"), 405)
    return refuse(WireError(Code.NOT_FOUND, "no such endpoint"))


_STATES = tuple(state.value for state in TaskState)

_MESSAGES = (
    *limit_params(20), Param("sort"), Param("role", choices=ROLES), Param("peer_id"), Param("task_id"),
    Param("direction", choices=("in", "out")), Param("since_seq", "number"),
    Param("received_after", "time"),
)  # fmt: skip

_TASKS = (
    *limit_params(100), Param("sort"), Param("cursor"), Param("peer_id"), Param("context_id"),
    Param("direction"), Param("created_after", "time"), Param("updated_after", "time"),
    Param("status", choices=_STATES), Param("state", choices=_STATES),
)  # fmt: skip

_SKILL = ("query", "skill_id", "capability", "limit", "constraints")

_CREATE = (
    "parts", "text", "content", "role", "input", "payload", "message_id", "task_id", "context_id",
    "peer_id", "delegate",
)  # fmt: skip

_UPDATE = ("status", "state", "artifact", "output", "error")

_SINCE = (Param("since", "number"),)

_TIMEOUT = (Param("timeout", "seconds"),)

_SENT, _NOT_SENT = (200, 202), (404, 408, 429, 503)


async def get_openapi(call: Call) -> ASGIApp:
    """``GET /openapi.json``."""
    return answer(describe_endpoints(endpoints_of(call.agent), call.agent.config.token_needed))


ENDPOINTS = (
    Endpoint("GET", ("/.well-known/acp.json", "/card"), get_card, True, public=True),
    Endpoint("GET", ("/openapi.json",), get_openapi, True, public=True),
    Endpoint("GET", ("/status",), get_status, readers=True),
    Endpoint("GET", ("/link",), get_link),
    Endpoint("GET", ("/discover",), discover),
    Endpoint("GET", ("/skills",), skill_list, True, query=(*limit_params(100), Param("tag"), Param("q"))),
    Endpoint("GET", ("/skills/query",), skill_query, True,
          query=(Param("query"), Param("skill_id"), Param("capability"), Param("limit", "number", 5))),
    Endpoint("POST", ("/skills/query",), skill_query, True, body=_SKILL, empty=True),
    Endpoint("POST", ("/message:send",), send_message, True, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/send",), send_anything, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/reply",), reply_to_message, body=SENDING, needed=("correlation_id",), gives=_SENT, refuses=_NOT_SENT),
    Endpoint("GET", ("/wait/{id}",), wait_reply, query=_TIMEOUT, refuses=(408,)),
    Endpoint("GET", ("/recv",), poll_messages, query=(Param("limit", "number", 50, 1, 1000),)),
    Endpoint("GET", ("/messages",), list_messages, readers=True, query=(*_MESSAGES, Param("context_id"))),
    Endpoint("GET", ("/context/{id}/messages",), list_context, readers=True,
          query=(*limit_params(100), *_MESSAGES[2:])),
    Endpoint("GET", ("/history",), history, query=(Param("limit", "number", 100, 1, 1000),)),
    Endpoint("GET", ("/offline-queue",), offline_queue),
    Endpoint("GET", ("/stream",), http.stream, readers=True, query=_SINCE, streams=True, refuses=(429,)),
    Endpoint("GET", ("/peers",), list_peers),
    Endpoint("POST", ("/peers/connect",), connect_peer, body=("link", "name"), needed=("link",), refuses=(429,)),
    Endpoint("POST", ("/peer/{id}/send", "/peers/{id}/send"), send_to, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/peer/{id}/rename", "/peers/{id}/rename"), rename_peer, body=("name",),
          needed=("name",), refuses=(404,)),
    Endpoint("POST", ("/peer/{id}/move", "/peers/{id}/move"), move_peer, body=("to",), needed=("to",),
          refuses=(404,)),
    Endpoint("GET", ("/peer/{id}", "/peers/{id}"), get_peer, refuses=(404,)),
    Endpoint("DELETE", ("/peer/{id}", "/peers/{id}"), forget_peer, refuses=(404,)),
    Endpoint("POST", ("/webhooks/register",), register, body=("url",), needed=("url",), refuses=(429,)),
    Endpoint("POST", ("/webhooks/deregister",), deregister, body=("url",), needed=("url",)),
    Endpoint("POST", ("/channel",), http.begin, True, body=(), empty=True, gives=(201,)),
    Endpoint("POST", ("/channel/{id}",), http.take, True, lines=True, refuses=(404,),
          query=(Param("seq", "number", low=1), Param("seen", "number"))),
    Endpoint("GET", ("/channel/{id}/stream",), http.follow, True, query=_SINCE, streams=True, refuses=(404,)),
    Endpoint("DELETE", ("/channel/{id}",), http.end, True, refuses=(404,)),
    Endpoint("GET", ("/tasks",), list_tasks, readers=True, query=_TASKS),
    Endpoint("POST", ("/tasks", "/tasks/create"), create_task, True, body=_CREATE, gives=(201,),
          refuses=(404, 429, 503)),
    Endpoint("POST", ("/tasks/{id}:cancel", "/tasks/{id}/cancel"), cancel_task, True, body=(), empty=True,
          refuses=(404,)),
    Endpoint("POST", ("/tasks/{id}:continue", "/tasks/{id}/continue"), resume_task, True,
          body=("parts", "text", "content", "message_id"), refuses=(404, 429, 503)),
    Endpoint("POST", ("/tasks/{id}:update", "/tasks/{id}/update"), update_task, body=_UPDATE, refuses=(404,)),
    Endpoint("GET", ("/tasks/{id}:subscribe", "/tasks/{id}/subscribe"), http.subscribe, query=_SINCE,
          streams=True, refuses=(404, 429)),
    Endpoint("GET", ("/tasks/{id}/wait", "/tasks/{id}:wait"), wait_task, True, query=_TIMEOUT,
          gives=(200, 202), refuses=(404,)),
    Endpoint("GET", ("/tasks/{id}",), get_task, True, refuses=(404,)),
    Endpoint("DELETE", ("/tasks/{id}",), cancel_task, body=(), empty=True, refuses=(404,)),
)  # fmt: skip


def endpoints_of(agent: Agent) -> tuple[Endpoint, ...]:
    """The endpoints of an agent; a bridge has more."""
    return (*ENDPOINTS, *(agent.bridge.endpoints if agent.bridge else ()))


_ALWAYS = (400, 401, 403, 429, 500)  # what every endpoint may answer

_BODIES = (408, 413)  # and every one that takes a body

_PART = re.compile(r"{(\w+)}")

_PLAIN: Json = {"type": "string"}

_KINDS: dict[str, Json] = {
    "text": _PLAIN,
    "number": {"type": "integer"},
    "time": {"type": "string", "format": "date-time"},
    "seconds": {"type": "number", "minimum": 0},
}

_ERROR: Json = {
    "type": "object",
    "required": ["ok", "error_code", "error"],
    "properties": {
        "ok": {"const": False},
        "error_code": {"enum": [code.value for code in Code]},
        "error": _PLAIN,
        "message": _PLAIN,
        "ts": {"type": "string", "format": "date-time"},
        "failed_message_id": _PLAIN,
    },
}


def describe_endpoints(places: tuple[Endpoint, ...], token_needed: bool) -> Json:
    """The OpenAPI document (3.1) of these endpoints."""
    from acp_core import __version__

    paths: dict[str, Json] = {}
    for place in places:
        for path in place.paths:
            paths.setdefault(path, {})[place.method.lower()] = _operation(place, path)
    document: Json = {
        "openapi": "3.1.0",
        "info": {"title": "ACP v0.8 agent", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    if token_needed:
        document["security"] = [{"bearer": []}]
    return document


def _operation(place: Endpoint, path: str) -> Json:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PART.findall(path)
    ]
    operation: Json = {
        "operationId": _name(place.method, path),
        "summary": (place.endpoint.__doc__ or "").strip().splitlines()[0],
        "parameters": named + [_parameter(each) for each in place.query],
        "responses": _responses(place),
    }
    if place.public:
        operation["security"] = []
    if place.body is not None:
        content = {"application/json": {"schema": _body(place)}}
        operation["requestBody"] = {"required": not place.empty, "content": content}
    if place.lines:
        content = {"application/x-ndjson": {"schema": _PLAIN}}
        operation["requestBody"] = {"required": False, "content": content}
    return operation


def _name(method: str, path: str) -> str:
    words = re.findall(r"[a-z]+", f"{method} {path.replace(':', ' colon ')}".lower())
    return "_".join(words)


def _parameter(param: Param) -> Json:
    schema = dict(_KINDS[param.kind])
    if param.choices:
        schema["enum"] = [str(getattr(each, "value", each)) for each in param.choices]
    if param.kind == "number":
        schema["minimum"] = param.low
    if param.default is not None:
        schema["default"] = param.default
    return {"name": param.name, "in": "query", "required": param.required, "schema": schema}


def _body(place: Endpoint) -> Json:
    names = place.body or ()
    body: Json = {"type": "object", "properties": {name: FIELDS[name].schema for name in names}}
    if place.needed:
        body["required"] = list(place.needed)
        body["properties"] |= {name: _required(FIELDS[name].schema) for name in place.needed}
    return body


def _required(schema: Json) -> Json:
    """The same without null, which counts as absent."""
    return {**schema, "type": [kind for kind in schema["type"] if kind != "null"]}


def _responses(place: Endpoint) -> Json:
    kind = "text/event-stream" if place.streams else "application/json"
    shape: dict[str, Any] = {} if place.streams else {"type": ["object", "array"]}
    answers: Json = {
        str(status): {"description": "done" if status < 202 else "waits", "content": {kind: {"schema": shape}}}
        for status in place.gives
    }  # fmt: skip
    more = (*_ALWAYS, *place.refuses, *(_BODIES if place.lines or place.body is not None else ()))
    for status in sorted(set(more)):
        codes = " ".join(code.value for code, its in STATUS.items() if its == status)
        error = {"schema": {"$ref": "#/components/schemas/Error"}}
        answers[str(status)] = {"description": codes, "content": {"application/json": error}}
    return answers
