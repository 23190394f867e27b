"""What other hosts ask of the one that conducts a mirrored collaboration: judged here."""

from __future__ import annotations

import json
from typing import Any

from acp_core.protocols.folder.conduct.asked import Requests, against_proven
from acp_core.stores import asking
from acp_core.stores import base as manifests
from acp_core.stores.engine import Asked


class MirrorRequests(Requests):
    """The requests to this host about the collaboration that it conducts."""

    def against(self, request: Asked) -> str:
        """Why a request is refused; "" where nothing speaks against it."""
        if request.verb in asking.PERMITS:
            return against_proven(request, self.address)
        if request.verb not in ("stop", asking.DECIDE):
            return "a mirrored run can be asked to stop or to decide, or to answer an agent"
        if reason := against_proven(request, self.address):
            return reason
        if _given(request).get("mirror") != manifests.pinned_mark(self.folder):
            return "the request is about another run"
        return ""

    def order(self, request: Asked) -> dict[str, Any]:
        """What is done, as `acp_core.loops.asked` takes it."""
        order = super().order(request)
        if request.verb in asking.PERMITS:
            return order
        given = _given(request)
        return order | {"verb": "act", "text": json.dumps(
            {"values": given.get("values"), "matter": given.get("matter", ""), "verb": request.verb}
        )}  # fmt: skip


def _given(request: Asked) -> dict[str, Any]:
    try:
        value = json.loads(request.text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
