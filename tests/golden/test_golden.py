"""What `acp` prints and writes is what it printed and wrote before."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.golden.compare import difference, path_of
from tests.golden.goldens import all_goldens

GOLDENS = {name: make for name, make in all_goldens().items() if not name.startswith("pictures/")}
"""All but the pictures: those are drawn by a program that goes on meanwhile, so that whoever changes
the screens compares them by `python -m tests.golden pictures/`."""
QUICK = 2
"""So many states of each protocol are compared by default; the others take long together."""


def _marked() -> list[object]:
    """Every golden; slow but for the first ones of each folder."""
    seen = Counter[str]()
    marked: list[object] = []
    for name in GOLDENS:
        seen[name.partition("/")[0]] += 1
        slow = seen[name.partition("/")[0]] > QUICK
        marked.append(pytest.param(name, marks=pytest.mark.slow) if slow else name)
    return marked


@pytest.mark.parametrize("name", _marked())
def test_nothing_became_different(name: str) -> None:
    assert path_of(name).exists(), f"make it: python -m tests.golden {name}"
    assert not (found := difference(name, GOLDENS[name]())), found
