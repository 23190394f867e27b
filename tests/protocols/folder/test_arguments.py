"""Arguments that are written plainly mean what the parser of the command says they mean."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model.action_field import Field, Kind
from acp_core.protocols.folder.commands import agents
from acp_core.protocols.kit.argparse_parser import Parser
from acp_core.protocols.kit.quick import quick

COMMANDS = [
    pytest.param(agents.NEXT, agents.next_parser, id="next"),
    pytest.param(agents.APPEND, agents.append_parser, id="append"),
    pytest.param(agents.VALIDATE, agents.validate_parser, id="validate"),
]
VALUES = ("/tmp/x", "ana", "", "a b", "-x", "--", "-1", "7", "007", "+7", "٣", "blocked",
          "review_submitted", "primary", "1_0", " 7 ", "--json", "=")  # fmt: skip


def parsed(parser: Parser, words: Sequence[str]) -> dict[str, object] | None:
    """What argparse says; None where it refuses."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return dict(vars(parser.parse_args(list(words))))
    except SystemExit:
        return None


@pytest.mark.parametrize(("options", "parser"), COMMANDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_quick_way_says_what_argparse_says(
    options: Sequence[Field], parser: Callable[[], Parser], data: st.DataObject
) -> None:
    words: list[str] = []
    for option in data.draw(st.permutations([*options, *options[:2]])):
        if option.required or data.draw(st.booleans()):
            name = option.option
            words.append(name if data.draw(st.integers(0, 19)) else name[:-1])
            if option.kind is not Kind.FLAG and data.draw(st.integers(0, 19)):
                usual = option.choices or (
                    ("7", "12") if option.kind is Kind.NUMBER else ("ana", "a b")
                )
                words.append(data.draw(st.sampled_from((*usual, *usual, *usual, *VALUES))))
    found = quick(words, options)
    if found is not None:
        said = parsed(parser(), words)
        assert said is not None, words
        assert {name: said[name] for name in vars(found)} == vars(found), words
        assert not {name for name in said if said[name] is not None} - set(vars(found))


@pytest.mark.parametrize(("options", "parser"), COMMANDS)
def test_every_option_of_the_parser_has_a_quick_way(
    options: Sequence[Field], parser: Callable[[], Parser]
) -> None:
    known = {name for action in parser()._actions for name in action.option_strings}
    assert {option.option for option in options} == known - {"-h", "--help"}


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
    found = quick(words, agents.APPEND)
    assert found is not None and (found.reply_to, found.json, found.force) == (7, True, False)
    assert quick([*words, "--help"], agents.APPEND) is None
    assert quick(words[2:], agents.APPEND) is None
