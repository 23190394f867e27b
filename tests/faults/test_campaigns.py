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
from tests.faults.hostile import alone
from tests.faults.places import MAKERS

# name -> (every so many-th case, at most) in the slow tests, and in the weekly ones
SHORT = {
    "cut": (463, 8), "fuzz": (1, 4), "limits": (131, 2), "hostile": (53, 3), "clocks": (29, 5),
    "mixed": (1, 2), "random": (1, 1), "kills": (23, 6), "errors": (13, 6), "power": (17, 6), "strace": (31, 4),
    "starting": (3, 3), "models": (2, 2), "screens": (17, 2), "checkpoint": (1, 8), "fleet": (1, 2),
}  # fmt: skip
LONG = {
    "cut": (37, 500), "fuzz": (1, 270), "limits": (11, 120), "hostile": (11, 40), "clocks": (5, 60),
    "mixed": (1, 5), "random": (1, 3), "kills": (1, 150), "errors": (1, 80), "power": (1, 100), "strace": (9, 15),
    "starting": (1, 8), "models": (1, 5), "screens": (5, 8),
    "checkpoint": (1, 160), "fleet": (1, 12),
}  # fmt: skip


NEEDS = {"strace"}  # what has no cases where a program is missing


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small files are made and removed."""
    memory = "/dev/shm"
    made = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    monkeypatch.setattr(tempfile, "tempdir", made)
    yield Path(made) / "cases"
    shutil.rmtree(made, ignore_errors=True)


def passes(name: str, place: Path, parts: dict[str, tuple[int, int]]) -> None:
    step, most = parts[name]
    result = carry_out(EVERY[name], place, seed=7, step=step, most=most)
    assert not result.failures, "\n".join(result.failures[:10])
    assert result.count or name in NEEDS


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_a_few_cases_of_a_campaign(name: str, place: Path) -> None:
    passes(name, place, SHORT)


@pytest.mark.weekly
@pytest.mark.parametrize("name", LONG)
def test_many_cases_of_a_campaign(name: str, place: Path) -> None:
    passes(name, place, LONG)


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "folder" else pytest.param(kind, marks=pytest.mark.slow) for kind in MAKERS],
)
def test_no_sign_that_does_harm_passes_alone(kind: str, place: Path) -> None:
    place.mkdir()
    for case in alone(place):
        if case.label.startswith(f"{kind}:"):
            case.run()


def test_a_case_that_fails_is_told(place: Path) -> None:
    def broken() -> None:
        raise ValueError("so it goes")

    def silent() -> None:
        raise AssertionError

    def cases(_: Path, seed: int) -> Iterator[Case]:
        yield Case("one", lambda: None)
        yield Case("two", broken)
        yield Case("three", silent)

    result = carry_out(Campaign("x", "x", cases), place)
    assert (result.count, result.ended) == (3, True)
    told, quiet = result.failures
    assert quiet.endswith(": raise AssertionError")
    assert told.startswith("two: ValueError at test_campaigns.py:") and told.endswith("so it goes")
