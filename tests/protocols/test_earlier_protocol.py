"""A protocol that was written for acp 0.1.0 or 0.2: it works, or `acp doctor` says what keeps it from that."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from acp_core import model
from acp_core.cli import act
from acp_core.cli import doctor as cli_doctor
from acp_core.protocols.kit.schema import fields
from acp_tui.actions import forms
from tests.support import toy

REPOSITORY = Path(__file__).resolve().parents[2]


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
    assert [each.option for each in act.spec_of(action).fields] == [
        "--who",
        "--text",
        "--matter",
        "--yes",
    ]


def test_it_has_no_cards(tmp_path: Path) -> None:
    assert Earlier(str(toy.make(tmp_path))).cards(datetime.now(UTC)) == ()


BEGINNING = """
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.registry import Protocol

PROTOCOL = Protocol("earlier", "Earlier", ("earlier.json",), "acp_earlier:detect", "acp_earlier:Talk")
"""
METHODS = """
def detect(folder):
    return False

class Talk(Collaboration):
    def refresh(self, now): ...
    def watched(self): ...
    def load(self, document): ...
"""
KEPT = "    def kept(self):\n        return ()\n"
TOLD = "    def told(self):\n        return None\n"


def doctor(folder: Path, code: str) -> list[str]:
    """What `acp doctor` says of an installed distribution whose module reads so."""
    information = folder / "acp_earlier-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acp-earlier\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(
        "[acp.protocols]\nearlier = acp_earlier:PROTOCOL\n"
    )
    (folder / "acp_earlier.py").write_text(code)
    ran = subprocess.run(
        [sys.executable, "-m", "acp_core", "doctor", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(REPOSITORY)])},
        check=False,
    )
    checks = json.loads(ran.stdout)["checks"]
    return [each["advice"] for each in checks if each["group"] == "Protocols"]


@pytest.mark.parametrize(
    ("line", "old", "now"),
    [
        (f"import {old}", old, cli_doctor.MOVED[old])
        for old in ("acp_core.collaboration", "acp_core.story", "acp_core.turn", "acp_core.case")
    ]
    + [
        (
            "from acp_core.protocols import Protocol",
            "acp_core.protocols.Protocol",
            "acp_core.protocols.registry.Protocol",
        ),
        (
            "from acp_core.programs.spawn import resolve",
            "acp_core.programs",
            "acp_core.agents",
        ),
        (
            "from acp_core.model.tracked import Kept",
            "acp_core.model.tracked",
            "acp_core.model.past",
        ),
        (
            "from acp_core.model.past import Kept",
            "acp_core.model.past.Kept",
            "acp_core.model.past.TrackedFile",
        ),
        (
            "from acp_core.protocols.kit.validation import message",
            "acp_core.protocols.kit.validation",
            "acp_core.protocols.kit.schema",
        ),
    ],
)
def test_doctor_says_where_what_it_imports_is_now(
    tmp_path: Path, line: str, old: str, now: str
) -> None:
    assert doctor(tmp_path, f"{line}\n{BEGINNING}{METHODS}") == [
        f"acp-earlier: cannot be loaded: {old} was renamed to {now}"
    ]


def test_doctor_says_which_methods_are_called_otherwise_now(tmp_path: Path) -> None:
    assert doctor(tmp_path, BEGINNING + METHODS + KEPT + TOLD) == [
        "acp-earlier: Talk.kept is never called: it was renamed to tracked_files",
        "acp-earlier: Talk.told is never called: it was renamed to past_log",
    ]


def test_doctor_is_content_with_one_that_uses_the_names_of_now(tmp_path: Path) -> None:
    assert doctor(tmp_path, BEGINNING + METHODS) == [""]


KIT_0_2 = (
    "binding cards command command_line confirmation described diagnosis documents findings guard manual mirroring "
    "offers options owner_inputs parser printing quick schema snapshots starting steady taking_part tool_names tools "
    "unseen_text validation values wording"
)
"""What stood in the room that protocols share, when others wrote theirs against it."""


@pytest.mark.parametrize("name", KIT_0_2.split())
def test_each_module_that_0_2_shared_is_there_or_told_where_it_is(name: str) -> None:
    module = f"acp_core.protocols.kit.{name}"
    assert importlib.util.find_spec(cli_doctor.MOVED.get(module, module)) is not None


def test_what_has_moved_is_there() -> None:
    for old, now in cli_doctor.MOVED.items():
        home, _, name = now.rpartition(".")
        there = importlib.util.find_spec(now) if name.islower() and _is_package(home) else None
        assert there or hasattr(importlib.import_module(home), name), (old, now)


def _is_package(name: str) -> bool:
    return hasattr(importlib.import_module(name), "__path__")
