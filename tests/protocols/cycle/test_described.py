"""Every act of a cycle is described, and what its preview names can be typed back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model.action_spec import ActionSpec, Field, Kind
from acp_core.protocols.cycle.acts.table import COMMANDS
from acp_core.protocols.kit.binding import Location, place_words, words_of
from acp_core.protocols.kit.parser import Parser
from tests.hygiene.sources import PROTOCOLS

TEXTS = st.text("ab-= '\"é", max_size=6).filter(lambda text: text != "--")
ACTS = [each for each in COMMANDS.specs.values() if isinstance(each, ActionSpec)]


def value(field: Field) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    if field.choices:
        return st.sampled_from(field.choices)
    texts = TEXTS.filter(bool) if field.required else TEXTS
    if field.position:
        texts = texts.filter(lambda text: not text.startswith("-"))
    return {
        Kind.FLAG: st.booleans(),
        Kind.LIST: st.lists(TEXTS, max_size=3),
        Kind.NUMBER: st.integers(0, 99),
        Kind.DURATION: st.integers(0, 99).map(float),
    }.get(field.kind, texts.map(lambda text: text or None) if field.optional else texts)


@pytest.mark.parametrize("spec", ACTS, ids=lambda spec: spec.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_command_that_a_preview_names_says_the_same(
    spec: ActionSpec, data: st.DataObject
) -> None:
    meant = {each.name: data.draw(value(each), each.name) for each in spec.fields}
    words = [word for each in spec.fields for word in words_of(each, meant[each.name])]
    place = place_words(spec, Location("/a/folder"))
    found = Parser(spec, "acp x").parse_args([*place, *words])
    assert {name: getattr(found, name) for name in meant} == meant
    assert found.folder == "/a/folder"


def test_no_option_of_an_act_is_declared_by_hand() -> None:
    words = ("add_argument", "click.option", "argparse")
    wrong = [
        str(path)
        for path in (Path(PROTOCOLS) / "cycle").rglob("*.py")
        if any(word in path.read_text() for word in words)
    ]
    assert wrong == []
