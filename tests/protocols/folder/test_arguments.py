"""Arguments that are written plainly mean what the parser of the command says they mean."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.folder.acts.agents import PLAIN
from acp_core.protocols.folder.acts.table_agents import SPECS
from acp_core.protocols.kit.command_line import quick
from acp_core.protocols.kit.parser import fields_of, parse

VALUES = ("/tmp/x", "ana", "", "a b", "-x", "--", "-1", "7", "007", "+7", "٣", "blocked",
          "review_submitted", "primary", "1_0", " 7 ", "--json", "=", "2.5", ".5", "5.", ".", "1.2.3",
          "0.1234567", "1e3", "20m")  # fmt: skip

USUAL = {Kind.NUMBER: ("7", "12"), Kind.DURATION: ("2", "0.5")}


def parsed(name: str, words: Sequence[str]) -> dict[str, object] | None:
    """What the parser says; None where it refuses."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return dict(vars(parse(SPECS[name], f"acp {name}", words)))
    except (SystemExit, Refused):
        return None


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_quick_way_says_what_the_parser_says(name: str, data: st.DataObject) -> None:
    options = PLAIN[name]
    words: list[str] = []
    for option in data.draw(st.permutations([*options, *options[:2]])):
        if option.required or data.draw(st.booleans()):
            written = option.option
            if not option.position or data.draw(st.booleans()):
                words.append(written if data.draw(st.integers(0, 19)) else written[:-1])
            if option.kind is not Kind.FLAG and data.draw(st.integers(0, 19)):
                usual = option.choices or USUAL.get(option.kind, ("ana", "a b"))
                words.append(data.draw(st.sampled_from((*usual, *usual, *usual, *VALUES))))
    found = quick(words, options)
    if found is not None:
        said = parsed(name, words)
        assert said is not None, words
        assert {each: said[each] for each in vars(found)} == vars(found), words
        assert set(said) - set(vars(found)) == {"said"}


@pytest.mark.parametrize("name", PLAIN)
def test_every_option_of_the_parser_has_a_quick_way(name: str) -> None:
    assert fields_of(SPECS[name]) == PLAIN[name]


@pytest.mark.parametrize("name", PLAIN)
def test_an_old_name_of_an_option_means_the_same(name: str) -> None:
    for option in PLAIN[name]:
        for old in option.aliases:
            words = {each.option: each for each in PLAIN[name] if each.required}
            plain = [word for each in words.values() for word in (each.option, _any(each))]
            assert parsed(name, [*plain, old]) == parsed(name, [*plain, option.option])
            assert quick([*plain, old], PLAIN[name]) is None


def _any(field: Field) -> str:
    return str(field.choices[0]) if field.choices else "x"


def test_what_agents_write_goes_the_quick_way() -> None:
    words = [
        "--folder",
        "c",
        "--participant",
        "ana",
        "--event",
        "blocked",
        "--summary",
        "No",
        "--reply-to",
        "7",
        "--json",
    ]
    found = quick(words, PLAIN["append"])
    assert found is not None and (found.reply_to, found.json, found.unlocked) == (7, True, False)
    assert quick([*words, "--help"], PLAIN["append"]) is None
    assert quick(words[2:], PLAIN["append"]) is None


def test_a_folder_by_position_goes_the_quick_way() -> None:
    found = quick(["c", "--json"], PLAIN["validate"])
    assert found is not None and (found.folder, found.json) == ("c", True)
    assert quick(["c", "d"], PLAIN["validate"]) is None
    assert quick(["c", "--folder", "d"], PLAIN["validate"]) is None
