"""Commands made from descriptions: what is typed, in whatever order, is what the act gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model.action_field import Field, Kind
from acp_core.model.action_spec import ActionSpec, QuerySpec
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Location, bound, words_of
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.parser import Parser
from acp_core.protocols.kit.values import Values, completed, require
from acp_core.protocols.kit.wording import DIFFERENCE, difference
from acp_core.protocols.wire.acts import table
from acp_core.protocols.workspaces.acts.table import COMMANDS
from tests.hygiene.sources import PROTOCOLS, protocol_names

TEXTS = st.text("ab-= '\"é", max_size=6).filter(lambda text: text != "--")  # see below
SPEC = ActionSpec(
    "paint",
    "Paint",
    "Paint it.",
    fields=(
        Field("what", "What", "Name it.", required=True, position=True),
        Field("colour", "Colour", "Choose one.", Kind.CHOICE, ("red", "blue"), {"red": "as blood"}),
        Field("coats", "Coats", "How many.", Kind.NUMBER, least=1, most=9, flag="--n", short="-n"),
        Field("dry", "Dry", "Let it dry.", Kind.DURATION, aliases=("--wait",)),
        Field("brushes", "Brushes", "Which brushes.", Kind.LIST, flag="--brush"),
        Field("outside", "Outside", "Paint it outside.", Kind.FLAG),
        Field("clean", "Clean", "Clean it before.", Kind.FLAG, default=True),
        Field("by", "By", "Who paints.", form=False, unasked="a form"),
    ),
    command="toy paint",
)


def typed(*words: str) -> Any:
    """The values that these words make."""
    return Parser(SPEC, "acp toy paint").parse_args(list(words))


def value(field: Field) -> st.SearchStrategy[Any]:
    """Any value of a field."""
    if field.choices:
        return st.sampled_from(field.choices)
    return {
        Kind.FLAG: st.booleans(),
        Kind.LIST: st.lists(TEXTS, max_size=3),
        Kind.NUMBER: st.integers(0, 99),
        Kind.DURATION: st.integers(0, 99).map(float),
    }.get(field.kind, TEXTS.filter(bool) if field.required else TEXTS)


SPECS = (
    SPEC,
    table.AGENT,
    table.BRIDGE,
    table.RELAY,
    *table.COMMANDS.specs.values(),
    *COMMANDS.specs.values(),
)
ACTS = [spec for spec in SPECS if isinstance(spec, ActionSpec)]


@pytest.mark.parametrize("spec", ACTS, ids=lambda spec: spec.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_command_that_a_preview_names_says_the_same(
    spec: ActionSpec, data: st.DataObject
) -> None:
    meant = {each.name: data.draw(value(each), each.name) for each in spec.fields}
    words = [word for each in spec.fields for word in words_of(each, meant[each.name])]
    place = ["/a/folder"] if spec.place else []
    found = Parser(spec, "acp x").parse_args([*place, *words])
    assert {name: getattr(found, name) for name in meant} == meant
    assert not spec.place or getattr(found, spec.place.name) == "/a/folder"


def test_words_and_options_stand_in_any_order() -> None:
    one = typed("here", "wall", "--colour", "red", "-n", "2")
    other = typed("-n", "2", "--what=wall", "here", "--colour", "as blood")
    for values in (one, other):
        assert (values.folder, values.what, values.colour, values.coats) == (
            "here",
            "wall",
            "red",
            2,
        )
    between = typed("here", "--outside", "wall")
    assert (between.folder, between.what, between.outside) == ("here", "wall", True)


def test_old_options_durations_and_abbreviations_work() -> None:
    assert typed("--wait", "20m").dry == typed("--dry", "1200").dry == 1200
    assert typed("--coats", "3").coats == typed("--n", "3").coats == 3
    assert typed("--brush", "a", "--brushes", "b").brushes == ["a", "b"]
    assert typed("--outs").outside and not typed("--no-clean").clean and typed().clean


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--colour", "green"], "'green' is not one of red, blue"),
        (["--dry", "soon"], "'soon' is not a duration"),
        (["-n", "two"], "must be a whole number"),
        (["--what"], "expected one argument"),
        (["--what=--"], "expected one argument"),
        (["--brush=--"], "expected one argument"),
        (["a", "b", "c"], "unrecognized arguments: c"),
    ],
)
def test_what_cannot_be_meant_is_one_line(words: list[str], why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        typed(*words)
    assert str(refused.value).endswith("(see `acp toy paint --help`)")


def test_everything_that_is_missing_or_out_of_bounds_is_said_at_once() -> None:
    with pytest.raises(Refused, match=r"WHAT \(or --what\): is missing; --n: must be at most 9"):
        require(SPEC.fields, typed("-n", "10"))
    require(SPEC.fields, typed("here", "wall", "-n", "9"))


def test_what_a_form_cannot_ask_for_has_its_own_value() -> None:
    asked = completed(SPEC.fields, {"what": "wall"})
    assert (asked.by, asked.clean, asked.brushes, asked.coats) == ("a form", True, [], None)
    assert asked.said == {"what"}
    assert completed(SPEC.fields, typed("here", "wall")).by == ""


def test_forms_json_and_commands_give_the_act_the_same_values() -> None:
    got: list[Values] = []
    action = bound(SPEC, Location("/a"), lambda values: got.append(values) or _nothing(), _done)
    made = action.inputs.model_validate({"what": "wall", "colour": "as blood", "wait": 5})
    action.preview(made)
    action.preview({"what": "wall", "colour": "red", "dry": 5.0})
    assert [(each.what, each.colour, each.dry, each.by) for each in got] == [
        ("wall", "red", 5.0, "a form"),
        ("wall", "red", 5.0, "a form"),
    ]
    assert "by" not in action.inputs.model_fields


def _nothing() -> Any:
    raise Refused("nothing is painted here")


def _done(values: Values) -> Any:
    raise OSError(28, "No space left on device", "/a/wall")


def test_refusals_are_told_and_not_raised() -> None:
    action = bound(SPEC, Location("/a"), lambda _: _nothing(), _done)
    assert action.preview({"what": "wall"}).refused == "nothing is painted here"
    assert action.perform({"what": "wall"}).sentence == "/a/wall: No space left on device"


def test_help_is_one_style_and_hides_what_is_old() -> None:
    said = Parser(SPEC, "acp toy paint").format_help()
    assert said.startswith(
        "Usage: acp toy paint [OPTIONS] [FOLDER] WHAT\n\n  Paint it.\n\nOptions:\n"
    )
    assert "  -n, --n N " in said and "--clean / --no-clean" in said and "[repeatable]" in said
    assert "--wait" not in said and "--coats" not in said


def test_a_switch_that_became_a_verb_works_as_before() -> None:
    parser = COMMANDS.find("conflicts")
    assert parser is not None
    for words in (
        ["q", "--resolve", "c1", "--keep", "ann"],
        ["--resolve=c1", "q", "--keep", "ann"],
    ):
        values = parser.parse_args(words)
        assert (values.spec.name, values.folder, values.conflict) == ("resolve", "q", "c1")
        assert values.keep == "ann"
    assert parser.parse_args(["q"]).spec.name == "conflicts"


def test_a_command_after_two_dashes_is_refused_where_none_is_taken() -> None:
    commands = Commands("toy", "Paint things.", (SPEC,), "acp.toy/1")
    assert commands.main(["paint", "here", "wall", "--", "rm"]) == 2


def test_a_query_asks_for_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMANDS.main(["check-prompt"]) == 2
    assert capsys.readouterr().err == "error: FILE (or --file): is missing\n"


def test_an_act_may_be_about_nothing_that_is_there_and_begin_what_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = Field("key", "Key", "Sign with it.", metavar="PATH", bare="own")
    spec = ActionSpec("serve", "Serve", "Serve.", fields=(key,), place=None, dry_run=False,
                      command="serve", run=f"{__name__}:served")  # fmt: skip
    commands = Commands("serve", "Serve.", (spec,), "acp.toy/1")
    for words, said in (([], ""), (["--key"], "own"), (["--key", "mine"], "mine")):
        assert commands.main(words) == 0
        assert capsys.readouterr().out == f"key {said}\n"
    assert commands.main(["--dry-run"]) == 2
    assert "[--key" not in commands.parser().format_help()
    assert "--key [PATH]" in commands.parser().format_help()


def test_a_query_may_print_while_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    spec = QuerySpec("follow", "Follow.", fields=(Field("key"),), run=f"{__name__}:served",
                     command="toy follow")  # fmt: skip
    assert Commands("toy", "Paint things.", (spec,), "acp.toy/1").main(["follow", "--key=a"]) == 0
    assert capsys.readouterr().out == "key a\n"


def served(values: Values) -> int:
    """A command's own body."""
    print(f"key {values.key}")
    return 0


def test_a_list_may_be_given_as_one_text_in_json() -> None:
    action = bound(SPEC, Location("/a"), lambda _: _nothing(), _done)
    assert action.inputs.model_validate({"what": "w", "brushes": "a"}).brushes == ["a"]  # type: ignore[attr-defined]
    assert action.inputs.model_validate({"what": "w", "brushes": ""}).brushes == []  # type: ignore[attr-defined]


def test_a_difference_is_bounded_and_safe() -> None:
    assert difference(b"", b"a\n\x1b[2J\n") == "+a\n+␛[2J"
    assert difference(b"a\nb\n", b"a\nc\n").splitlines()[-2:] == ["-b", "+c"]
    long = difference(b"", b"x" * (2 * DIFFERENCE))
    assert len(long) <= DIFFERENCE + 2 and long.endswith("…")


@pytest.mark.parametrize("name", protocol_names())
def test_no_option_of_an_act_is_declared_by_hand(name: str) -> None:
    wrong = [
        str(path.relative_to(PROTOCOLS))
        for path in (Path(PROTOCOLS) / name).rglob("*.py")
        if "rehearsal" not in path.parts  # processes of a demo: nobody types their options
        if any(word in path.read_text() for word in ("add_argument", "click.option", "argparse"))
    ]
    assert wrong == []
