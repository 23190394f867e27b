"""What differs from run to run is replaced, and nothing else."""

from __future__ import annotations

import pytest

from tests.golden.normal import Normal


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("evt_52c1a77c0b5d9e34", "evt_<id 1>"),
        ("evt_5291877305529634", "evt_<id 1>"),  # by chance of digits alone
        ("turn_0000000000000002", "turn_0000000000000002"),  # a builder counts its turns
        ("turn_4000000000000001", "turn_4000000000000001"),  # it stands in the files already
    ],
)
def test_an_id_that_was_drawn_gets_a_number(given: str, normal: str) -> None:
    before = {"work/log": (0o644, b"turn_4000000000000001 turn_0000000000000002")}
    assert Normal({}, "0.0", before).text(given) == normal
