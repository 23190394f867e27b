"""A short part of every campaign; ``python -m tests.faults`` carries out all of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import Campaign, Case, carry_out
from tests.faults.every import EVERY

# name -> (every so many-th case, at most) by default, and in the slow part
SHORT = {
    "cut": (463, 40), "fuzz": (1, 36), "limits": (97, 20), "hostile": (37, 10),
}  # fmt: skip
SLOW = {
    "cut": (29, 1_000), "fuzz": (1, 540), "limits": (7, 250), "hostile": (5, 100), "screens": (3, 20),
}  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small files are made and removed."""
    memory = "/dev/shm"
    made = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    yield Path(made) / "cases"
    shutil.rmtree(made, ignore_errors=True)


def passes(name: str, place: Path, parts: dict[str, tuple[int, int]]) -> None:
    step, most = parts[name]
    result = carry_out(EVERY[name], place, seed=7, step=step, most=most)
    assert not result.failures, "\n".join(result.failures[:10])
    assert result.count


@pytest.mark.parametrize("name", SHORT)
def test_a_few_cases_of_a_campaign(name: str, place: Path) -> None:
    passes(name, place, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_many_cases_of_a_campaign(name: str, place: Path) -> None:
    passes(name, place, SLOW)


def test_a_case_that_fails_is_told(place: Path) -> None:
    def broken() -> None:
        raise ValueError("so it goes")

    def cases(_: Path, seed: int) -> Iterator[Case]:
        yield Case("one", lambda: None)
        yield Case("two", broken)

    result = carry_out(Campaign("x", "x", cases), place)
    assert (result.count, result.ended) == (2, True)
    [told] = result.failures
    assert told.startswith("two: ValueError at test_campaigns.py:") and told.endswith("so it goes")
