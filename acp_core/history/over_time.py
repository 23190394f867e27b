"""What could be counted when: findings as they were recorded, and counts from kept documents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.history.moments import DOCUMENT, EVENT
from acp_core.history.past import Past
from acp_core.history.schema import Seen

MOST = 300  # versions of documents, and events, that are counted; of more, some are left out evenly


class Point(NamedTuple):
    """From ``at`` on there were so many findings of each severity."""

    at: datetime
    errors: int
    warnings: int


class Change(NamedTuple):
    """At ``at`` a count became another; None: there was nothing that told it."""

    at: datetime
    what: str
    old: int | None
    new: int | None


def findings_over_time(observations: Iterable[Seen]) -> tuple[Point, ...]:
    """A point for each change of the numbers; nothing where nothing was recorded."""
    found: list[Point] = []
    for reading in observations:
        counted = Counter(each[1] for each in json.loads(reading.findings))
        point = Point(datetime.fromtimestamp(reading.at, UTC), counted["error"], counted["warning"])
        if not found or found[-1][1:] != point[1:]:
            found.append(point)
    return tuple(found)


def counts_over_time(past: Past) -> tuple[Change, ...]:
    """How the counts of a collaboration's story changed with its documents and events.

    What a document says may count from an event on, such as the one that submits a review.

    Only what was kept, committed or stands there can be counted: the versions of documents.

    Raises:
        BadRecording: the recording is damaged.
    """
    documents = [n for n, moment in enumerate(past.moments) if moment.kind == DOCUMENT]
    first: dict[str, int] = {}
    for place, moment in enumerate(past.moments):
        if moment.kind == EVENT:
            first.setdefault(moment.name, place)
    told = {each.event for each in past.story.counts if each.event}
    events = sorted(first[event] for event in told if event in first)
    places = sorted({*_evenly(documents), *_evenly(events)})
    found: list[Change] = []
    before: Mapping[str, int | None] = {}
    for place in places:
        now = past.totals(place)
        at = past.moments[place].time
        for what, value in now.items():
            if value != before.get(what):
                found.append(Change(at, what, before.get(what), value))
        before = now
    return tuple(found)


def _evenly(places: list[int]) -> list[int]:
    """At most `MOST` of some places, the first and the last among them."""
    if len(places) <= MOST:
        return places
    return [places[n * (len(places) - 1) // (MOST - 1)] for n in range(MOST)]
