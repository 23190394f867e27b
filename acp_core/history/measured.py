"""All that is known of one collaboration's course, gathered once for whoever shows it.

Figures, chart, and what could be counted over time: findings as they were recorded, and counts
from kept documents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.agents.state import RunnerState
from acp_core.history import charged, chart, wording
from acp_core.history.chart import Chart, Level, Share
from acp_core.history.clocks import forward
from acp_core.history.metrics import Metrics, measure
from acp_core.history.moments import DOCUMENT, EVENT
from acp_core.history.past import Past
from acp_core.history.schema import Seen
from acp_core.model import Snapshot
from acp_core.model.past import PastTurn, Story
from acp_core.person.journal import Act
from acp_core.person.working_hours import Working

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


@dataclass(frozen=True, slots=True)
class Measured:
    """A collaboration's figures, and what they were worked out of.

    ``findings`` is empty where none were recorded; ``counts`` tells changes of what is counted;
    ``drawn`` is None where nothing has a time, or no chart was wanted.
    """

    snapshot: Snapshot
    story: Story
    metrics: Metrics
    findings: tuple[Point, ...]
    counts: tuple[Change, ...]
    drawn: Chart | None


def measured(
    past: Past,
    loops: Sequence[RunnerState],
    acts: Sequence[Act],
    now: datetime,
    working: Working,
    snapshot: Snapshot | None = None,
    draws: bool = True,
) -> Measured:
    """Work out everything.

    Args:
        past: of the collaboration.
        loops, acts, now, working: see `acp_core.history.metrics.measure`.
        snapshot: as it is read now, where that is known better than ``past`` does.
        draws: whether a chart is wanted: of a long past, that costs as much as all figures.

    Raises:
        BadRecording: the recording is damaged.
    """
    snapshot = snapshot or past.present
    waits = [*past.story.turns, *_untold(snapshot, past.story.turns)]
    steady, turns, doubt = forward(snapshot, waits)
    story = past.story._replace(turns=turns)
    metrics = replace(measure(steady, story, loops, acts, now, working), doubt=doubt)
    findings = findings_over_time(charged.observations(past.observations, snapshot))
    changes = counts_over_time(past)
    counts = tuple(each for each in changes if charged.is_of_run(each.at, snapshot))
    drawn = chart.of_snapshot(steady, turns, now) if draws else None
    if drawn is not None:
        drawn = replace(drawn, levels=levels(findings, counts), shares=shares(metrics), doubt=doubt)
    return Measured(snapshot, story, metrics, findings, counts, drawn)


def _untold(snapshot: Snapshot, turns: Sequence[PastTurn]) -> Iterator[PastTurn]:
    """The turns that last now, and of which no event tells: they were assigned in a state."""
    waiting = {turn.participant for turn in turns if turn.ended is None}
    for turn in snapshot.turns:
        if turn.participant not in waiting and turn.since is not None:
            waiting.add(turn.participant)
            yield PastTurn(
                turn.participant, turn.since, None, None, None, "", snapshot.phase,
                snapshot.round or 1,
            )  # fmt: skip


def levels(findings: Sequence[Point], counts: Sequence[Change]) -> tuple[Level, ...]:
    """The numbers over time that are worth drawing: those that were not always nothing."""
    found = [
        Level("errors", tuple((point.at, point.errors) for point in findings), bad=True),
        Level("warnings", tuple((point.at, point.warnings) for point in findings), bad=True),
    ]
    for what in dict.fromkeys(change.what for change in counts):
        points = tuple((c.at, c.new) for c in counts if c.what == what and c.new is not None)
        found.append(Level(what, points))
    return tuple(level for level in found if level.most)


def shares(metrics: Metrics) -> tuple[Share, ...]:
    """Which part of the lead time each participant alone was waited for."""
    return tuple(
        Share(person.participant, person.share, f"sole blocker: {wording.alone(person)}")
        for person in metrics.people
        if person.share is not None
    )
