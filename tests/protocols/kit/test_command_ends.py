"""How commands made from descriptions end: their exit codes, and the JSON that they print."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Answer, Field, Kind, QuerySpec
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.values import Values

HERE = "tests.protocols.kit.test_command_ends"
PAINT = ActionSpec(
    "paint",
    "Paint",
    "Paint it.",
    f"{HERE}:bind_paint",
    (Field("watch", help="Watch it dry.", kind=Kind.FLAG, form=False),),
    command="toy paint",
    run=f"{HERE}:watch",
    unknown=3,
)
LIST = QuerySpec("list", "List the colours.", f"{HERE}:colours", command="toy list")
TOY = Commands("toy", "Paint things.", (PAINT, LIST), "acp.toy/1")


def bind_paint(context: Context, now: datetime) -> Action:
    """Paint, and do not know whether it dried."""
    return bound(
        PAINT,
        context,
        lambda values: Preview("Paint it."),
        lambda values: Outcome(OutcomeState.UNKNOWN, "Painted; it may have rained."),
    )


def watch(values: Values) -> int | None:
    """Follow it here, where that is wanted."""
    return 4 if values.watch else None


def colours(values: Values) -> Answer:
    """What there is, as programs have always read it."""
    return Answer({"schema": "acp.toy-colours/1", "colours": ["red"]}, ("red",))


def test_an_unknown_end_has_the_exit_code_that_the_act_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert TOY.main(["paint"]) == 3
    assert capsys.readouterr().out == "Painted; it may have rained.\n"
    assert TOY.main(["paint", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["done"] is False
    assert Commands("toy", "", (PAINT._replace(unknown=1),), "acp.toy/1").main(["paint"]) == 1


def test_a_command_follows_what_it_started_only_where_it_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert TOY.main(["paint", "--watch"]) == 4
    assert capsys.readouterr().out == ""
    assert TOY.main(["paint", "--dry-run"]) == 0
    assert capsys.readouterr().out == "would do: Paint it.\n"


def test_a_query_may_keep_the_schema_that_programs_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert TOY.main(["list", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out).items()) == [
        ("schema", "acp.toy-colours/1"),
        ("command", "list"),
        ("colours", ["red"]),
    ]
