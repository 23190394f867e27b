"""What a protocol tells of its past: whose turn it was when, and what can be counted.

Plain data, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple


class PastTurn(NamedTuple):
    """A participant was waited for.

    Attributes:
        participant: an id as Snapshots show it.
        since, since_event: when it began, and the event that began it; None where not known.
        ended, event: when it ended, and the participant's event that ended it; None while it
            lasts, and ``event`` also where the wait ended without one.
        kind: of that event, "" where there is none.
        phase, round: in which it began.
    """

    participant: str
    since: datetime | None
    since_event: str | None
    ended: datetime | None
    event: str | None
    kind: str
    phase: str
    round: int


class Count(NamedTuple):
    """A number of something, such as the required changes of one review.

    ``what`` names it in the plural; ``event`` and ``participant`` say whose, where it is
    somebody's; ``value`` is None where the document that would tell is not there.
    """

    what: str
    value: int | None
    event: str | None = None
    participant: str | None = None


class Request(NamedTuple):
    """A change that somebody asked for: one point of a review. ``text`` is one line."""

    text: str
    event: str
    participant: str


class Story(NamedTuple):
    """The turns, oldest first; the counts; the changes that were asked for, by review."""

    turns: tuple[PastTurn, ...] = ()
    counts: tuple[Count, ...] = ()
    requests: tuple[Request, ...] = ()


def summed(counts: Iterable[Count]) -> dict[str, int | None]:
    """What counts come to in all, by what is counted; None where a part is not known."""
    found: dict[str, int | None] = {}
    for count in counts:
        if count.what not in found:
            found[count.what] = count.value
            continue
        sum_ = found[count.what]
        found[count.what] = None if sum_ is None or count.value is None else sum_ + count.value
    return found
