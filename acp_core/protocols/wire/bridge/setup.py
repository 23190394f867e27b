"""What a bridge serves, and what it lets others do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acp_core.protocols.contract import Watched
from acp_core.protocols.wire.write.keep import Retention

KEPT = Retention(log=5_000, tasks=1_000, slack=500)
"""A bridge's log holds texts of documents: it keeps less of it than an agent."""

TAKEN = 65_536  # bytes of what others may send to a bridge


@dataclass(frozen=True, slots=True)
class BridgeSetup:
    """The folder, absolute, what watches it, and the names of the actions that others may ask for."""

    folder: str
    watch: Callable[[str], Watched]
    allowed: frozenset[str] = frozenset()
