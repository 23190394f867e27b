"""From one thing worth looking at to the next."""

from __future__ import annotations

from acp_core.history.moments import (
    DOCUMENT,
    EVENT,
    FINDINGS,
    Moment,
    next_place,
    places_of_kind,
    stalls,
)


def moments(*times: tuple[float, str]) -> list[Moment]:
    return [Moment(at, kind, 0, "") for at, kind in times]


def test_a_stall_is_a_wait_that_is_unusual_for_this_run() -> None:
    usual = [(n * 30.0, EVENT) for n in range(10)]
    found = moments(*usual, (400.0, DOCUMENT), (1_000.0, EVENT), (1_030.0, EVENT))
    assert stalls(found) == [11]
    assert stalls(moments((0.0, EVENT), (10.0, EVENT), (50.0, EVENT))) == [], "under a minute"
    assert stalls([]) == []


def test_the_nearest_in_a_direction_is_gone_to() -> None:
    found = moments((0, EVENT), (1, FINDINGS), (2, EVENT), (3, FINDINGS))
    assert places_of_kind(found, "findings") == [1, 3]
    assert (next_place([1, 3], 1, 1), next_place([1, 3], 1, -1)) == (3, None)
    assert (next_place([1, 3], 2, -1), next_place([], 0, 1)) == (1, None)
