"""What changed is said at once, but not more often than anybody can see."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.fleet.workers import FIRST, FIRST_WAIT, LONGEST_WAIT, PACE, Batch, Outbox
from acp_core.model import Snapshot
from tests.support import toy


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return toy.Toy(str(toy.make(tmp_path / "one"))).refresh(datetime(2026, 5, 3, tzinfo=UTC))


def order(key: str) -> int:
    return int(key)


def after_first_look() -> Outbox:
    outbox = Outbox()
    outbox.take(True, "", 0.0, order)
    return outbox


def test_the_first_look_gathers_some_before_it_says_them(snapshot: Snapshot) -> None:
    outbox = Outbox()
    assert outbox.due(False, "") is None
    outbox.show("2", snapshot, 100.0)
    outbox.show("1", snapshot, 100.01)
    assert outbox.due(False, "") == 100.0 + FIRST_WAIT
    assert outbox.take(False, "", 101.0, order) == Batch((snapshot, snapshot), complete=False)
    for number in range(FIRST):
        outbox.show(str(number), snapshot, 102.0)
    assert outbox.due(False, "") < 102.0


def test_the_end_of_the_first_look_is_said_at_once_even_if_nothing_is_there() -> None:
    outbox = Outbox()
    assert outbox.due(True, "") == float("-inf")
    assert outbox.take(True, "a note", 1.0, order) == Batch((), complete=True, note="a note")
    assert outbox.due(True, "a note") is None


def test_the_first_change_is_said_at_once_and_the_next_a_little_later(snapshot: Snapshot) -> None:
    outbox = after_first_look()
    outbox.show("1", snapshot, 50.0)
    assert outbox.due(True, "") <= 50.0
    outbox.take(True, "", 50.0, order)
    outbox.show("1", snapshot, 50.001)
    assert outbox.due(True, "") == 50.0 + PACE


def test_a_changed_note_is_news() -> None:
    outbox = after_first_look()
    assert outbox.due(True, "") is None
    assert outbox.due(True, "polling") == PACE
    outbox.take(True, "polling", 1.0, order)
    assert outbox.due(True, "polling") is None


def test_what_vanished_is_said_only_if_it_was_known(snapshot: Snapshot) -> None:
    outbox = after_first_look()
    outbox.show("1", snapshot, 1.0)
    outbox.drop("1")
    assert outbox.due(True, "") is None
    outbox.show("1", snapshot, 2.0)
    outbox.take(True, "", 2.0, order)
    outbox.drop("1")
    assert outbox.take(True, "", 3.0, order) == Batch((), ("1",))
    assert outbox.due(True, "") is None


def test_what_vanished_and_came_back_in_between_is_only_new(snapshot: Snapshot) -> None:
    outbox = after_first_look()
    outbox.show("1", snapshot, 1.0)
    outbox.take(True, "", 1.0, order)
    outbox.drop("1")
    outbox.show("1", snapshot, 2.0)
    assert outbox.take(True, "", 2.0, order) == Batch((snapshot,))


def test_the_larger_a_fleet_has_become_the_more_its_first_look_gathers(snapshot: Snapshot) -> None:
    """With each batch the whole fleet is arranged anew: thousands come in some dozens of batches."""
    outbox, batches = Outbox(), 0
    for number in range(5_000):
        outbox.show(str(number), snapshot, 1.0)
        if outbox.due(False, "") == float("-inf"):
            batches += 1
            outbox.take(False, "", 1.0, order)
    assert batches < 40
    outbox.take(False, "", 1.0, order)
    outbox.show("5001", snapshot, 2.0)
    assert outbox.due(False, "") == 2.0 + LONGEST_WAIT, "and a slow reading, too"
    outbox.show("7", snapshot, 2.0)
    assert outbox.due(False, "") == 2.0 + FIRST_WAIT, "news of what is shown do not wait for others"
