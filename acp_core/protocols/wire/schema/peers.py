"""Peers, as who looks at an agent sees them."""

from __future__ import annotations

from dataclasses import dataclass

from acp_core.files.decode import key, whole
from acp_core.protocols.wire.schema import time_of
from acp_core.protocols.wire.schema.lenient import Object, count, text_that


@dataclass(frozen=True, slots=True)
class PeerSeen:
    """A peer as one sees it. ``met``: its card came once, so that something can be sent to it."""

    id: str = ""
    name: str = key(read=text_that(bool), default="?")
    connected: bool = False
    connected_at: str | None = key(read=text_that(bool), default=None)
    disconnected_at: str | None = key(read=text_that(bool), default=None)
    sent: int = key("messages_sent", read=count, default=0)
    received: int = key("messages_received", read=count, default=0)
    signs: bool = False
    met: bool = False
    trouble: str = key("error", default="")


def _timestamp(value: object) -> float | None:
    at = time_of(value)
    return at.timestamp() if at else None


@dataclass(frozen=True, slots=True)
class PeerReport(PeerSeen):
    """A peer as an agent reports it; ``queued_since`` is in seconds since 1970."""

    queued: int = key(read=count, default=0)
    queued_since: float | None = key(read=_timestamp, default=None)
    raw: Object = whole()
