"""What a person has seen of a collaboration already, for the commands that print it."""

from __future__ import annotations

from acp_core.fleet.overview import Seen
from acp_core.model import Snapshot
from acp_core.person.attention import Attention


class Seeing:
    """A person's attention, asked for one Snapshot after the other (see `overview.arrange`)."""

    def __init__(self, attention: Attention) -> None:
        self._attention = attention
        self._left = attention.last_left()

    def __call__(self, snapshot: Snapshot) -> Seen:
        visit = self._attention.last_visit(snapshot.key)
        return Seen(
            self._attention.open_needs(snapshot),
            unread(self._attention, snapshot),
            self._attention.is_archived(snapshot.key),
            visit.at if visit else self._left,
        )


def unread(attention: Attention, snapshot: Snapshot) -> int:
    """How many events came since the person last looked; 0 where they never did."""
    visit = attention.last_visit(snapshot.key)
    return max(0, len(snapshot.events) - visit.event_count) if visit else 0
