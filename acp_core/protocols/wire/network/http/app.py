"""The application that serves the endpoints."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.network.http.calls import refuse, serve
from acp_core.protocols.wire.network.http.guard import Guard
from acp_core.protocols.wire.network.http.place import Place
from acp_core.protocols.wire.network.http.table import places
from acp_core.protocols.wire.schema import Code, Refusal


def application(agent: Agent) -> ASGIApp:
    """The agent's HTTP interface as an ASGI application."""
    return Guard(_Router(agent), agent)


class _Router:
    """Finds the endpoint of a request: most stand under a plain path and need no search."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._plain: dict[str, dict[str, Place]] = {}
        self._others: list[tuple[re.Pattern[str], dict[str, Place]]] = []
        named: dict[str, dict[str, Place]] = {}
        for place in places(agent):
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

    def _find(self, path: str) -> tuple[dict[str, Place], dict[str, str]]:
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
        return refuse(Refusal(Code.INVALID, f"{method} is not possible here"), 405)
    return refuse(Refusal(Code.NOT_FOUND, "no such endpoint"))
