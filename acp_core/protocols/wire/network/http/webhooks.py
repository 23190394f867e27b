"""Endpoints of webhooks: where events are posted to."""

from __future__ import annotations

from starlette.types import ASGIApp

from acp_core.protocols.wire.network.http.calls import Call, answer
from acp_core.protocols.wire.schema import bodies


async def register(call: Call) -> ASGIApp:
    """``POST /webhooks/register``."""
    url = bodies.take(await call.body(), "url")
    await call.agent.webhooks.register(url)
    return answer({"ok": True, "registered": url, "total": len(call.agent.webhooks.urls)})


async def deregister(call: Call) -> ASGIApp:
    """``POST /webhooks/deregister``."""
    await call.agent.webhooks.deregister(bodies.take(await call.body(), "url"))
    return answer({"ok": True, "remaining": len(call.agent.webhooks.urls)})
