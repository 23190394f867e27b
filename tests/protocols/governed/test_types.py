"""Files of governed runs become types, whatever stands in them, and their texts are safe to show."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.governed.schema import (
    AcceptedTurn,
    Config,
    CoordinatorConfig,
    CoordinatorLine,
    CoordinatorState,
    LedgerLine,
    RunEvent,
    RunState,
    TurnState,
    decode,
)

KINDS = (
    AcceptedTurn, Config, CoordinatorConfig, CoordinatorLine, CoordinatorState, LedgerLine,
    RunEvent, RunState, TurnState,
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_whatever_stands_in_a_file_is_read(kind: type[Any], data: st.DataObject) -> None:
    names = [each.name for each in fields(kind)]
    places = [".".join(place) for each in fields(kind) for place in each.metadata.get("places", ())]
    tops = [each.partition(".")[0] for each in places if each]
    value = data.draw(st.dictionaries(st.sampled_from([*names, *tops]), VALUES))
    read = decode(kind, value)
    for name in names:
        default, found = getattr(kind(), name), getattr(read, name)
        assert isinstance(found, type(default)) or default is None or name == "seconds"
        if isinstance(found, str):
            assert "\n" not in found and "\x1b" not in found


def test_the_first_place_that_is_filled_counts() -> None:
    line = {"type": "", "decision": "operator_escalated", "by": "", "role": "pm"}
    read = decode(LedgerLine, line | {"at": "soon", "timestamp": "2026-01-01T00:00:00Z"})
    assert (read.type, read.kind, read.who) == ("", "operator_escalated", "pm")
    assert read.at == datetime(2026, 1, 1, tzinfo=UTC)


def test_texts_are_lines_of_bounded_length_that_are_safe_to_show() -> None:
    turn = decode(TurnState, {"assigned_role": "p\x1b[31mm\n", "runtime_id": "x" * 500})
    assert turn.role == "p␛[31mm␤"
    assert len(turn.runtime) == 80 and turn.runtime.endswith("…")


def test_what_no_field_names_stays_as_it_was_written() -> None:
    value = {"assigned_role": "pm", "attempt": 2, "made_by_another_program": [1, {"two": None}]}
    assert decode(TurnState, value).raw is value
