"""What can be measured of a collaboration: each figure is defined here, and worked out here only.

Lead time: from the first event to the last one where it is over, else to now. Time in a phase: the
sum of its stays. A participant's turn: from the event that made it be waited for to its own event;
parked: the time between turns, while it takes part and is not waited for. Critical: the time in
which only this participant was waited for; its share is that part of the lead time. Working time: the
part of a span that lies in the working hours of the person who asks. What no data tells is None,
shown as "not recorded", and never worked out from something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from acp_core.agents.state import RunnerState
from acp_core.history import charged
from acp_core.model import Snapshot, Status
from acp_core.model.past import Count, PastTurn, Story, marks
from acp_core.person.journal import Act
from acp_core.person.working_hours import Working

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
