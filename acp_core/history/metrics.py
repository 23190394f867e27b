"""What can be measured of a collaboration: each figure is defined, worked out and worded here only.

Lead time: from the first event to the last one where it is over, else to now. Time in a phase: the
sum of its stays. A participant's turn: from the event that made it be waited for to its own event;
parked: the time between turns, while it takes part and is not waited for. Critical: the time in
which only this participant was waited for; its share is that part of the lead time. Working time: the
part of a span that lies in the working hours of the person who asks. What no data tells is None,
shown as "not recorded", and never worked out from something else.

`measured` gathers all that is known of one collaboration's course for whoever shows it: figures,
chart, and what could be counted over time (findings as they were recorded, kept documents).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from acp_core.agents.state import RunnerState
from acp_core.history import charged, chart
from acp_core.history.chart import Chart, Level, Share
from acp_core.history.forecast import forward
from acp_core.history.moments import DOCUMENT, EVENT
from acp_core.history.past import Past
from acp_core.history.schema import Seen
from acp_core.model import Snapshot, Status, format
from acp_core.model.past import Count, PastTurn, Story, marks
from acp_core.person.journal import Act
from acp_core.person.settings import Working

NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time in seconds, and how much of it was working time."""

    seconds: float
    working: float


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase: how long it lasted in all, and in each round (by number); None: not recorded."""

    phase: str
    label: str
    total: Span | None
    rounds: tuple[tuple[int, Span | None], ...]


@dataclass(frozen=True, slots=True)
class PersonTime:
    """One participant's part.

    Attributes:
        participant: the id.
        turns: how many it took; ``waiting`` whether one lasts now.
        median, longest, total: of its turns, the one that lasts included in ``total``.
        parked: the time in which it was not waited for.
        critical: the time in which only it was waited for; ``share`` of the lead time, 0 to 1.
        took: how many seconds each of its turns took.
        has_hours: whether this is a person, and the settings name the working hours: agents work at
            night.
    """

    participant: str
    turns: int
    waiting: bool
    median: float | None
    longest: float | None
    total: Span | None
    parked: Span | None
    critical: Span | None
    share: float | None
    took: tuple[float, ...] = ()
    has_hours: bool = False


@dataclass(frozen=True, slots=True)
class Metrics:
    """All figures of one collaboration. None: not recorded.

    ``tokens`` are those that went in and out, ``cost`` in US dollars; ``estimated`` says that a part
    of either is an estimate; ``unpriced`` names those whose cost is not in it. ``retries`` are runs of a program after the first one of a turn. ``doubt``
    says why durations are uncertain; "" where they are not.
    """

    name: str
    status: str
    lead: Span | None
    phases: tuple[PhaseTime, ...]
    people: tuple[PersonTime, ...]
    events: int
    rounds: int | None
    reviews: int
    counts: tuple[Count, ...]
    errors: int
    warnings: int
    human_acts: int
    retries: int | None
    tokens: tuple[int, int] | None
    cost: float | None
    estimated: bool
    doubt: str = ""
    unpriced: tuple[str, ...] = ()


def measure(
    snapshot: Snapshot,
    story: Story,
    loops: Sequence[RunnerState],
    acts: Sequence[Act],
    now: datetime,
    working: Working,
) -> Metrics:
    """The figures of a collaboration.

    Args:
        snapshot: as it is read now.
        story: what its protocol tells of its past.
        loops: of its participants, as far as they are known on this machine.
        acts: what the person did in it.
        now: the present time.
        working: which hours count as working time.
    """
    over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)
    times = [event.at for event in marks(snapshot.events) if event.at is not None]
    start = min(times, default=None)
    end = (max(times) if over else max([now, *times])) if times else None
    lead = _span(start, end, working)
    turns = [turn for turn in story.turns if turn.event is not None or turn.ended is None]
    figures = charged.figures(loops, snapshot)
    costs = [each.cost for each in figures if each.cost is not None]
    tokens = [(each.tokens_in, each.tokens_out) for each in figures]
    return Metrics(
        name=snapshot.name,
        status=snapshot.status.value,
        lead=lead,
        phases=_phases(snapshot, end, working),
        people=_people(snapshot, story.turns, turns, start, end, working, over),
        events=len(snapshot.events),
        rounds=snapshot.round,
        reviews=sum(turn.kind == "review_submitted" for turn in story.turns),
        counts=story.counts,
        errors=sum(finding.severity.value == "error" for finding in snapshot.findings),
        warnings=sum(finding.severity.value == "warning" for finding in snapshot.findings),
        human_acts=len(charged.acts(acts, snapshot)),
        retries=sum(each.restarts for each in figures) if figures else None,
        tokens=(sum(i for i, _ in tokens), sum(o for _, o in tokens)) if tokens else None,
        cost=sum(costs) if costs else None,
        estimated=any(each.estimated for each in figures),
        unpriced=charged.unpriced(loops, snapshot) if figures else (),
    )


def _span(start: datetime | None, end: datetime | None, working: Working) -> Span | None:
    if start is None or end is None or end < start:
        return None
    return Span((end - start).total_seconds(), working.seconds(start, end))


def _sum(spans: Iterable[Span | None]) -> Span | None:
    """All of them together; None where one of them, or all, are not known."""
    listed = list(spans)
    known = [span for span in listed if span is not None]
    if not listed or len(known) < len(listed):
        return None
    return Span(sum(s.seconds for s in known), sum(s.working for s in known))


def _phases(snapshot: Snapshot, end: datetime | None, working: Working) -> tuple[PhaseTime, ...]:
    found = []
    for phase in snapshot.phases:
        if not phase.visits:
            continue
        last = len(phase.visits) - 1
        spans = [
            (visit.round, _span(visit.entered, visit.left or (end if n == last else None), working))
            for n, visit in enumerate(phase.visits)
        ]
        rounds: dict[int, list[Span | None]] = {}
        for number, span in spans:
            rounds.setdefault(number, []).append(span)
        found.append(
            PhaseTime(
                phase.id,
                phase.label,
                _sum(span for _, span in spans),
                tuple((number, _sum(each)) for number, each in rounds.items()),
            )
        )
    return tuple(found)


def _people(
    snapshot: Snapshot,
    waits: Sequence[PastTurn],
    turns: Sequence[PastTurn],
    start: datetime | None,
    end: datetime | None,
    working: Working,
    over: bool,
) -> tuple[PersonTime, ...]:
    critical = _critical(waits, end, working)
    lead = _span(start, end, working)
    found = []
    for person in snapshot.participants:
        own = [turn for turn in turns if turn.participant == person.id]
        taken = [turn for turn in own if turn.event is not None]
        all_waits = [turn for turn in waits if turn.participant == person.id]
        took = [
            (turn.ended - turn.since).total_seconds()
            for turn in taken
            if turn.since and turn.ended and turn.ended >= turn.since
        ]
        total = _sum(_span(turn.since, turn.ended or end, working) for turn in all_waits)
        alone = critical.get(person.id) if critical is not None else None
        if critical is not None and alone is None:
            alone = Span(0.0, 0.0)
        parked = None
        if lead is not None and (total is not None or not all_waits):
            waited = total or Span(0.0, 0.0)
            parked = Span(
                max(0.0, lead.seconds - waited.seconds), max(0.0, lead.working - waited.working)
            )
        share = None
        if alone is not None and lead is not None and lead.seconds > 0:
            share = alone.seconds / lead.seconds
        found.append(
            PersonTime(
                person.id,
                len(taken),
                not over and any(turn.ended is None for turn in own),
                median(took) if took else None,
                max(took, default=None),
                total if all_waits else (Span(0.0, 0.0) if lead is not None else None),
                parked,
                alone,
                share,
                tuple(took),
                working.chosen and person.kind == "human",
            )
        )
    return tuple(found)


def _critical(
    waits: Sequence[PastTurn], end: datetime | None, working: Working
) -> dict[str, Span] | None:
    """For how long each was the only one who was waited for; None where a time is not known."""
    changes: list[tuple[datetime, int, str]] = []
    for turn in waits:
        until = turn.ended or end
        if turn.since is None or until is None:
            return None
        if until > turn.since:
            changes.append((turn.since, 1, turn.participant))
            changes.append((until, -1, turn.participant))
    changes.sort()
    found: dict[str, Span] = {}
    waiting: dict[str, int] = {}
    before: datetime | None = None
    for at, by, name in changes:
        alone = [each for each, number in waiting.items() if number > 0]
        if before is not None and len(alone) == 1 and at > before:
            span = Span((at - before).total_seconds(), working.seconds(before, at))
            old = found.get(alone[0], Span(0.0, 0.0))
            found[alone[0]] = Span(old.seconds + span.seconds, old.working + span.working)
        waiting[name] = waiting.get(name, 0) + by
        before = at
    return found


TOTAL = "total"


def total_metrics(found: Sequence[Metrics]) -> Metrics:
    """The sum of several collaborations' figures; of what is not recorded everywhere, none."""
    last = found[-1]
    phases = {each.phase: each.label for metrics in found for each in metrics.phases}
    people = dict.fromkeys(each.participant for metrics in found for each in metrics.people)
    lead = _spans(each.lead for each in found)
    return Metrics(
        name=TOTAL,
        status=last.status,
        lead=lead,
        phases=tuple(_phase(name, label, found) for name, label in phases.items()),
        people=tuple(_person(name, lead, found) for name in people),
        events=sum(each.events for each in found),
        rounds=_sum_of_figure(found, lambda each: each.rounds),
        reviews=sum(each.reviews for each in found),
        counts=tuple(count for each in found for count in each.counts),
        errors=sum(each.errors for each in found),
        warnings=sum(each.warnings for each in found),
        human_acts=sum(each.human_acts for each in found),
        retries=_sum_of_figure(found, lambda each: each.retries),
        tokens=_tokens(found),
        cost=_cost(found),
        estimated=any(each.estimated for each in found),
        unpriced=tuple(dict.fromkeys(name for each in found for name in each.unpriced)),
        doubt="; ".join(f"{each.name}: {each.doubt}" for each in found if each.doubt),
    )


def _spans(spans: Iterable[Span | None]) -> Span | None:
    known = list(spans)
    spanned = [each for each in known if each is not None]
    if not known or len(spanned) < len(known):
        return None
    return Span(sum(s.seconds for s in spanned), sum(s.working for s in spanned))


def _sum_of_figure(found: Sequence[Metrics], figure: Callable[[Metrics], int | None]) -> int | None:
    known = [value for each in found if (value := figure(each)) is not None]
    return sum(known) if known else None


def _tokens(found: Sequence[Metrics]) -> tuple[int, int] | None:
    known = [each.tokens for each in found if each.tokens is not None]
    return (sum(i for i, _ in known), sum(o for _, o in known)) if known else None


def _cost(found: Sequence[Metrics]) -> float | None:
    known = [each.cost for each in found if each.cost is not None]
    return sum(known) if known else None


def _phase(name: str, label: str, found: Sequence[Metrics]) -> PhaseTime:
    stays = [each for metrics in found for each in metrics.phases if each.phase == name]
    return PhaseTime(name, label, _spans(each.total for each in stays), ())


def _person(name: str, lead: Span | None, found: Sequence[Metrics]) -> PersonTime:
    parts = [each for metrics in found for each in metrics.people if each.participant == name]
    took = tuple(seconds for each in parts for seconds in each.took)
    alone = _spans(each.critical for each in parts)
    share = alone.seconds / lead.seconds if alone and lead and lead.seconds > 0 else None
    return PersonTime(
        name,
        sum(each.turns for each in parts),
        any(each.waiting for each in parts),
        median(took) if took else None,
        max(took, default=None),
        _spans(each.total for each in parts),
        _spans(each.parked for each in parts),
        alone,
        share,
        took,
        any(each.has_hours for each in parts),
    )


NONE = "-"  # there is no such thing in this collaboration

_LAST_ROUNDS = 5

"""Rounds that are told one by one."""

PEOPLE = ("participant", "turns", "median", "longest", "waiting for", "idle", "sole blocker")

"""What `people` tells of each participant."""


class Figure(NamedTuple):
    """A row of figures: a value for each collaboration.

    ``depth`` indents the title; a heading has no values.
    """

    title: str
    values: tuple[str, ...] = ()
    depth: int = 0

    @property
    def heading(self) -> bool:
        """Whether it stands above others."""
        return not self.values


def summary_figures(each: Metrics) -> list[tuple[str, str]]:
    """A collaboration as a whole: what was counted, and its value."""
    found = [
        ("status", each.status),
        ("lead time", describe_span(each.lead)),
        *([("uncertain", each.doubt)] if each.doubt else []),
        ("events", str(each.events)),
    ]
    if each.rounds is not None or each.reviews:  # else its protocol knows none
        found += [("review rounds", describe_number(each.rounds)), ("reviews", str(each.reviews))]
    for what in dict.fromkeys(count.what for count in each.counts):
        found.append((what, total(each.counts, what)))
    errors, warnings = format.count(each.errors, "error"), format.count(each.warnings, "warning")
    return [
        *found,
        ("findings now", f"{errors}, {warnings}"),
        ("your acts", str(each.human_acts)),
        ("retries of agents", describe_number(each.retries)),
        ("tokens in / out", describe_tokens(each)),
        ("cost", describe_cost(each)),
    ]


def people_figures(each: Metrics) -> list[tuple[str, ...]]:
    """A row for each participant, with the columns of `PEOPLE`."""
    return [
        (
            person.participant,
            str(person.turns),
            describe_seconds(person.median) if person.turns else NONE,
            describe_seconds(person.longest) if person.turns else NONE,
            describe_wait(person),
            describe_span(person.parked),
            figure_alone(person),
        )
        for person in each.people
    ]


def side_by_side(found: Sequence[Metrics]) -> list[Figure]:
    """All figures, with a value for each collaboration."""
    whole = [dict(summary_figures(each)) for each in found]
    titles = list(dict.fromkeys(title for each in whole for title in each))
    counted = [Figure(t, tuple(each.get(t, NONE) for each in whole), 1) for t in titles[2:]]
    first = [Figure(t, tuple(each.get(t, NONE) for each in whole)) for t in titles[:2]]
    return [
        *first,
        *[Figure("phases"), *_phase_figures(found)],
        *[Figure("participants"), *_people_figures(found)],
        *[Figure("counts"), *counted],
    ]


def _phase_figures(found: Sequence[Metrics]) -> list[Figure]:
    rows: list[Figure] = []
    labels = {p.phase: p.label for each in found for p in each.phases}
    for name, label in labels.items():
        phases = [next((p for p in each.phases if p.phase == name), None) for each in found]
        rows.append(Figure(label, tuple(describe_span(p.total) if p else NONE for p in phases), 1))
        if any(p and len(p.rounds) > 1 for p in phases):
            rounds = [dict(p.rounds) if p else {} for p in phases]
            rows += _rounds(rounds)
    return rows


def _rounds(rounds: Sequence[Mapping[int, Span | None]]) -> Iterator[Figure]:
    """A row for each round; of many only for the last ones, and one for all before those."""
    numbers = sorted({n for each in rounds for n in each})
    early = numbers[:-_LAST_ROUNDS] if len(numbers) > _LAST_ROUNDS + 1 else []
    if early:
        values = tuple(_median([r[n] for n in early if n in r]) for r in rounds)
        yield Figure(f"rounds {early[0]} to {early[-1]}, median / longest", values, 2)
    for number_ in numbers[len(early) :]:
        values = tuple(describe_span(r[number_]) if number_ in r else NONE for r in rounds)
        yield Figure(f"round {number_}", values, 2)


def _median(spans: Sequence[Span | None]) -> str:
    known = [each.seconds for each in spans if each is not None]
    if not known:
        return NOT_RECORDED if spans else NONE
    return f"{describe_seconds(median(known))} / {describe_seconds(max(known))}"


def _people_figures(found: Sequence[Metrics]) -> list[Figure]:
    rows: list[Figure] = []
    for name in dict.fromkeys(p.participant for each in found for p in each.people):
        people = [next((p for p in each.people if p.participant == name), None) for each in found]
        rows += [
            Figure(name, tuple(describe_turns(p) if p else NONE for p in people), 1),
            Figure("turn, median / longest", tuple(_took(p) if p else NONE for p in people), 2),
            Figure("waiting for", tuple(describe_wait(p) if p else NONE for p in people), 2),
            Figure("idle", tuple(describe_span(p.parked) if p else NONE for p in people), 2),
            Figure("sole blocker", tuple(figure_alone(p) if p else NONE for p in people), 2),
        ]
    return rows


def describe_span(known: Span | None) -> str:
    """How long something lasted."""
    return NOT_RECORDED if known is None else format.long_span(known.seconds)


def describe_wait(person: PersonTime) -> str:
    """How long a participant was waited for; of a person with working hours, how much of it was in them."""
    known, whole = person.total, describe_span(person.total)
    if known is None or not person.has_hours or abs(known.working - known.seconds) < 1:
        return whole
    return f"{whole} ({format.hours_span(known.working)} in working hours)"


def describe_seconds(known: float | None) -> str:
    """A length of time."""
    return NOT_RECORDED if known is None else format.long_span(known)


def describe_number(known: int | None) -> str:
    """A count of something."""
    return NOT_RECORDED if known is None else str(known)


def describe_tokens(each: Metrics) -> str:
    """The tokens that went in and out."""
    return f"{each.tokens[0]:,} / {each.tokens[1]:,}" if each.tokens else NOT_RECORDED


def describe_cost(each: Metrics) -> str:
    """US dollars; "~" where a part of them is an estimate; whose cost is not in it."""
    if each.cost is None:
        return NOT_RECORDED
    known = f"{'~' if each.estimated else ''}${each.cost:.2f}"
    return f"{known} (unknown: {', '.join(each.unpriced)})" if each.unpriced else known


def describe_turns(person: PersonTime) -> str:
    """How many a participant took."""
    return format.count(person.turns, "turn") + (", has the turn now" if person.waiting else "")


def figure_alone(person: PersonTime) -> str:
    """For how long only this participant was waited for, and which part of the lead time that is."""
    if person.critical is None or person.share is None:
        return NOT_RECORDED
    return f"{format.long_span(person.critical.seconds)}, {person.share:.0%} of the lead time"


def _took(person: PersonTime) -> str:
    if not person.turns:
        return NONE
    return f"{describe_seconds(person.median)} / {describe_seconds(person.longest)}"


def total(counts: Sequence[Count], what: str) -> str:
    """The sum, and of several reviews each in its order."""
    values = [count.value for count in counts if count.what == what]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        missing = f"{len(values) - len(known)} {NOT_RECORDED}"
        return f"{sum(known)}, {missing}" if known else NOT_RECORDED
    return str(sum(known)) + (f" ({' + '.join(map(str, known))})" if len(known) > 1 else "")


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
        Share(person.participant, person.share, f"sole blocker: {figure_alone(person)}")
        for person in metrics.people
        if person.share is not None
    )
