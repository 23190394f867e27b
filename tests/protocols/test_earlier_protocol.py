"""A protocol that was written for acp 0.1.0: an action of its own making, with a pydantic model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, Field

from acp_core import model
from acp_core.cli import inputs
from acp_core.protocols.kit.schema import fields
from acp_tui.actions import forms
from tests.support import toy


class Answer(BaseModel):
    """What answering takes."""

    who: str = Field("you", title="Who", description="In whose name.", min_length=1)
    text: str = Field(title="Answer", description="What you say to it.", min_length=1)


class Earlier(toy.Toy):
    """A conversation whose action is built as acp 0.1.0 wanted it."""

    def actions(self, now: datetime) -> Sequence[model.Action]:
        return (
            model.Action(
                name="answer",
                label="Answer",
                sentence="Answer it.",
                inputs=Answer,
                preview=lambda given: model.Preview(f"Answers as {given.who}."),
                perform=self._answer,
                defaults={"who": "ann"},
            ),
        )

    action = toy.Collaboration.action

    def _answer(self, given: Answer) -> model.Outcome:
        toy.say(Path(self.key), given.who, "answered", given.text)
        return model.Outcome(model.OutcomeState.DONE, "Answered.")


def answer(folder: Path) -> model.Action:
    found = Earlier(str(toy.make(folder))).action("answer", datetime.now(UTC))
    assert found is not None
    return found


def test_its_action_is_found_by_name_and_done(tmp_path: Path) -> None:
    action = answer(tmp_path)
    given = action.inputs.model_validate({**action.defaults, "text": "Blue"})
    assert action.preview(given).sentence == "Answers as ann."
    assert action.perform(given).state is model.OutcomeState.DONE
    assert "ann answered Blue" in (tmp_path / toy.LOG).read_text()
    assert Earlier(str(tmp_path)).action("sing", datetime.now(UTC)) is None


def test_forms_and_commands_are_made_from_its_model(tmp_path: Path) -> None:
    action = answer(tmp_path)
    assert [(each.title, each.default) for each in fields(action)] == [
        ("Who", "ann"),
        ("Answer", None),
    ]
    assert [field.required for field in forms.fields(action)] == [False, True]
    assert [option.opts[0] for option in inputs.options(action)] == ["--who", "--text"]


def test_it_has_no_cards(tmp_path: Path) -> None:
    assert Earlier(str(toy.make(tmp_path))).cards(datetime.now(UTC)) == ()
