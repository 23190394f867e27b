"""What a bridge serves, and what it lets others do."""

from __future__ import annotations

from dataclasses import dataclass

from acp_core.protocols.wire.write.keep import Retention

KEPT = Retention(log=5_000, tasks=1_000, slack=500)
"""A bridge's log holds texts of documents: it keeps less of it than an agent."""

TAKEN = 65_536  # bytes of what others may send to a bridge


@dataclass(frozen=True, slots=True)
class BridgeSetup:
    """The folder, absolute, and the names of the actions that others may ask for."""

    folder: str
    allowed: frozenset[str] = frozenset()
