"""Every endpoint in one table, the application that serves them, and their OpenAPI description."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.schema.basics import ROLES, STATUS, Code, Json, TaskState, WireError
from acp_core.protocols.wire.schema.bodies import FIELDS, SENDING
from acp_core.protocols.wire.serving import endpoints, http
from acp_core.protocols.wire.serving.http import (
    Call,
    Endpoint,
    Guard,
    Param,
    answer,
    limit_params,
    refuse,
    serve,
)


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
    Endpoint("GET", ("/.well-known/acp.json", "/card"), endpoints.get_card, True, public=True),
    Endpoint("GET", ("/openapi.json",), get_openapi, True, public=True),
    Endpoint("GET", ("/status",), endpoints.get_status, readers=True),
    Endpoint("GET", ("/link",), endpoints.get_link),
    Endpoint("GET", ("/discover",), endpoints.discover),
    Endpoint("GET", ("/skills",), endpoints.skill_list, True, query=(*limit_params(100), Param("tag"), Param("q"))),
    Endpoint("GET", ("/skills/query",), endpoints.skill_query, True,
          query=(Param("query"), Param("skill_id"), Param("capability"), Param("limit", "number", 5))),
    Endpoint("POST", ("/skills/query",), endpoints.skill_query, True, body=_SKILL, empty=True),
    Endpoint("POST", ("/message:send",), endpoints.send_message, True, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/send",), endpoints.send_anything, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/reply",), endpoints.reply_to_message, body=SENDING, needed=("correlation_id",), gives=_SENT, refuses=_NOT_SENT),
    Endpoint("GET", ("/wait/{id}",), endpoints.wait_reply, query=_TIMEOUT, refuses=(408,)),
    Endpoint("GET", ("/recv",), endpoints.poll_messages, query=(Param("limit", "number", 50, 1, 1000),)),
    Endpoint("GET", ("/messages",), endpoints.list_messages, readers=True, query=(*_MESSAGES, Param("context_id"))),
    Endpoint("GET", ("/context/{id}/messages",), endpoints.list_context, readers=True,
          query=(*limit_params(100), *_MESSAGES[2:])),
    Endpoint("GET", ("/history",), endpoints.history, query=(Param("limit", "number", 100, 1, 1000),)),
    Endpoint("GET", ("/offline-queue",), endpoints.offline_queue),
    Endpoint("GET", ("/stream",), http.stream, readers=True, query=_SINCE, streams=True, refuses=(429,)),
    Endpoint("GET", ("/peers",), endpoints.list_peers),
    Endpoint("POST", ("/peers/connect",), endpoints.connect_peer, body=("link", "name"), needed=("link",), refuses=(429,)),
    Endpoint("POST", ("/peer/{id}/send", "/peers/{id}/send"), endpoints.send_to, body=SENDING, gives=_SENT, refuses=_NOT_SENT),
    Endpoint("POST", ("/peer/{id}/rename", "/peers/{id}/rename"), endpoints.rename_peer, body=("name",),
          needed=("name",), refuses=(404,)),
    Endpoint("POST", ("/peer/{id}/move", "/peers/{id}/move"), endpoints.move_peer, body=("to",), needed=("to",),
          refuses=(404,)),
    Endpoint("GET", ("/peer/{id}", "/peers/{id}"), endpoints.get_peer, refuses=(404,)),
    Endpoint("DELETE", ("/peer/{id}", "/peers/{id}"), endpoints.forget_peer, refuses=(404,)),
    Endpoint("POST", ("/webhooks/register",), endpoints.register, body=("url",), needed=("url",), refuses=(429,)),
    Endpoint("POST", ("/webhooks/deregister",), endpoints.deregister, body=("url",), needed=("url",)),
    Endpoint("POST", ("/channel",), http.begin, True, body=(), empty=True, gives=(201,)),
    Endpoint("POST", ("/channel/{id}",), http.take, True, lines=True, refuses=(404,),
          query=(Param("seq", "number", low=1), Param("seen", "number"))),
    Endpoint("GET", ("/channel/{id}/stream",), http.follow, True, query=_SINCE, streams=True, refuses=(404,)),
    Endpoint("DELETE", ("/channel/{id}",), http.end, True, refuses=(404,)),
    Endpoint("GET", ("/tasks",), endpoints.list_tasks, readers=True, query=_TASKS),
    Endpoint("POST", ("/tasks", "/tasks/create"), endpoints.create_task, True, body=_CREATE, gives=(201,),
          refuses=(404, 429, 503)),
    Endpoint("POST", ("/tasks/{id}:cancel", "/tasks/{id}/cancel"), endpoints.cancel_task, True, body=(), empty=True,
          refuses=(404,)),
    Endpoint("POST", ("/tasks/{id}:continue", "/tasks/{id}/continue"), endpoints.resume_task, True,
          body=("parts", "text", "content", "message_id"), refuses=(404, 429, 503)),
    Endpoint("POST", ("/tasks/{id}:update", "/tasks/{id}/update"), endpoints.update_task, body=_UPDATE, refuses=(404,)),
    Endpoint("GET", ("/tasks/{id}:subscribe", "/tasks/{id}/subscribe"), http.subscribe, query=_SINCE,
          streams=True, refuses=(404, 429)),
    Endpoint("GET", ("/tasks/{id}/wait", "/tasks/{id}:wait"), endpoints.wait_task, True, query=_TIMEOUT,
          gives=(200, 202), refuses=(404,)),
    Endpoint("GET", ("/tasks/{id}",), endpoints.get_task, True, refuses=(404,)),
    Endpoint("DELETE", ("/tasks/{id}",), endpoints.cancel_task, body=(), empty=True, refuses=(404,)),
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
