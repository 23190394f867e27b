"""When an agent that a model service refuses is tried again: one limit is one, however it is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from acp_core.agents.failures import Report, classify
from acp_core.agents.limits import SPARE, Wait, next_try
from acp_core.agents.state import Limit

TOLD = datetime(2026, 5, 4, 22, 0, 20, tzinfo=UTC)
RESET = datetime(2026, 5, 4, 22, 53, 27, tzinfo=UTC)
TEXT = "You've hit your session limit · resets 10:53pm (UTC)"


def refuse(
    text: str, at: datetime, known: Limit | None = None, field: datetime | None = None
) -> Wait:
    report = Report("rate_limit", 429, field, (text,))
    return next_try(classify(report, at, UTC), 5.0, at, known)


def test_a_text_about_the_reset_of_a_field_is_no_other_limit() -> None:
    """claude tells its limit in a field once, and from then on in a text only."""
    first = refuse(TEXT, TOLD, field=RESET)
    assert (first.until, first.limited) == (RESET + SPARE, True)
    second = refuse(TEXT, first.until, first.limit)
    assert (second.until, second.limited) == (first.until + timedelta(minutes=1), False)
    assert second.limit is not None and (second.limit.at, second.limit.late) == (RESET, 1)


def test_a_field_about_the_reset_of_a_text_makes_it_exact() -> None:
    first = refuse(TEXT, TOLD)
    assert first.until == RESET.replace(second=0) + timedelta(minutes=1) + SPARE
    second = refuse(TEXT, TOLD + timedelta(minutes=1), first.limit, RESET)
    assert (second.until, second.limited) == (RESET + SPARE, True)


def test_another_time_is_another_limit_and_so_is_one_that_counts_from_now() -> None:
    known = refuse(TEXT, TOLD).limit
    late = RESET + timedelta(minutes=2)
    other = refuse("You've hit your weekly limit · resets May 6, 9am (UTC)", late, known)
    assert (other.until, other.limited) == (datetime(2026, 5, 6, 9, tzinfo=UTC) + SPARE, True)
    again = refuse("Usage limit reached. Try again in 30 seconds.", late, known)
    assert (again.until, again.limited) == (late + timedelta(seconds=30) + SPARE, True)
    once_more = refuse("Usage limit reached. Try again in 30 seconds.", again.until, again.limit)
    assert once_more.limited and once_more.until == again.until + timedelta(seconds=30) + SPARE


def test_an_outage_in_between_forgets_no_limit() -> None:
    first = refuse(TEXT, TOLD)
    late = RESET + timedelta(minutes=1)
    outage = next_try(classify(Report("overloaded", 529), late), 5.0, late, first.limit)
    assert outage.limit == first.limit
    after = refuse(TEXT, RESET + timedelta(minutes=40), outage.limit)
    assert not after.limited and after.until == RESET + timedelta(minutes=41)


def test_a_limit_that_does_not_say_again_when_it_is_reset_is_the_one_that_was_to_be() -> None:
    first = refuse(TEXT, TOLD)
    after = refuse("You've hit your session limit", first.until, first.limit)
    assert (after.limited, after.until) == (False, first.until + timedelta(minutes=1))
    alone = refuse("You've hit your session limit", TOLD)
    assert (alone.limit, alone.until) == (None, TOLD + timedelta(seconds=5))


def test_a_field_that_never_changes_is_tried_soon_for_an_hour_and_then_every_hour() -> None:
    known, at, pauses = None, TOLD, []
    for _ in range(13):
        wait = refuse(TEXT, at, known, RESET)
        pauses.append((wait.until - at) / timedelta(minutes=1))
        known, at = wait.limit, wait.until
    assert pauses[1:10] == [1, 2, 5, 10, 10, 10, 10, 10, 10]
    assert pauses[10:] == [60, 60, 60]
