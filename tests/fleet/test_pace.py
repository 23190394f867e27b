"""A change is read at once, a stream of them a few times a second."""

from __future__ import annotations

import itertools

import pytest

from acp_core.fleet.member import AT_ONCE, FASTEST, STEADY, Pace


def readings(changes: list[float]) -> list[float]:
    """When what changes at these times is read, where nothing else takes time."""
    pace, read = Pace(), []
    for at in changes:
        if read and read[-1] >= at:
            continue  # it is read together with one before
        read.append(max(at, pace.due()))
        pace.begin(read[-1])
    return read


def gaps(read: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(read)]


def test_changes_now_and_then_are_read_at_once() -> None:
    changes = [number * STEADY * 1.1 for number in range(40)]
    assert readings(changes) == changes


def test_a_few_at_once_are_read_as_fast_as_anybody_can_see() -> None:
    changes = [number * FASTEST * 1.01 for number in range(AT_ONCE)]
    assert readings(changes) == changes
    read = readings([number * FASTEST / 10 for number in range(10 * (AT_ONCE - 1))])
    assert min(gaps(read)) >= FASTEST * 0.999


@pytest.mark.parametrize("rate", [10, 100])
def test_a_stream_is_read_a_few_times_a_second_and_to_its_end(rate: int) -> None:
    seconds = 20
    changes = [number / rate for number in range(seconds * rate)]
    read = readings(changes)
    assert len(read) <= AT_ONCE + seconds / STEADY
    assert read[-1] >= changes[-1]
    assert max(gaps(read)) < STEADY + 0.11


def test_after_a_rest_a_change_is_read_at_once_again() -> None:
    stream = [number / 50 for number in range(200)]
    after = stream[-1] + AT_ONCE * STEADY + 0.1
    assert readings([*stream, after])[-1] == after
