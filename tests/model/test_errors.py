"""A refusal quotes what it refuses, and is one safe line all the same, wherever it is made."""

from __future__ import annotations

import pytest

from acp_core.model import errors
from acp_core.model.errors import Refused

HOSTILE = "one\ntwo\r\nthree\x1b[31m\x07\u202eeurt\u2028\U000e0041"


def all_kinds(kind: type[Refused] = Refused) -> list[type[Refused]]:
    return [kind, *(each for below in kind.__subclasses__() for each in all_kinds(below))]


def test_a_refusal_is_one_safe_line() -> None:
    refused = Refused(f"{HOSTILE} is already decided", 3)
    assert str(refused) == "one␤two␤three␛[31m␇�eurt␤� is already decided"
    assert refused.code == 3


@pytest.mark.parametrize("kind", ["CommandError", "BadAddress", "StoreRefused", "PresetError"])
def test_so_is_one_of_every_kind(kind: str) -> None:
    import acp_core.agents.presets
    import acp_core.stores.address
    import acp_core.stores.engine  # noqa: F401

    made = {each.__name__: each for each in all_kinds()}[kind](HOSTILE)
    assert str(made).isprintable()


def test_an_endless_refusal_ends() -> None:
    message = str(Refused("x" * 1_000_000))
    assert len(message) == errors.LONGEST
    assert message.endswith("x…")
