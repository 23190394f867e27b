"""Commands below commands, a human who is asked first, and acts of which a part fails."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Moved
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.parser import Parser
from acp_core.protocols.kit.values import Values

BY = command_line.BY._replace(form=True)
ROOM = "tests.protocols.kit.test_groups"
SCHEMA = "acp.lamp/1"


def lighting(context: Context, now: datetime) -> Action:
    """Light the lamp: a file says that it burns."""
    lamp = Path(context.key, "lamp")

    def perform(values: Values) -> Outcome:
        lamp.write_text(values.by or "on")
        failed = ("the second bulb is broken",) if values.by == "Bea" else ()
        return Outcome(OutcomeState.DONE, "It burns.", failed=failed)

    return bound(LIGHTING, context, lambda values: Preview("Light the lamp."), perform)


LIGHTING = ActionSpec(
    "light", "Light it", "Light the lamp.", f"{ROOM}:lighting", (BY, command_line.YES),
    command="lamp hall light", aliases=("switch_on",), examples=("acp lamp hall light",),
    moved=(Moved("--all", "blaze"),),
)  # fmt: skip
BLAZE = LIGHTING._replace(name="blaze", command="lamp hall blaze", aliases=())
COMMANDS = Commands("lamp", "All lamps.", (), SCHEMA, (
    Commands("lamp hall", "The lamp of the hall.", (LIGHTING, BLAZE), SCHEMA),
))  # fmt: skip


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The standard input is a terminal; what is written here is typed."""
    typed, read = os.openpty()
    with os.fdopen(read, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield typed
    os.close(typed)


def light(root: Path, *words: str) -> int:
    return COMMANDS.main(["hall", "light", str(root), *words])


def test_a_group_has_its_verbs_and_its_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS.main(["--help"]) == 0
    assert "hall  The lamp of the hall." in capsys.readouterr().out
    assert COMMANDS.main(["hall", "--help"]) == 0
    assert "Usage: acp lamp hall COMMAND" in capsys.readouterr().out
    assert set(COMMANDS.manual) == {"lamp", "lamp hall", "lamp hall light", "lamp hall blaze"}
    assert COMMANDS.main(["hall", "switch-on", str(tmp_path), "--by", "Ann", "--yes"]) == 0
    assert (tmp_path / "lamp").exists()


def test_where_nobody_can_be_asked_it_must_be_said_who_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert light(tmp_path) == 2
        assert "no terminal to ask" in capsys.readouterr().err
        assert light(tmp_path, "--yes") == 2
        assert "use --by NAME" in capsys.readouterr().err
        assert not (tmp_path / "lamp").exists()
        assert light(tmp_path, "--yes", "--by", "Ann") == 0
        assert (tmp_path / "lamp").read_text() == "Ann"


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"\n", 1)])
def test_at_a_terminal_the_human_is_asked(
    tmp_path: Path, terminal: int, capsys: pytest.CaptureFixture[str], answer: bytes, code: int
) -> None:
    os.write(terminal, answer)
    assert light(tmp_path) == code
    assert "Proceed? [y/N]" in capsys.readouterr().out
    assert (tmp_path / "lamp").exists() is (code == 0)


def test_what_failed_of_an_act_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert light(tmp_path, "--yes", "--by", "Bea") == 1
    assert capsys.readouterr().err == "warning: failed: the second bulb is broken\n"
    assert light(tmp_path, "--yes", "--by", "Bea", "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["command"], said["failed"]) == ("light", ["the second bulb is broken"])


def test_a_switch_of_an_act_that_has_become_a_verb_still_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert light(tmp_path, "--all", "--yes", "--by", "Ann", "--dry-run") == 0
    parser = COMMANDS.groups["hall"].find("light")
    assert isinstance(parser, Parser)
    assert parser.parse_args(["--all"]).spec.name == "blaze"
    assert "--all" not in parser.format_help()
