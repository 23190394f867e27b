"""Who did what when, of many events: what figures need of each, without making the events.

Plain data, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.model.snapshot import Event


class Mark(NamedTuple):
    """An event's ``id``, ``source``, ``actor``, ``kind`` and ``at``, as in `Event`."""

    id: str
    source: str
    actor: str
    kind: str
    at: datetime | None


def marks(events: Sequence[Event]) -> Iterator[Mark]:
    """The marks of events, in their order.

    A sequence that makes its events when they are asked for may know a faster way: its method ``marks``.
    """
    own = getattr(events, "marks", None)
    if own is None:
        return (Mark(e.id, e.source, e.actor, e.kind, e.at) for e in events)
    found: Iterable[Mark] = own()
    return iter(found)
