"""How a prompt names acp's commands, so that they run where the program runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from acp_core.agents.presets import COMMANDS


def usable(commands: str) -> str:
    """A preset's ``commands``, with `acp` named so that this very acp is what runs.

    It is named by its path: the `acp` on the PATH may be another program, and programs run their
    commands in shells that set up a PATH of their own. Where acp is not installed, it is named
    as a module of this Python.
    """
    if commands != COMMANDS:
        return commands
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "acp")
    if os.path.isfile(beside):
        found = shutil.which("acp")
        same = found and os.path.realpath(found) == os.path.realpath(beside)
        return f"{shlex.quote(os.path.abspath(found) if found and same else beside)} {{command}}"
    return f"{shlex.join([sys.executable, '-P', '-m', 'acp_core'])} {{command}}"


def tool(commands: str) -> str:
    """The words of ``commands`` before the command's name: what must be allowed to run."""
    words: list[str] = []
    for word in commands.split():
        if "{" in word:
            break
        words.append(word)
    return " ".join(words)
