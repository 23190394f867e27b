"""What never ends is told, wherever it is at that moment; what is only slow is not."""

from __future__ import annotations

import gc
import threading
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.faults.bounds import bounded
from tests.support import waiting
from tests.support.waiting import until_still


def spin() -> None:
    while True:
        pass


def test_work_without_an_end_is_told_with_its_place_even_where_readers_catch_every_error() -> None:
    told = pytest.raises(AssertionError, match=r"not done after 0\.05 s of work, .* spin$")
    with told, bounded(works=0.05, look=0.02):
        while True:
            try:
                spin()
            except Exception:
                continue


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_lost_in_a_callback_of_the_collector_is_told_afterwards() -> None:
    """Python hands an error in such a callback to nobody."""

    def callback(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(callback)
        spin()

    told = pytest.raises(AssertionError, match=r"not done after 0\.05 s of work")
    with told, bounded(works=0.05, look=0.02):
        gc.callbacks.append(callback)
        gc.collect()
        spin()
    assert callback not in gc.callbacks


def test_what_waits_for_nothing_is_told() -> None:
    told = pytest.raises(AssertionError, match=r"waiting for 1 s, .* wait$")
    with told, bounded(waits=1.0, look=0.1):
        threading.Event().wait()


def test_a_wait_goes_on_while_something_moves_and_ends_where_nothing_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count()
    monkeypatch.setattr(
        waiting, "time", SimpleNamespace(monotonic=lambda: next(clock) * 5, sleep=lambda _: None)
    )
    looks = iter(range(60))

    def moves() -> bool:
        number = next(looks)
        (tmp_path / str(number)).touch()
        return number == 40

    assert until_still(moves, lambda: "the last", tmp_path)

    def beats() -> bool:
        (tmp_path / "alive").write_text(str(next(clock)))
        return False

    with pytest.raises(AssertionError, match=r"nothing has moved for 60 s; waited for the end: 7"):
        until_still(beats, lambda: "the end: 7", tmp_path)
    with pytest.raises(AssertionError, match="no end after 900 s"):
        until_still(lambda: (tmp_path / str(next(clock))).touch(), lambda: "the end", tmp_path)
