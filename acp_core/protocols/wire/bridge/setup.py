"""What a bridge serves, and what it lets others do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from acp_core.protocols.contract import Watched
from acp_core.protocols.wire.write.keep import Retention

KEPT = Retention(log=5_000, tasks=1_000, slack=500)
"""A bridge's log holds texts of documents: it keeps less of it than an agent."""

TAKEN = 65_536  # bytes of what others may send to a bridge


class Allowed(NamedTuple):
    """An act that others may ask for: its name, and what they may give; ``note`` says why not now."""

    name: str
    inputs: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class BridgeSetup:
    """The folder, absolute, what watches it, and the names of the actions that others may ask for.

    ``tell`` is called once with what each of these means now.
    """

    folder: str
    watch: Callable[[str], Watched]
    allowed: frozenset[str] = frozenset()
    tell: Callable[[list[Allowed]], object] | None = None
