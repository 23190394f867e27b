"""Figures in words, the same wherever they are shown: on the terminal, in reports, on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from acp_core.history.metrics import NOT_RECORDED, Metrics, PersonTime, Span
from acp_core.model import format
from acp_core.model.past import Count

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


def summary(each: Metrics) -> list[tuple[str, str]]:
    """A collaboration as a whole: what was counted, and its value."""
    found = [
        ("status", each.status),
        ("lead time", span(each.lead)),
        *([("uncertain", each.doubt)] if each.doubt else []),
        ("events", str(each.events)),
    ]
    if each.rounds is not None or each.reviews:  # else its protocol knows none
        found += [("review rounds", number(each.rounds)), ("reviews", str(each.reviews))]
    for what in dict.fromkeys(count.what for count in each.counts):
        found.append((what, total(each.counts, what)))
    errors, warnings = format.count(each.errors, "error"), format.count(each.warnings, "warning")
    return [
        *found,
        ("findings now", f"{errors}, {warnings}"),
        ("your acts", str(each.human_acts)),
        ("retries of agents", number(each.retries)),
        ("tokens in / out", tokens(each)),
        ("cost", cost(each)),
    ]


def people(each: Metrics) -> list[tuple[str, ...]]:
    """A row for each participant, with the columns of `PEOPLE`."""
    return [
        (
            person.participant,
            str(person.turns),
            seconds(person.median) if person.turns else NONE,
            seconds(person.longest) if person.turns else NONE,
            waited(person),
            span(person.parked),
            alone(person),
        )
        for person in each.people
    ]


def side_by_side(found: Sequence[Metrics]) -> list[Figure]:
    """All figures, with a value for each collaboration."""
    whole = [dict(summary(each)) for each in found]
    titles = list(dict.fromkeys(title for each in whole for title in each))
    counted = [Figure(t, tuple(each.get(t, NONE) for each in whole), 1) for t in titles[2:]]
    first = [Figure(t, tuple(each.get(t, NONE) for each in whole)) for t in titles[:2]]
    return [
        *first,
        *[Figure("phases"), *_phases(found)],
        *[Figure("participants"), *_people(found)],
        *[Figure("counts"), *counted],
    ]


def _phases(found: Sequence[Metrics]) -> list[Figure]:
    rows: list[Figure] = []
    labels = {p.phase: p.label for each in found for p in each.phases}
    for name, label in labels.items():
        phases = [next((p for p in each.phases if p.phase == name), None) for each in found]
        rows.append(Figure(label, tuple(span(p.total) if p else NONE for p in phases), 1))
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
        values = tuple(span(r[number_]) if number_ in r else NONE for r in rounds)
        yield Figure(f"round {number_}", values, 2)


def _median(spans: Sequence[Span | None]) -> str:
    known = [each.seconds for each in spans if each is not None]
    if not known:
        return NOT_RECORDED if spans else NONE
    return f"{seconds(median(known))} / {seconds(max(known))}"


def _people(found: Sequence[Metrics]) -> list[Figure]:
    rows: list[Figure] = []
    for name in dict.fromkeys(p.participant for each in found for p in each.people):
        people = [next((p for p in each.people if p.participant == name), None) for each in found]
        rows += [
            Figure(name, tuple(turns(p) if p else NONE for p in people), 1),
            Figure("turn, median / longest", tuple(_took(p) if p else NONE for p in people), 2),
            Figure("waiting for", tuple(waited(p) if p else NONE for p in people), 2),
            Figure("idle", tuple(span(p.parked) if p else NONE for p in people), 2),
            Figure("sole blocker", tuple(alone(p) if p else NONE for p in people), 2),
        ]
    return rows


def span(known: Span | None) -> str:
    """How long something lasted."""
    return NOT_RECORDED if known is None else format.long_span(known.seconds)


def waited(person: PersonTime) -> str:
    """How long a participant was waited for; of a person with working hours, how much of it was in them."""
    known, whole = person.total, span(person.total)
    if known is None or not person.has_hours or abs(known.working - known.seconds) < 1:
        return whole
    return f"{whole} ({format.hours_span(known.working)} in working hours)"


def seconds(known: float | None) -> str:
    """A length of time."""
    return NOT_RECORDED if known is None else format.long_span(known)


def number(known: int | None) -> str:
    """A count of something."""
    return NOT_RECORDED if known is None else str(known)


def tokens(each: Metrics) -> str:
    """The tokens that went in and out."""
    return f"{each.tokens[0]:,} / {each.tokens[1]:,}" if each.tokens else NOT_RECORDED


def cost(each: Metrics) -> str:
    """US dollars; "~" where a part of them is an estimate; whose cost is not in it."""
    if each.cost is None:
        return NOT_RECORDED
    known = f"{'~' if each.estimated else ''}${each.cost:.2f}"
    return f"{known} (unknown: {', '.join(each.unpriced)})" if each.unpriced else known


def turns(person: PersonTime) -> str:
    """How many a participant took."""
    return format.count(person.turns, "turn") + (", has the turn now" if person.waiting else "")


def alone(person: PersonTime) -> str:
    """For how long only this participant was waited for, and which part of the lead time that is."""
    if person.critical is None or person.share is None:
        return NOT_RECORDED
    return f"{format.long_span(person.critical.seconds)}, {person.share:.0%} of the lead time"


def _took(person: PersonTime) -> str:
    if not person.turns:
        return NONE
    return f"{seconds(person.median)} / {seconds(person.longest)}"


def total(counts: Sequence[Count], what: str) -> str:
    """The sum, and of several reviews each in its order."""
    values = [count.value for count in counts if count.what == what]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        missing = f"{len(values) - len(known)} {NOT_RECORDED}"
        return f"{sum(known)}, {missing}" if known else NOT_RECORDED
    return str(sum(known)) + (f" ({' + '.join(map(str, known))})" if len(known) > 1 else "")
