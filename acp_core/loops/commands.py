"""How a prompt names acp's commands, so that they run where the program runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

import acp_core
from acp_core.programs.presets import COMMANDS


def usable(commands: str) -> str:
    """A preset's ``commands``, with `acp` named so that this very acp is what runs.

    Where `acp` on the PATH is another program, or there is none, it is named by its path, and
    where it is not installed at all, as a module of this Python.
    """
    if commands != COMMANDS:
        return commands
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "acp")
    found = shutil.which("acp")
    if os.path.isfile(beside):
        if found and os.path.realpath(found) == os.path.realpath(beside):
            return commands
        return f"{shlex.quote(beside)} {{command}}"
    module = shlex.join([sys.executable, "-P", "-m", "acp_core"])
    return f"{module} {{command}}"


def tool(commands: str) -> str:
    """The words of ``commands`` before the command's name: what must be allowed to run."""
    words: list[str] = []
    for word in commands.split():
        if "{" in word:
            break
        words.append(word)
    return " ".join(words)


def environment() -> dict[str, str]:
    """What makes this acp importable for a child that runs it as a module."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(acp_core.__file__)))
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if ours in others or os.path.basename(ours) in ("site-packages", "dist-packages"):
        return {}
    return {"PYTHONPATH": os.pathsep.join([ours, *others])}
