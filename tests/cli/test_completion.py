"""A shell that has our script completes commands, options, choices and folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support import toy


def completed(acp: Acp, line: str) -> list[str]:
    """What bash would offer at the end of ``line``, as ``type,value``."""
    words = line.split(" ")
    asked = {
        "_ACP_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    ran = acp(env=asked)
    assert ran.stderr == ""
    return ran.stdout.split()


def test_commands_of_every_kind_are_offered(acp: Acp) -> None:
    offered = completed(acp, "acp ")
    assert {"plain,status", "plain,append", "plain,toy-say"} <= set(offered)
    assert completed(acp, "acp statu") == ["plain,status"]


def test_what_is_no_command_is_completed_as_a_folder(acp: Acp) -> None:
    assert completed(acp, "acp ./ru") == ["dir,./ru"]


def test_options_of_our_commands_are_offered(acp: Acp) -> None:
    assert completed(acp, "acp status --") == [
        "plain,--path", "plain,--all", "plain,--view", "plain,--group", "plain,--sort",
        "plain,--changed", "plain,--json", "plain,--help",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acp append --par", ["plain,--participant"]),
        ("acp append --folder ", ["dir,"]),
        ("acp append --event proposal_s", ["plain,proposal_submitted"]),
        ("acp init --folder x --participant a --part", ["plain,--participant"]),
        ("acp skill in", ["plain,install"]),
        ("acp skill install ", ["dir,"]),
    ],
)
def test_options_of_argparse_commands_are_offered(acp: Acp, line: str, expected: list[str]) -> None:
    assert completed(acp, line) == expected


def test_the_first_argument_of_a_protocol_s_command_is_offered(acp: Acp) -> None:
    assert completed(acp, "acp toy-say ") == ["dir,"]
    assert completed(acp, "acp toy-say --") == ["plain,--help"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acp act ", ["dir,"]),
        ("acp act talk ", ["plain,answer", "plain,ack", "plain,report"]),
        ("acp act talk an", ["plain,answer"]),
        ("acp act talk answer --wh", ["plain,--who"]),
        ("acp act talk answer --who x --te", ["plain,--text"]),
        ("acp act talk --js", ["plain,--json"]),
        ("acp act nowhere an", []),
    ],
)
def test_what_can_be_done_here_is_offered(acp: Acp, line: str, expected: list[str]) -> None:
    toy.say(toy.make(acp.home / "talk"), "ben", "asked", "Blue or green?")
    assert completed(acp, line) == expected


@pytest.fixture
def checkout(acp: Acp) -> Path:
    """A folder collaboration of two, one of whom has written."""
    given = ("--participant", "server", "--participant", "reviewer", "--objective", "x")
    assert acp("init", "checkout", *given, "--completion", "y").returncode == 0
    return acp.home / "checkout"


BOTH = ["plain,server", "plain,reviewer"]


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acp loop checkout ", BOTH),
        ("acp loop --folder checkout --participant rev", BOTH[1:]),
        ("acp logs checkout ", BOTH),
        ("acp next checkout --participant ", BOTH),
        ("acp next --folder checkout --participant ", BOTH),
        ("acp wait checkout --participant s", BOTH[:1]),
        ("acp append checkout --participant ", BOTH),
        ("acp mcp checkout ", BOTH),
        ("acp ask checkout far start ", BOTH),
        ("acp sync checkout --take ", BOTH),
        ("acp skill install --for claude --collaboration checkout --participant r", BOTH[1:]),
        ("acp loop nowhere ", []),
        ("acp diff checkout pro", ["plain,proposal.md", "plain,protocol.json"]),
        ("acp loop checkout reviewer --agent cl", ["plain,claude"]),
        ("acp launch checkout reviewer=cl", ["plain,reviewer=claude"]),
        ("acp launch checkout --agent co", ["plain,codex", "plain,command"]),
        ("acp launch checkout --agent reviewer=cl", ["plain,reviewer=claude"]),
        ("acp new other server=ge", ["plain,server=gemini"]),
        ("acp new other ser", []),
        ("acp workspaces dispatch run --agent ann=q", ["plain,ann=qwen"]),
        ("acp cycle start Export --agent mi", ["plain,mine"]),
        ("acp governed init . --agent pm=cl", ["plain,pm=claude"]),
        ("acp agent --on-message o", ["plain,opencode"]),
        ("acp demo --stuck to", ["plain,torn"]),
        ("acp status --view ", ["plain,urgent"]),
    ],
)
def test_names_that_acp_knows_are_offered(acp: Acp, line: str, expected: list[str]) -> None:
    config = acp.home / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        '[presets.mine]\nextends = "claude"\n[fleet.views.urgent]\nsort = "waiting"\n'
    )
    assert completed(acp, line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acp launch checkout reviewer = cl", ["plain,claude"]),
        ("acp launch checkout reviewer =", ["plain,claude", "plain,codex"]),
        ("acp new other server = claude reviewer = co", ["plain,codex", "plain,command"]),
        ("acp launch checkout --agent = cl", ["plain,claude"]),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_bash_gets_the_part_of_a_word_that_it_replaces(
    acp: Acp, line: str, expected: list[str]
) -> None:
    assert [each for each in completed(acp, line) if each in expected] == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(acp: Acp, shell: str) -> None:
    ran = acp("completion", shell)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"_ACP_COMPLETE={shell}_complete" in ran.stdout


def test_a_shell_that_we_do_not_know_is_one_clear_line(acp: Acp) -> None:
    ran = acp("completion", "tcsh")
    assert ran.returncode == 2
    assert "bash, zsh, fish" in ran.stderr and ran.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(acp: Acp, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "acp"
    program.parent.mkdir()
    python, *module = acp.command()
    program.write_text(f'#!/bin/sh\nexec "{python}" {" ".join(module)} "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(acp completion bash)"\n'
        "COMP_WORDS=(acp watch --j); COMP_CWORD=2\n"
        "compopt() { :; }\n"
        "_acp_completion acp; echo ${COMPREPLY[@]}\n"
    )
    ran = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=False,
        cwd=toy.make(tmp_path / "talk"),
        env=acp.env | {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == ("--json\n", "")
