"""One HTTP connection: how long it may be silent, and how many come from one address."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from acp_core.protocols.wire.conduct.agent.config import Limits
from acp_core.protocols.wire.schema import invalid
from acp_core.protocols.wire.schema.decode import encode

Protocol = type[H11Protocol]


def connections(limits: Limits) -> Protocol:
    """The class of an agent's connections, which are counted together."""
    open_now: Counter[str] = Counter()

    class Connection(Bounded):
        _limits = limits
        _open = open_now

    return Connection


class Bounded(H11Protocol):
    """A connection that is ended when it does not ask in time, or is one too many."""

    _limits: Limits
    _open: Counter[str]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._address = ""
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and wait for its first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._open[self._address] += 1
        self._open[""] += 1
        most = self._limits.connections if _is_here(self._address) else self._limits.address
        if self._open[self._address] > most or self._open[""] > self._limits.connections:
            transport.abort()
            return
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        self._forget()
        self._open[""] -= 1
        self._open[self._address] -= 1
        if self._open[self._address] <= 0:
            del self._open[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data; as long as no request is whole, the time for it runs."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect()
        else:
            self._forget()

    def on_response_complete(self) -> None:
        """An answer was given: from here on uvicorn's own time for an idle connection runs."""
        self._forget()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as everything else is refused."""
        body = encode(invalid(msg).envelope())
        headers = [
            (b"content-type", b"application/json; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect(self) -> None:
        if self._late is None:
            seconds = self._limits.head_seconds
            self._late = self.loop.call_later(seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
