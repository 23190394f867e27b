"""`acp validate` answers for every protocol in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.cycle import making
from tests.protocols.workspaces import making as workspaces


@pytest.mark.parametrize(
    ("word", "changed", "code", "sentence"),
    [
        ("running", {}, 0, "passed"),
        ("completed", {"current_phase": "vas"}, 1, "passed with warnings"),
        ("asleep", {}, 2, "failed"),
    ],
)
def test_a_cycle_is_checked_with_the_exit_codes_of_a_folder(
    tmp_path: Path, word: str, changed: dict[str, str], code: int, sentence: str
) -> None:
    making.cycle(tmp_path / "run", word, **changed)
    checked = Acp(tmp_path)("validate", "run")
    assert (checked.returncode, checked.stderr) == (code, "")
    assert checked.stdout.splitlines()[0] == f"ACP validation {sentence}"


def test_a_run_of_sub_agents_is_checked_too(tmp_path: Path) -> None:
    root = workspaces.run(tmp_path / "run")
    passed, *advice = Acp(tmp_path)("validate", "run").stdout.splitlines()
    assert passed == "ACP validation passed"
    assert [line.split()[:2] for line in advice] == [["ADVICE:", "B17"]]  # it was made elsewhere
    (root / "agent-workspaces/ann/output.md").unlink()
    checked = Acp(tmp_path)("validate", "run")
    assert checked.returncode == 2
    assert "ERROR: B06 " in checked.stdout


def test_advice_counts_only_when_asked_for(tmp_path: Path) -> None:
    waiting = making.coordination(pending_decisions=[making.decision()])
    making.cycle(tmp_path / "run", "paused", agents=making.agents(cd=making.agent("waiting")),
                 coordination=waiting)  # fmt: skip
    run = Acp(tmp_path)
    assert run("validate", "--folder", "run").returncode == 0
    strict = run("validate", "--strict", "--json", "--folder=run")
    assert strict.returncode == 1
    told = json.loads(strict.stdout)
    assert (told["schema"], told["verdict"]) == ("acp.validate/1", "warnings")
    assert "A30" in {each["code"] for each in told["findings"]}


def test_what_agents_wrote_is_harmless_when_printed(tmp_path: Path) -> None:
    making.cycle(tmp_path / "run", "\x1b]0;gone\x07\u202e")
    for arguments in (("run",), ("run", "--json")):
        printed = Acp(tmp_path)("validate", *arguments)
        assert printed.returncode == 2
        assert not {"\x1b", "\x07", "\u202e"} & set(printed.stdout)


def test_what_is_no_collaboration_is_left_to_the_folder_protocol(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert Acp(tmp_path)("validate", "empty").returncode == 2
    refused = Acp(tmp_path)("validate", "--no-such-flag", "empty")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
