"""Slow things run in a few threads, each lane in its order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from acp_core.fleet import workers as module
from acp_core.fleet.workers import Urgency, Workers

PATIENCE = 60  # s until a test gives up


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers(threads=2)
    yield workers
    workers.close()


def test_a_lane_runs_in_order_and_never_two_at_once(workers: Workers) -> None:
    lane, running, seen = workers.lane(), [], []

    def job(number: int) -> int:
        running.append(number)
        seen.append((number, len(running)))
        running.remove(number)
        return number * 2

    results = [lane.submit(lambda n=n: job(n)) for n in range(200)]
    assert [result.result(PATIENCE) for result in results] == [n * 2 for n in range(200)]
    assert seen == [(n, 1) for n in range(200)]


def test_two_lanes_run_side_by_side(workers: Workers) -> None:
    both = threading.Barrier(2)
    waiting = [workers.lane().submit(lambda: both.wait(PATIENCE)) for _ in range(2)]
    assert sorted(result.result(PATIENCE) for result in waiting) == [0, 1]


def test_what_a_person_waits_for_overtakes_what_may_wait() -> None:
    workers, gate, order = Workers(threads=1), threading.Event(), []
    first = workers.lane().submit(lambda: gate.wait(PATIENCE))
    slow = workers.lane()
    waiting = [slow.submit(lambda n=n: order.append(n), Urgency.IDLE) for n in range(3)]
    waiting.append(workers.lane().submit(lambda: order.append("changed"), Urgency.CHANGE))
    waiting.append(workers.lane().submit(lambda: order.append("asked"), Urgency.CALL))
    gate.set()
    for result in [first, *waiting]:
        result.result(PATIENCE)
    assert order == ["asked", "changed", 0, 1, 2]
    workers.close()


def test_an_error_belongs_to_who_asked_and_ends_nothing(workers: Workers) -> None:
    lane = workers.lane()
    wrong, right = lane.submit(lambda: 1 / 0), lane.submit(lambda: 1)
    with pytest.raises(ZeroDivisionError):
        wrong.result(PATIENCE)
    assert right.result(PATIENCE) == 1


def test_what_is_cancelled_before_it_begins_is_not_run(workers: Workers) -> None:
    lane, gate, ran = workers.lane(), threading.Event(), []
    lane.submit(lambda: gate.wait(PATIENCE))
    unwanted = lane.submit(lambda: ran.append(1))
    assert unwanted.cancel()
    gate.set()
    assert lane.submit(lambda: ran).result(PATIENCE) == []


def test_stuck_threads_get_help(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STUCK", -1.0)
    gate = threading.Event()
    begun = [threading.Event() for _ in range(2)]
    assert not workers.help()
    for event in begun:
        workers.lane().submit(lambda event=event: (event.set(), gate.wait(PATIENCE)))
    for event in begun:
        assert event.wait(PATIENCE)
    assert not workers.help()  # nothing waits
    answer = workers.lane().submit(lambda: "here")
    assert workers.help()
    assert answer.result(PATIENCE) == "here"
    gate.set()


def test_closing_cancels_what_has_not_begun() -> None:
    workers, gate, begun = Workers(threads=1), threading.Event(), threading.Event()
    lane = workers.lane()
    running = lane.submit(lambda: (begun.set(), gate.wait(PATIENCE)))
    assert begun.wait(PATIENCE)
    same, other = lane.submit(lambda: 1), workers.lane().submit(lambda: 1)
    workers.close()
    gate.set()
    running.result(PATIENCE)
    for left in (same, other, lane.submit(lambda: 1)):
        with pytest.raises(CancelledError):
            left.result(PATIENCE)
