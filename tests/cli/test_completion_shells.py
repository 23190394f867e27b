"""Real shells complete what a person types, with nothing but the script that `acp completion` prints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.support.terminal import Terminal

PLENTY = 60.0  # seconds; nothing passes or fails by being quicker
SHELLS = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(acp completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(acp completion zsh)"'),
    "fish": (["fish", "--no-config", "-i"], "acp completion fish | source"),
}  # fmt: skip
"""How each shell is started without a person's own settings, and told of acp."""
LINES = {
    "acp gover": "acp governed",
    "acp governed escal": "acp governed escalate",
    "acp why chec": "acp why checkout/",
    "acp loop checkout rev": "acp loop checkout reviewer",
    "acp loop checkout reviewer --agent open": "acp loop checkout reviewer --agent opencode",
    "acp launch checkout reviewer=cl": "acp launch checkout reviewer=claude",
    "acp act checkout blo": "acp act checkout block",
    "acp act checkout block --rea": "acp act checkout block --reason",
    "acp append checkout --event proposal_s": "acp append checkout --event proposal_submitted",
}
"""What is typed, and what stands there after the tabulator key."""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    """A shell in a folder with one collaboration, which knows `acp`."""
    command, source = SHELLS[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    home = tmp_path / "home"
    home.mkdir()
    acp = Acp(home)
    given = ("--participant", "server", "--participant", "reviewer", "--objective", "x")
    assert acp("init", "checkout", *given, "--completion", "y").returncode == 0
    program = tmp_path / "bin" / "acp"
    program.parent.mkdir()
    python, *module = acp.command()
    program.write_text(f'#!/bin/sh\nexec "{python}" {" ".join(module)} "$@"\n')
    program.chmod(0o755)
    env = acp.env | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "PS1": "$ ",
        "LC_ALL": "C.UTF-8", "TERM": "xterm",
    }  # fmt: skip
    with Terminal(command, env=env, cwd=home) as terminal:
        terminal.send(f"{source}; echo ready=$((40+2))\r" if request.param != "fish"
                      else f"{source}; echo ready=(math 40+2)\r")  # fmt: skip
        terminal.wait_for("ready=42", PLENTY)
        yield terminal
        terminal.hang_up()


@pytest.mark.slow
def test_commands_folders_participants_presets_and_actions_are_completed(shell: Terminal) -> None:
    for typed, whole in LINES.items():
        shell.send(f"{typed}\t")
        try:
            shell.wait_for(whole, PLENTY)
        finally:
            shell.send("\x15")  # the line is deleted
