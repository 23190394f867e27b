"""All endpoints of an agent, in one table."""

from __future__ import annotations

from starlette.types import ASGIApp

from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.network.http import (
    about,
    channels,
    messages,
    peers,
    stream,
    tasks,
    webhooks,
)
from acp_core.protocols.wire.network.http.calls import Call, answer
from acp_core.protocols.wire.network.http.openapi import describe
from acp_core.protocols.wire.network.http.place import Param, Place, limit
from acp_core.protocols.wire.schema import ROLES
from acp_core.protocols.wire.schema.bodies import SENDING
from acp_core.protocols.wire.state import TaskState

_STATES = tuple(state.value for state in TaskState)
_MESSAGES = (
    *limit(20), Param("sort"), Param("role", choices=ROLES), Param("peer_id"), Param("task_id"),
    Param("direction", choices=("in", "out")), Param("since_seq", "number"),
    Param("received_after", "time"),
)  # fmt: skip
_TASKS = (
    *limit(100), Param("sort"), Param("cursor"), Param("peer_id"), Param("context_id"),
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


async def document(call: Call) -> ASGIApp:
    """``GET /openapi.json``."""
    return answer(describe(places(call.agent), call.agent.config.token_needed))


PLACES = (
    Place("GET", ("/.well-known/acp.json", "/card"), about.card, True, public=True),
    Place("GET", ("/openapi.json",), document, True, public=True),
    Place("GET", ("/status",), about.status, readers=True),
    Place("GET", ("/link",), about.link),
    Place("GET", ("/discover",), about.discover),
    Place("GET", ("/skills",), about.skill_list, True, query=(*limit(100), Param("tag"), Param("q"))),
    Place("GET", ("/skills/query",), about.skill_query, True,
          query=(Param("query"), Param("skill_id"), Param("capability"), Param("limit", "number", 5))),
    Place("POST", ("/skills/query",), about.skill_query, True, body=_SKILL, empty=True),
    Place("POST", ("/message:send",), messages.send, True, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Place("POST", ("/send",), messages.send_anything, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Place("POST", ("/reply",), messages.reply, body=SENDING, needed=("correlation_id",), gives=_SENT, refuses=_NOT_SENT),
    Place("GET", ("/wait/{id}",), messages.wait_reply, query=_TIMEOUT, refuses=(408,)),
    Place("GET", ("/recv",), messages.poll, query=(Param("limit", "number", 50, 1, 1000),)),
    Place("GET", ("/messages",), messages.listing, readers=True, query=(*_MESSAGES, Param("context_id"))),
    Place("GET", ("/context/{id}/messages",), messages.context, readers=True,
          query=(*limit(100), *_MESSAGES[2:])),
    Place("GET", ("/history",), messages.history, query=(Param("limit", "number", 100, 1, 1000),)),
    Place("GET", ("/offline-queue",), messages.offline_queue),
    Place("GET", ("/stream",), stream.stream, readers=True, query=_SINCE, streams=True, refuses=(429,)),
    Place("GET", ("/peers",), peers.listing),
    Place("POST", ("/peers/connect",), peers.connect, body=("link", "name"), needed=("link",), refuses=(429,)),
    Place("POST", ("/peer/{id}/send", "/peers/{id}/send"), messages.send_to, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Place("POST", ("/peer/{id}/rename", "/peers/{id}/rename"), peers.rename, body=("name",),
          needed=("name",), refuses=(404,)),
    Place("POST", ("/peer/{id}/move", "/peers/{id}/move"), peers.move, body=("to",), needed=("to",),
          refuses=(404,)),
    Place("GET", ("/peer/{id}", "/peers/{id}"), peers.get, refuses=(404,)),
    Place("DELETE", ("/peer/{id}", "/peers/{id}"), peers.forget, refuses=(404,)),
    Place("POST", ("/webhooks/register",), webhooks.register, body=("url",), needed=("url",), refuses=(429,)),
    Place("POST", ("/webhooks/deregister",), webhooks.deregister, body=("url",), needed=("url",)),
    Place("POST", ("/channel",), channels.begin, True, body=(), empty=True, gives=(201,)),
    Place("POST", ("/channel/{id}",), channels.take, True, lines=True, refuses=(404,),
          query=(Param("seq", "number", low=1), Param("seen", "number"))),
    Place("GET", ("/channel/{id}/stream",), channels.follow, True, query=_SINCE, streams=True, refuses=(404,)),
    Place("DELETE", ("/channel/{id}",), channels.end, True, refuses=(404,)),
    Place("GET", ("/tasks",), tasks.listing, readers=True, query=_TASKS),
    Place("POST", ("/tasks", "/tasks/create"), tasks.create, True, body=_CREATE, gives=(201,),
          refuses=(404, 429, 503)),
    Place("POST", ("/tasks/{id}:cancel", "/tasks/{id}/cancel"), tasks.cancel, True, body=(), empty=True,
          refuses=(404,)),
    Place("POST", ("/tasks/{id}:continue", "/tasks/{id}/continue"), tasks.resume, True,
          body=("parts", "text", "content", "message_id"), refuses=(404, 429, 503)),
    Place("POST", ("/tasks/{id}:update", "/tasks/{id}/update"), tasks.update, body=_UPDATE, refuses=(404,)),
    Place("GET", ("/tasks/{id}:subscribe", "/tasks/{id}/subscribe"), stream.subscribe, query=_SINCE,
          streams=True, refuses=(404, 429)),
    Place("GET", ("/tasks/{id}/wait", "/tasks/{id}:wait"), tasks.wait, True, query=_TIMEOUT,
          gives=(200, 202), refuses=(404,)),
    Place("GET", ("/tasks/{id}",), tasks.get, True, refuses=(404,)),
    Place("DELETE", ("/tasks/{id}",), tasks.cancel, body=(), empty=True, refuses=(404,)),
)  # fmt: skip


def places(agent: Agent) -> tuple[Place, ...]:
    """The endpoints of an agent; a bridge has more."""
    if agent.bridge is None:
        return PLACES
    from acp_core.protocols.wire.bridge.endpoints import PLACES as MORE

    return (*PLACES, *MORE)
