"""The application that serves the endpoints."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.agent.core import Agent
from acp_core.protocols.wire.http.calls import refuse, serve
from acp_core.protocols.wire.http.guard import Guard
from acp_core.protocols.wire.http.place import Place
from acp_core.protocols.wire.http.table import places
from acp_core.protocols.wire.schema import Code, Refusal


def application(agent: Agent) -> ASGIApp:
    """The agent's HTTP interface as an ASGI application."""
    routes = [
        Route(path, _Served(agent, place), methods=[place.method])
        for place in places(agent)
        for path in place.paths
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _unknown})
    app.router.redirect_slashes = False
    return Guard(app, agent)


class _Served:
    """One endpoint for the router, which calls classes as ASGI applications."""

    def __init__(self, agent: Agent, place: Place) -> None:
        self._agent = agent
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        app = await serve(self._agent, self._place, Request(scope, receive))
        await app(scope, receive, send)


async def _unknown(request: Request, error: Exception) -> Response:
    """What has no endpoint. ``OPTIONS`` lets no web page in: no header says that one may ask."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"allow": "GET, POST, DELETE, OPTIONS"})
    if isinstance(error, HTTPException) and error.status_code == 405:
        return refuse(Refusal(Code.INVALID, f"{request.method} is not possible here"), 405)
    return refuse(Refusal(Code.NOT_FOUND, "no such endpoint"))
