"""All collaborations of a store at once: what each says of itself, without its documents.

PostgreSQL tells it in rows; of a git repository the logs are fetched, all in one call, into the
cache of the account. Names are a stranger's: an id that is none is left out, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from acp_core.stores.engine import Heard

Standing = Callable[[bytes, bytes], Mapping[str, Any]]
"""From protocol.json and the log to what a list tells (see `acp_core.stores.engine.Change.standing`)."""


class Acting(NamedTuple):
    """On which host a participant acts, and as which account."""

    participant: str
    host: str
    account: str


class Listed(NamedTuple):
    """One collaboration of a store, as the store tells of it.

    Attributes:
        id: its id there.
        revision: changes whenever the collaboration does; in a database, a number that grows.
        seq: of its last event.
        phase: as its protocol calls it; what the host that changed it last said.
        waiting: the participants that are waited for; likewise.
        updated: when it was changed, by the server's clock; None where the store has none.
        last: the last line of its log, with its newline; empty where it is long.
        runners: the hosts that were heard of within a day.
        standing: what else is said of it; a stranger's. Empty where nothing is known.
        acting: who acts where.
    """

    id: str
    revision: int | str
    seq: int = 0
    phase: str = ""
    waiting: tuple[str, ...] = ()
    updated: datetime | None = None
    last: bytes = b""
    runners: tuple[Heard, ...] = ()
    standing: Mapping[str, Any] = {}
    acting: tuple[Acting, ...] = ()


class Listing(Protocol):
    """The collaborations of one store, kept up to date. For one thread at a time."""

    listed: dict[str, Listed]
    """By id."""
    note: str
    """What was left out, and why; "" where nothing was."""

    def refresh(self) -> frozenset[str]:
        """Read what changed, at first everything; the ids that appeared, changed, or are gone.

        Raises:
            StoreUnreachable, StoreRefused: it cannot be read.
        """
        ...

    def wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False where it is only time to look.

        Raises:
            StoreUnreachable: the connection was lost, and none can be made.
        """
        ...

    def close(self) -> None:
        """Let go of the connection, unless others use it."""
        ...
