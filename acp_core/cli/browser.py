"""The web site of ``acp serve``: textual-serve's, shown to those who have the key.

A page in the same browser, another user of the machine and a name that somebody lets point here
could all reach a port of this machine. So whoever comes must bring the key; from then on a cookie
says that they did. A request that another page started is refused, and so is a name that is not ours.

Browsers send cookies to every port of a name, so that other servers on this machine read ours: it
holds no key, but a value that is good for this name, this port and this process alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from acp_core.files import interrupts
from acp_core.model.errors import CommandError
from acp_core.model.text import clean

MOST = 16
"""Dashboards that may be open at once; each is a process. The page says the same number."""

PATIENCE = 1.0
"""Seconds that open pages have at the end."""

TEMPLATES = Path(__file__).with_name("templates")
"""Where our page is: it takes the keys without a click, and says why a dashboard ended."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def listen(host: str, port: int) -> socket.socket:
    """Take an address before anything is promised.

    Raises:
        CommandError: it is not there, or somebody else has it.
    """
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(
            f"{host} port {port}: {reason}; use --port 0 to pick a free port"
        ) from None


class Site(Server):
    """A dashboard for each visit; ``command`` is what draws one."""

    def __init__(self, command: str, listening: socket.socket) -> None:
        host, self._port = listening.getsockname()[:2]
        title = f"acp on {socket.gethostname()}"
        super().__init__(command, host, self._port, title, templates_path=TEMPLATES)
        self._socket = listening
        self._ip = ipaddress.ip_address(host)
        self._key = secrets.token_urlsafe(24)
        self._cookie = f"acp_{self._port}"
        self._secret = secrets.token_bytes(32)
        self._open = 0

    @property
    def is_local(self) -> bool:
        """Whether nobody reaches it from another machine."""
        return self._ip.is_loopback

    @property
    def address(self) -> str:
        """Where to go, with the key."""
        host = socket.gethostname() if self._ip.is_unspecified else str(self._ip)
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self._port}/?key={self._key}"

    def run(self) -> None:
        """Serve until the process is asked to end."""
        with contextlib.redirect_stdout(_Safe()):
            interrupts.run_loop(self._serve)

    async def _serve(self) -> None:
        asked_to_end = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, asked_to_end.set)
        runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=PATIENCE)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            await asked_to_end.wait()
        finally:
            await runner.cleanup()

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the command has."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        app.on_response_prepare.append(_add_headers)
        return app

    async def handle_index(self, request: web.Request) -> Any:
        """The page, which comes back to the name and port that it was asked under (a tunnel's)."""
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A dashboard, unless too many are open."""
        if self._open >= MOST:
            raise web.HTTPServiceUnavailable(
                text=(f"{MOST} dashboards are open; close one of them first")
            )
        self._open += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._open -= 1

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if not self._is_ours(request.host):
            raise web.HTTPForbidden(text="unknown host name")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text="requests from other pages are not allowed")
        if request.path == "/" and "key" in request.query:
            if not _same(request.query["key"], self._key):
                raise web.HTTPForbidden(text="wrong key: use the address that `acp serve` printed")
            known = web.HTTPFound("/")
            session = self._session(request.host)
            known.set_cookie(self._cookie, session, httponly=True, samesite="Strict")
            raise known
        if not _same(request.cookies.get(self._cookie, ""), self._session(request.host)):
            raise web.HTTPForbidden(text="open the address with the key that `acp serve` printed")
        return await handler(request)

    def _session(self, host: str) -> str:
        """What the cookie of a visit holds, for the name and port that were asked for."""
        return hmac.new(self._secret, host.lower().encode("utf-8", "replace"), "sha256").hexdigest()

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this machine: an address, or one of its own names."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        with contextlib.suppress(ValueError):
            address = ipaddress.ip_address(name)
            return self._ip.is_unspecified or address in (self._ip, _LOCAL)
        own = {"localhost"}
        if not self.is_local:
            own |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        return name in own


_LOCAL = ipaddress.ip_address("127.0.0.1")


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


class _Safe:
    """Stands in for the standard output: what a dashboard's process said is printed safely."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(clean(text))  # type: ignore[union-attr]
        return len(text)

    def flush(self) -> None:
        sys.__stdout__.flush()  # type: ignore[union-attr]
