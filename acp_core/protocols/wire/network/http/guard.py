"""Who may ask: checked before anything of a request is looked at.

A web page can make its browser ask this machine (a cross-site request, or a name that it makes
point here): such requests show in their ``Origin`` and ``Host``.
"""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.network.http.calls import (
    ANYBODY,
    NO_TOKEN,
    OWNER,
    PEER,
    RIGHTS,
    refuse,
)
from acp_core.protocols.wire.schema import Code, Refusal


class Guard:
    """Lets requests through that may be answered, and notes what rights they have."""

    def __init__(self, app: ASGIApp, agent: Agent) -> None:
        self._app = app
        self._agent = agent
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if self._open >= self._agent.config.limits.connections:
                raise Refusal(Code.BUSY, "too many requests at once")
            scope[RIGHTS] = self._rights(Headers(scope=scope))
        except Refusal as refusal:
            await refuse(refusal)(scope, receive, send)
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1

    def _rights(self, headers: Headers) -> str:
        host = headers.get("host", "")
        name = _host_of(f"//{host}")
        if name is None or not self._is_ours(name):
            raise Refusal(Code.FORBIDDEN, "Host: this agent does not have that name")
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host.lower():
            raise Refusal(Code.FORBIDDEN, "Origin: this agent refuses requests of web pages")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refusal(
                Code.FORBIDDEN, "Sec-Fetch-Site: this agent refuses requests of web pages"
            )
        return self._by_token(headers.get("authorization"))

    def _by_token(self, given: str | None) -> str:
        agent = self._agent
        if given is None:
            if agent.config.open:
                raise Refusal(Code.UNAUTHORIZED, NO_TOKEN)
            return ANYBODY if agent.config.token_needed else OWNER
        scheme, _, token = given.partition(" ")
        shown = token.strip().encode("utf-8", "replace")
        owner = hmac.compare_digest(shown, agent.owner_token.encode())
        peer = hmac.compare_digest(shown, agent.token.encode())
        if scheme.lower() != "bearer" or not (owner or peer):
            raise Refusal(Code.UNAUTHORIZED, "Authorization: not a token of this agent")
        return OWNER if owner else PEER

    def _is_ours(self, name: str) -> bool:
        config = self._agent.config
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            known = {"localhost", config.host.lower(), *(host.lower() for host in config.hosts)}
            return name in known
        return address.is_loopback or config.open or name == config.host


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
        return parts.hostname if parts.username is None and not parts.path else None
    except ValueError:
        return None


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None
