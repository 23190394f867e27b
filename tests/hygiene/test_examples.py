"""The default run is the same each time: it draws no new examples, and keeps none of those it drew.

Random search belongs to the slow tests, whose seed is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hygiene.sources import ROOT, files

CHOSEN_ELSEWHERE = re.compile(r"derandomize=False|database=(?!None)|load_profile\(")


def drawn() -> list[int]:
    """What a property is tried with, in one run of it."""
    numbers: list[int] = []

    @given(st.integers())
    def noted(number: int) -> None:
        numbers.append(number)

    noted()
    return numbers


def test_a_property_is_tried_with_the_same_examples_in_each_run() -> None:
    assert drawn() == drawn()
    assert settings.default.database is None  # type: ignore[attr-defined]


def test_no_test_chooses_otherwise() -> None:
    own = ROOT / "tests" / "conftest.py"
    others = [
        path
        for path in files("tests")
        if path not in (own, ROOT / "tests/hygiene/test_examples.py")
    ]
    assert [str(path) for path in others if CHOSEN_ELSEWHERE.search(path.read_text())] == []


@pytest.mark.slow
def test_the_slow_tests_are_tried_with_new_ones_by_a_seed_that_is_printed() -> None:
    one, other = (started("-m", "slow") for _ in range(2))
    assert one != other
    assert started("-m", "slow", "--hypothesis-seed=5") == "5"


def started(*options: str) -> str:
    """The seed that a run names."""
    command = [sys.executable, "-m", "pytest", "--collect-only", *options, __file__]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    match = re.search(r"^new examples: --hypothesis-seed=(\d+)$", ran.stdout, re.MULTILINE)
    assert match, ran.stdout
    return match[1]
