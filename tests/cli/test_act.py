"""`acp act`: what a human can do, from the action's own description."""

from __future__ import annotations

import json
import shlex
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from acp_core import model
from acp_core.cli import act
from acp_core.model.errors import Refused
from acp_core.protocols.kit.parser import Parser
from tests.cli.support import Acp
from tests.protocols.folder.support import make_v1
from tests.support import toy
from tests.support.terminal import Terminal


@pytest.fixture
def talk(acp: Acp) -> Path:
    folder = toy.make(acp.home / "talk")
    toy.say(folder, "ben", "asked", "Blue or green?")
    return folder


def log(folder: Path) -> str:
    return (folder / toy.LOG).read_text()


@pytest.mark.slow
def test_it_lists_what_can_be_done(acp: Acp, talk: Path) -> None:
    ran = acp("act", "talk")
    assert ran.returncode == 0
    assert ran.stdout.splitlines() == [
        "action                  what it does",
        "answer  Answer          Answer “Blue or green?”.",
        (
            "ack     Acknowledge     Hide an attention item from your view until something new needs "
            "attention."
        ),
        "report  Save a report…  Save a report: the outcome, what happened, and the figures.",
        "",
        "Run `acp act talk ACTION --help` to see the options of an action.",
    ]
    told = json.loads(acp("act", "talk", "--json").stdout)
    assert told["schema"] == "acp.act/1"
    action, own, report = told["actions"]
    assert (action["name"], action["intent"], action["by"]) == ("answer", "answer", "human")
    assert (action["personal"], own["name"], own["personal"]) == (False, "ack", True)
    assert (report["name"], report["personal"]) == ("report", True)
    assert action["inputs"]["properties"]["who"]["default"] == "you"
    assert action["inputs"]["required"] == ["text"]


@pytest.mark.slow
def test_where_nothing_can_be_done_it_says_how_it_stands(acp: Acp) -> None:
    toy.make(acp.home / "talk")
    ran = acp("act", "talk")
    assert (ran.returncode, ran.stdout) == (
        0,
        "No action is possible in talk now: Talking.\n",
    )


def test_help_is_made_from_the_inputs(acp: Acp, talk: Path) -> None:
    ran = acp("act", "talk", "answer", "--help")
    assert ran.returncode == 0
    assert "Usage: acp act talk answer [OPTIONS]" in ran.stdout
    assert "--who TEXT" in ran.stdout and "[default: you]" in ran.stdout
    assert "--text TEXT" in ran.stdout and "[required]" in ran.stdout


def test_a_dry_run_shows_the_change_and_does_nothing(acp: Acp, talk: Path) -> None:
    before = log(talk)
    ran = acp("act", "talk", "answer", "--text", "Blue", "--dry-run")
    assert ran.returncode == 0
    lines = ran.stdout.splitlines()
    assert lines[:2] == ["Answers as you.", f"append {talk / toy.LOG}"]
    assert lines[2].startswith("  +20") and lines[2].endswith(" you answered Blue")
    assert log(talk) == before


def test_the_command_that_does_the_same_can_be_copied(acp: Acp) -> None:
    words = ["--participant", "writer", "--participant", "reader", "--objective", "Choose"]
    assert acp("init", "--folder", "c", *words, "--completion", "Chosen").returncode == 0
    given = ["--participant", "reader", "--reason", "No access (yet)"]
    ran = acp("act", "c", "block", *given, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    line = next(line for line in ran.stdout.splitlines() if line.startswith("runs: "))
    command = shlex.split(line.removeprefix("runs: "))
    assert acp(*command[1:]).returncode == 0
    assert "No access (yet)" in (acp.home / "c" / "events.jsonl").read_text()


def test_yes_does_it(acp: Acp, talk: Path) -> None:
    ran = acp("act", "talk", "answer", "--text", "Blue", "--who", "ann", "--yes")
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "done: Answered.")
    assert log(talk).endswith(" ann answered Blue\n")


def test_json_says_what_was_done(acp: Acp, talk: Path) -> None:
    ran = acp("act", "talk", "answer", "--text", "Blue", "--yes", "--json")
    told = json.loads(ran.stdout)
    assert told["preview"]["changes"][0]["verb"] == "append"
    assert told["outcome"] == {"state": "done", "sentence": "Answered.", "location": None}
    dry = json.loads(acp("act", "talk", "--json").stdout)
    assert [each["name"] for each in dry["actions"]] == ["report"]


def test_without_a_person_to_ask_nothing_is_done(acp: Acp, talk: Path) -> None:
    before = log(talk)
    for more in ([], ["--json"]):
        ran = acp("act", "talk", "answer", "--text", "Blue", *more, typed="y\n")
        assert ran.returncode == 2
        assert ran.stderr.startswith("error: use --yes")
    assert log(talk) == before


@pytest.mark.parametrize(("key", "code"), [("y", 0), ("n", 2)])
def test_a_person_is_asked_after_the_preview(acp: Acp, talk: Path, key: str, code: int) -> None:
    command = acp.command("act", "talk", "answer", "--text", "Blue")
    with Terminal(command, env=acp.env, cwd=acp.home) as terminal:
        terminal.wait_for("Proceed? [y/N]")
        assert "you answered Blue" in terminal.text
        assert "answered" not in log(talk)
        terminal.send(f"{key}\r")
        assert terminal.wait_for_end() == code
    assert ("answered" in log(talk)) is (key == "y")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["answer"], "--text: is missing"),
        (["answer", "--text", ""], "--text: is missing"),
        (["answer", "--txt", "x"], "unrecognized arguments: --txt; did you mean --text?"),
        (["answr"], "'answr' is not possible in talk now; possible: answer"),
        (["answer", "--text", "x", "more"], "unrecognized arguments: more"),
    ],
)
def test_what_is_wrong_is_one_clear_line(acp: Acp, talk: Path, typed: list[str], said: str) -> None:
    ran = acp("act", "talk", *typed)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"error: {said}") and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [(), ("--yes",)])
def test_a_refusal_is_one_line_and_nothing_else(acp: Acp, words: tuple[str, ...]) -> None:
    make_v1(acp.home / "run", "readiness_check")
    ran = acp("act", "run", "check_gates", *words)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert ran.stdout == "refused: choose the gates that are met\n"


def test_what_became_impossible_meanwhile_is_refused(acp: Acp, talk: Path) -> None:
    """The preview of the toy looks at the log again: here the question vanished before it."""
    before = log(talk)
    (talk / toy.LOG).write_text(before + "2026-01-02T03:04:05Z ann answered Blue\n")
    ran = acp("act", "talk", "answer", "--text", "Green", "--yes")
    assert ran.returncode == 2
    assert "is not possible" in ran.stderr


# --- options from any model ----------------------------------------------------------------


class Shape(Enum):
    ROUND = "round"
    SQUARE = "square"


class Order(BaseModel):
    """Inputs of every kind."""

    name: str = Field(title="Name", description="What it is called.")
    number: int = Field(3, ge=1)
    shape: Shape = Shape.ROUND
    size: Literal["small", "large"] = "small"
    maybe: Literal["a", "b"] | None = None
    tags: list[str] = Field(default_factory=list)
    urgent: bool = False
    yes: str = Field("", description="A name that the command uses itself.")


def order(**defaults: object) -> model.Action:
    def preview(given: Any) -> model.Preview:
        return model.Preview("")

    def perform(given: Any) -> model.Outcome:
        return model.Outcome(model.OutcomeState.DONE, "")

    return model.Action("order", "Order", "Order it.", Order, preview, perform, defaults)


def typed(*arguments: str, action: model.Action | None = None) -> Order:
    """The inputs that these arguments make."""
    action = action or order()
    values = Parser(act.spec_of(action), "acp act here order").parse_args(list(arguments))
    return Order.model_validate(act.given(action, values))


def test_every_kind_of_input_can_be_typed() -> None:
    made = typed(
        "--name", "box", "--number", "7", "--shape", "square", "--size", "large", "--maybe", "b",
        "--tags", "x", "--tags", "y", "--urgent", "--input-yes", "no",
    )  # fmt: skip
    assert made == Order(
        name="box", number=7, shape=Shape.SQUARE, size="large", maybe="b", tags=["x", "y"],
        urgent=True, yes="no",
    )  # fmt: skip


def test_what_is_not_typed_is_the_default_of_the_action_or_the_model() -> None:
    assert typed("--name", "box") == Order(name="box")
    action = order(name="crate", number=9, urgent=True)
    assert typed(action=action) == Order(name="crate", number=9, urgent=True)
    assert typed("--no-urgent", action=action).urgent is False


@pytest.mark.parametrize(("option", "value"), [("--shape", "oval"), ("--maybe", "c")])
def test_a_choice_that_is_none_lists_the_choices(option: str, value: str) -> None:
    with pytest.raises(Refused, match="is not one of"):
        typed("--name", "box", option, value)
