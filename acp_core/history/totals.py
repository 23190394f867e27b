"""The figures of several collaborations, such as a chain, as those of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from acp_core.history.metrics import Metrics, PersonTime, PhaseTime, Span

TOTAL = "total"


def total(found: Sequence[Metrics]) -> Metrics:
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
        rounds=_sum(found, lambda each: each.rounds),
        reviews=sum(each.reviews for each in found),
        counts=tuple(count for each in found for count in each.counts),
        errors=sum(each.errors for each in found),
        warnings=sum(each.warnings for each in found),
        human_acts=sum(each.human_acts for each in found),
        retries=_sum(found, lambda each: each.retries),
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


def _sum(found: Sequence[Metrics], figure: Callable[[Metrics], int | None]) -> int | None:
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
