"""A further protocol needs nothing but itself: everything that comes with it is there at once.

The toy protocol of the tests is installed by an entry point, as another distribution would
install its own; the product does not know it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.diagnosis import actions as acts
from acp_core.fleet import Fleet
from acp_core.model import Action, Intent, OutcomeState
from acp_core.protocols import registry
from acp_tui.actions import forms
from acp_tui.app import AcpApp
from tests.support import toy
from tests.tui.stage import screen_text, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    own = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("ACP_STATE", str(own / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(own / "config"))
    for name, value in toy.register(monkeypatch, tmp_path_factory.mktemp("site")).items():
        monkeypatch.setenv(name, value)


def acp(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "acp_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_product_does_not_know_it() -> None:
    for package in ("acp_core", "acp_tui"):
        for file in (ROOT / package).rglob("*.py"):
            assert not re.search(r"\btoy(?!box)", file.read_text(encoding="utf-8"), re.I), file
    assert "toy" in {protocol.name for protocol in registry.installed()}
    assert "toy" not in registry.NAMES


def test_it_is_found_read_and_acted_in(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    toy.say(one, "ann", "asked", "red?")
    fleet = Fleet([tmp_path])
    (snapshot,) = fleet.read()
    assert (snapshot.protocol, snapshot.panels[0].title) == ("toy", "Questions")
    now = datetime.now(UTC)
    (action,) = fleet.call_sync(snapshot.key, lambda opened: opened.actions(now))
    inputs = action.inputs.model_validate({"text": "blue"})
    assert action.preview(inputs).changes[0].verb == "append"
    assert action.perform(inputs).state is OutcomeState.DONE
    (after,) = fleet.read()
    assert after.needs == ()
    asyncio.run(fleet.close())


def test_one_is_started_by_its_own_action(tmp_path: Path) -> None:
    (protocol,) = (known for known in registry.installed() if known.name == "toy")
    assert protocol.create is not None
    action = registry.load(protocol.create)(tmp_path / "new")
    inputs = action.inputs.model_validate({"objective": "Choose"})
    assert action.perform(inputs).location == str(tmp_path / "new")
    assert [snapshot.objective for snapshot in Fleet([tmp_path]).read()] == ["Choose"]
    assert action.preview(inputs).refused


def test_the_command_line_shows_it_and_takes_its_commands(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    assert "toy-say" in acp("--help").stdout
    said = acp("toy-say", one, "hello there")
    assert (said.returncode, said.stdout, said.stderr) == (0, "said\n", "")
    status = acp("status", "--json", tmp_path)
    assert status.returncode == 0, status.stderr
    assert '"toy"' in json.dumps(json.loads(status.stdout))
    assert "hello there" in acp("show", one).stdout


# --- one act, described once -----------------------------------------------------------------


def ending(tmp_path: Path) -> Path:
    """A conversation that ann and ben may end."""
    return toy.make(tmp_path / "one", may_end=["ann", "ben"])


def test_a_described_act_takes_at_most_forty_lines() -> None:
    source = Path(toy.__file__).read_text().split("# An act as contributors add one")[1]
    lines = source.split("\n\nACTS = ")[0].splitlines()[1:]
    code = [line for line in lines if line.strip() and not line.strip().startswith('"""')]
    assert len(code) <= 40


def test_its_command_shows_and_does_it(tmp_path: Path) -> None:
    one = ending(tmp_path)
    shown = acp("toy", "end", one, "ann", "--reason", "All is said", "--dry-run")
    assert shown.returncode == 0 and "would do: Ends it." in shown.stdout
    assert " ann done All is said" in shown.stdout and (one / toy.LOG).read_text() == ""
    done = acp("toy", "end", "--reason", "All is said", "--who", "ann", one, "--json")
    told = json.loads(done.stdout)
    assert (told["schema"], told["command"], told["done"]) == ("acp.toy/1", "end", True)
    assert told["changes"][0]["verb"] == "append"
    assert "ann done All is said" in (one / toy.LOG).read_text()


def test_its_command_refuses_in_one_line_and_as_json(tmp_path: Path) -> None:
    one = ending(tmp_path)
    for words, why in (
        (("zoe", "--reason", "x"), "zoe may not end it"),
        (("ann",), "--reason: is missing"),
        (("ann", "--raison", "x"), "unrecognized arguments: --raison x"),
    ):
        ran = acp("toy", "end", one, *words, "--json")
        assert ran.returncode == 2
        assert ran.stderr.startswith(f"error: {why}") and ran.stderr.count("\n") == 1
        told = json.loads(ran.stdout)
        assert (told["schema"], told["exit_code"]) == ("acp.error/1", 2)
        assert told["error"].startswith(why)
    assert (one / toy.LOG).read_text() == ""


def test_its_command_has_help_with_examples_and_exit_codes() -> None:
    said = acp("toy", "end", "--help").stdout
    assert said.startswith("Usage: acp toy end [OPTIONS] [FOLDER] WHO\n")
    for words in ("End the conversation for all.", "--reason TEXT", "[required]", "Examples:",
                  "Exit codes:", "Show this message and exit."):  # fmt: skip
        assert words in said
    assert "End the conversation for all." in acp("toy", "--help").stdout


def test_it_is_found_by_name_by_its_old_name_and_by_its_intent(tmp_path: Path) -> None:
    opened = toy.open_toy(str(ending(tmp_path)))
    now = datetime.now(UTC)
    (offered,) = opened.actions(now)
    assert offered.intent is Intent.STOP_EVERYTHING and offered.risky
    for name in ("end", "close_down", "close-down"):
        action = opened.action(name, now)
        assert action is not None and action.name == "end"
    assert opened.action("sing", now) is None
    given = offered.inputs.model_validate({"who": "ben", "reason": "enough"})
    command = offered.preview(given).command
    assert command == ("acp", "toy", "end", opened.key, "ben", "--reason", "enough")
    assert acp(*command[1:]).returncode == 0
    assert "ben done enough" in (Path(opened.key) / toy.LOG).read_text()


class OneByOne(toy.Toy):
    """A conversation that nobody may ask for all of its acts."""

    def actions(self, now: datetime) -> Sequence[Action]:
        raise AssertionError("the others were built")


def test_one_act_is_got_without_the_others(tmp_path: Path) -> None:
    opened = OneByOne(str(ending(tmp_path)))
    snapshot = opened.refresh(datetime.now(UTC))
    action = acts.action(opened, snapshot, "close_down")
    assert action is not None
    inputs = action.inputs.model_validate({"who": "ann", "reason": "enough"})
    assert action.perform(inputs).state is OutcomeState.DONE
    assert acts.action(opened, snapshot, "sing") is None


def test_acp_act_does_it_and_its_form_asks_for_it(tmp_path: Path) -> None:
    one = ending(tmp_path)
    (offered,) = toy.open_toy(str(one)).actions(datetime.now(UTC))
    who, reason = forms.fields(offered)
    assert (who.kind, who.choices, reason.kind) == ("choice", ("ann", "ben"), "lines")
    wrong = acp("act", one, "end", "--who", "zoe", "--reason", "x", "--yes")
    assert wrong.returncode == 2 and "is not one of" in wrong.stderr
    assert acp("act", one, "close_down", "--who", "ann", "--reason", "x", "--yes").returncode == 0
    assert "ann done x" in (one / toy.LOG).read_text()


async def test_the_key_that_stops_work_does_it(tmp_path: Path) -> None:
    one = ending(tmp_path)
    app: Any = AcpApp([str(one)])
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "b End" in screen_text(app))
        await pilot.press("b")
        await until(pilot, lambda: "End the conversation for all." in screen_text(app))
        await until(pilot, lambda: app.screen.query("FieldView"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acp toy ", ["create", "answer", "end"]),
        ("acp toy e", ["end"]),
        ("acp toy end ONE a", ["ann"]),
        ("acp toy end ONE --who ", ["ann", "ben"]),
        ("acp toy end ONE --re", ["--reason"]),
    ],
)
def test_its_command_completes_what_can_be_chosen_now(
    tmp_path: Path, line: str, expected: list[str]
) -> None:
    line = line.replace("ONE", str(ending(tmp_path)))
    asked = {"_ACP_COMPLETE": "bash_complete", "COMP_WORDS": line,
             "COMP_CWORD": str(len(line.split(" ")) - 1)}  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "acp_core"], capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, **asked},
    )  # fmt: skip
    assert [each.partition(",")[2] for each in ran.stdout.split()] == expected, ran.stderr
