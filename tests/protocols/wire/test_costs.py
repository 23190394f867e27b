"""What people did with an agent is its own, whatever agent had its name before."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from acp_core.person import journal
from acp_core.protocols.wire.acts.table import COMMANDS
from acp_core.protocols.wire.network import agent_directory
from tests.cli.support import Acp
from tests.protocols.wire.support import Process

ON = ("--port", "0", "--http-port", "0", "--sync", "normal")


def acp(beside: Path, *words: str) -> str:
    """What a command of acp prints."""
    acp = Acp(beside, {name: os.environ[name] for name in ("ACP_CONFIG", "ACP_STATE")})
    ended = acp(*words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def stats(folder: Path, beside: Path) -> dict[str, Any]:
    (told,) = json.loads(acp(beside, "stats", str(folder), "--json"))["collaborations"]
    return dict(told)


def test_what_commands_do_counts_as_what_is_done_on_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the agent's name or address it is the agent's, as it is by its folder."""
    with Process("Here", *ON) as here, Process("There", *ON) as there:
        assert COMMANDS.main(("connect", "Here", there.link)) == 0
        said = ("send", "Here", "hello", "--from", "me")
        assert COMMANDS.main((*said, "--dry-run")) == 0
        assert COMMANDS.main(said) == 0
        assert COMMANDS.main(("send", here.url, "hello", "--from", "me")) == 0
        assert COMMANDS.main(("forget", "Here", "nobody")) == 1
    folder = agent_directory.folder_of("Here")
    noted = journal.read(str(folder))
    assert [each.action for each in noted] == ["connect", "send", "send"]
    secret = there.link.rpartition("/")[2]
    assert secret not in journal.path(str(folder)).read_text()
    assert stats(folder, tmp_path)["human_acts"] == 3


def test_a_deleted_agent_is_not_charged_to_the_next_one_of_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = agent_directory.folder_of("Here")
    for acts in (1, 2):
        with Process("Here", *ON):
            for _ in range(acts):
                assert COMMANDS.main(("send", "Here", "hello", "--from", "me")) == 0
            acp(tmp_path, "record", "--once", str(folder))
        told = stats(folder, tmp_path)
        assert (told["human_acts"], len(told["findings_over_time"])) == (acts, 1)
        if acts == 1:
            shutil.rmtree(folder)


@pytest.mark.slow
def test_an_agent_that_is_started_again_keeps_its_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for _ in range(2):
        with Process("Here", *ON):
            assert COMMANDS.main(("send", "Here", "hello", "--from", "me")) == 0
    assert stats(agent_directory.folder_of("Here"), tmp_path)["human_acts"] == 2
