"""Garbage is searched for after a picture, and what stays is not searched."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from acp_tui.terminal.garbage import FEW, OLDER, QUIET, SOME, YOUNG, Heap


class Ring:
    """An object that only a search frees: it holds itself."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The process's own searches are as before in the end."""
    threshold, running = gc.get_threshold(), gc.isenabled()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
    if running:
        gc.enable()


def rings(number: int) -> weakref.ref[Ring]:
    """Make so many, and let go of them."""
    made = [Ring() for _ in range(number)]
    return weakref.ref(made[-1])


async def after_a_picture(heap: Heap) -> None:
    heap.drawn()
    await asyncio.sleep(2 * QUIET)


async def test_much_garbage_goes_after_a_picture_and_little_stays_a_while() -> None:
    heap = Heap()
    heap.settle()
    assert gc.get_threshold()[0] == YOUNG
    gc.collect()
    few = rings(FEW // 10)
    await after_a_picture(heap)
    assert few() is not None
    many = rings(FEW)
    assert many() is not None
    await after_a_picture(heap)
    assert few() is None
    assert many() is None


async def test_what_grew_older_is_searched_too() -> None:
    heap = Heap()
    heap.settle()
    gc.collect()
    held = [Ring()]
    old = weakref.ref(held[0])
    gc.collect(0)  # it is not among the youngest any more
    held.clear()
    for _ in range(OLDER + 2):
        rings(FEW)
        await after_a_picture(heap)
    assert old() is None


@pytest.mark.slow
async def test_nothing_is_searched_before_the_start_is_over() -> None:
    heap = Heap()
    heap.begin()
    many = rings(FEW)
    await after_a_picture(heap)
    assert many() is not None
    heap.settle()
    assert gc.isenabled()
    gc.unfreeze()
    gc.collect()
    assert many() is None


async def test_a_large_fleet_is_put_aside_as_it_is_read() -> None:
    """Nothing of it is searched again with every picture of the first look."""
    heap = Heap()
    heap.settle()
    held = [Ring() for _ in range(FEW)]
    heap.read((str(number), 10) for number in range(SOME - 1))
    assert gc.get_count()[0] >= FEW // 2
    heap.read([("0", 10), ("1", 10)])
    assert gc.get_count()[0] >= FEW // 2, "it is no larger than before"
    heap.read([("another", 10)])
    assert gc.get_count()[0] < FEW // 10
    await after_a_picture(heap)
    aside = gc.get_freeze_count()
    held.append(Ring())
    heap.read((str(number), 11) for number in range(SOME))
    assert gc.get_freeze_count() <= aside, "changes put nothing aside"
