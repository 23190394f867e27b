"""Acts and queries that are described: what depends on the state, and what prints by itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, bind, bound
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.command_line import NAMED_FOLDER, quick, say
from acp_core.protocols.kit.parser import parse
from acp_core.protocols.kit.values import Values, seconds

_HERE = "tests.protocols.kit.test_described"
CHECKING = ActionSpec(
    "check",
    "Check",
    "Say which boxes are met.",
    f"{_HERE}:checking",
    (Field("note"),),
    command="boxes check",
    place=NAMED_FOLDER,
)
COUNT = QuerySpec("count", "Count the boxes.", run=f"{_HERE}:count", command="boxes count")
BOXES = Commands("boxes", "Boxes.", (CHECKING, COUNT), "acp.boxes/1")


def checking(context: Context, now: datetime) -> Action:
    """A box for each line of a file."""
    lines = Path(context.key, "boxes").read_text().splitlines()
    switches = [Field(f"box_{n}", line, kind=Kind.FLAG) for n, line in enumerate(lines, 1)]

    def met(values: Values) -> str:
        return ", ".join(each.title for each in switches if getattr(values, each.name))

    return bound(
        CHECKING,
        context,
        lambda values: Preview(met(values)),
        lambda values: Outcome(OutcomeState.DONE, met(values)),
        fields=(*CHECKING.fields, *switches),
    )


def count(values: Values) -> int:
    """A command that prints by itself."""
    say(f"{len(Path(values.folder, 'boxes').read_text().splitlines())} boxes")
    return 1


def test_a_form_asks_for_as_many_things_as_there_are(tmp_path: Path) -> None:
    (tmp_path / "boxes").write_text("oats\nrye\n")
    action = bind(CHECKING, _Place(str(tmp_path)), datetime.now(UTC))
    assert action is not None and action.fields is not None
    assert [each.name for each in action.fields] == ["note", "box_1", "box_2"]
    assert set(action.inputs.model_fields) == {"note", "box_1", "box_2"}
    assert action.perform(action.inputs(box_2=True)).sentence == "rye"


class _Place:
    def __init__(self, key: str) -> None:
        self.key = key


def test_a_command_asks_for_the_folder_that_must_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boxes").write_text("oats\n")
    assert BOXES.main(["check"]) == 2
    assert "FOLDER (or --folder): is missing" in capsys.readouterr().err
    assert BOXES.main(["check", "--folder", str(tmp_path), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] is False


def test_a_query_prints_in_a_form_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boxes").write_text("oats\nrye\n")
    assert BOXES.main(["count", str(tmp_path)]) == 1
    assert capsys.readouterr().out == "2 boxes\n"


@pytest.mark.parametrize(("word", "wanted"), [(".5", 0.5), ("2.", 2), ("0.01", 0.01), ("2m", 120)])
def test_a_duration_is_read_as_people_write_it(word: str, wanted: float) -> None:
    assert seconds(word) == wanted


@pytest.mark.parametrize("word", ["", ".", "-1", "inf", "soon"])
def test_what_is_no_duration_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(word)


def test_a_duration_that_is_written_plainly_needs_no_parser() -> None:
    fields = (Field("limit", kind=Kind.DURATION),)
    for word in ("5", "0.5", ".5", "5."):
        found = quick(["--limit", word], fields)
        assert found is not None and found.limit == seconds(word)
    assert [quick(["--limit", word], fields) for word in ("5m", ".", "1.2.3", "0.1234567")] == [
        None
    ] * 4


def test_arguments_are_read_and_asked_for_in_one_step(tmp_path: Path) -> None:
    words = ["--folder", str(tmp_path), "--note", "oats"]
    assert parse(CHECKING, "acp boxes check", words).note == "oats"
    with pytest.raises(Refused, match=r"FOLDER \(or --folder\): is missing"):
        parse(CHECKING, "acp boxes check", words[2:])
