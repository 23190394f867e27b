"""The endpoints, in one table, and the application that serves them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.agent.core import Agent
from acp_core.protocols.wire.http import about, messages, peers, stream, tasks, webhooks
from acp_core.protocols.wire.http.calls import PEER, Call, Endpoint, refuse, serve
from acp_core.protocols.wire.http.guard import Guard
from acp_core.protocols.wire.schema import Code, Refusal


class Place(NamedTuple):
    """An endpoint. ``paths`` are spellings of the same.

    ``peers``: the link's token suffices; ``readers``: at a bridge it does, whose link is given to
    those who shall see what it tells of.
    """

    method: str
    paths: tuple[str, ...]
    endpoint: Endpoint
    peers: bool = False
    readers: bool = False


PLACES = (
    Place("GET", ("/.well-known/acp.json", "/card"), about.card, True),
    Place("GET", ("/status",), about.status, readers=True),
    Place("GET", ("/link",), about.link),
    Place("GET", ("/discover",), about.discover),
    Place("GET", ("/skills",), about.skill_list, True),
    Place("GET", ("/skills/query",), about.skill_query, True),
    Place("POST", ("/skills/query",), about.skill_query, True),
    Place("POST", ("/message:send",), messages.send, True),
    Place("POST", ("/send",), messages.send_anything),
    Place("POST", ("/reply",), messages.reply),
    Place("GET", ("/wait/{id}",), messages.wait_reply),
    Place("GET", ("/recv",), messages.poll),
    Place("GET", ("/messages",), messages.listing, readers=True),
    Place("GET", ("/context/{id}/messages",), messages.context, readers=True),
    Place("GET", ("/history",), messages.history),
    Place("GET", ("/offline-queue",), messages.offline_queue),
    Place("GET", ("/stream",), stream.stream, readers=True),
    Place("GET", ("/peers",), peers.listing),
    Place("POST", ("/peers/connect",), peers.connect),
    Place("POST", ("/peer/{id}/send", "/peers/{id}/send"), messages.send_to),
    Place("POST", ("/peer/{id}/rename", "/peers/{id}/rename"), peers.rename),
    Place("GET", ("/peer/{id}", "/peers/{id}"), peers.get),
    Place("DELETE", ("/peer/{id}", "/peers/{id}"), peers.forget),
    Place("POST", ("/webhooks/register",), webhooks.register),
    Place("POST", ("/webhooks/deregister",), webhooks.deregister),
    Place("GET", ("/tasks",), tasks.listing, readers=True),
    Place("POST", ("/tasks", "/tasks/create"), tasks.create, True),
    Place("POST", ("/tasks/{id}:cancel", "/tasks/{id}/cancel"), tasks.cancel, True),
    Place("POST", ("/tasks/{id}:continue", "/tasks/{id}/continue"), tasks.resume, True),
    Place("POST", ("/tasks/{id}:update", "/tasks/{id}/update"), tasks.update),
    Place("GET", ("/tasks/{id}:subscribe", "/tasks/{id}/subscribe"), stream.subscribe),
    Place("GET", ("/tasks/{id}/wait", "/tasks/{id}:wait"), tasks.wait, True),
    Place("GET", ("/tasks/{id}",), tasks.get, True),
    Place("DELETE", ("/tasks/{id}",), tasks.cancel),
)


def places(agent: Agent) -> tuple[Place, ...]:
    """The endpoints of an agent; a bridge has more."""
    if agent.bridge is None:
        return PLACES
    from acp_core.protocols.wire.bridge import endpoints

    return (
        *PLACES,
        Place("GET", ("/bridge/snapshot",), endpoints.snapshot, readers=True),
        Place("GET", ("/bridge/document",), endpoints.document, readers=True),
        Place("GET", ("/bridge/event",), endpoints.event, readers=True),
        Place("GET", ("/bridge/actions",), endpoints.actions, readers=True),
    )


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
        app = await serve(self._agent, partial(_allowed, self._place), Request(scope, receive))
        await app(scope, receive, send)


async def _allowed(place: Place, call: Call) -> ASGIApp:
    reader = place.readers and call.agent.bridge is not None
    if call.rights == PEER and not (place.peers or reader):
        raise Refusal(Code.FORBIDDEN, "the link's token gives a peer's rights only")
    return await place.endpoint(call)


async def _unknown(request: Request, error: Exception) -> Response:
    """What has no endpoint. ``OPTIONS`` lets no web page in: no header says that one may ask."""
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"allow": "GET, POST, DELETE, OPTIONS"})
    if isinstance(error, HTTPException) and error.status_code == 405:
        return refuse(Refusal(Code.INVALID, f"{request.method} is not possible here"), 405)
    return refuse(Refusal(Code.NOT_FOUND, "no such endpoint"))
