"""How a prompt names acp's commands, so that they run where the program runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from acp_core.agents.presets import COMMANDS

_READING = ("next", "wait", "validate")
_SCRIPTS = {
    "append": "append_event.py",
    "next": "next_action.py",
    "wait": "wait_for_turn.py",
    "validate": "validate_collaboration.py",
}


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


def allowed(commands: str, folder: str, participant: str) -> tuple[str, ...]:
    """The beginnings of the commands that a prompt names.

    An event can be appended in this folder as this participant only; what merely reads may be run
    everywhere.
    """
    who = f"--folder {shlex.quote(folder)} --participant {shlex.quote(participant)}"
    templates = [commands]
    if tool(commands) == shutil.which("acp"):
        templates.append(COMMANDS)
    return tuple(
        words
        for template in templates
        for words in (
            f"{_named(template, 'append')} {who}",
            *(_named(template, each) for each in _READING),
        )
    )


def _named(template: str, name: str) -> str:
    return template.replace("{command}", name).replace("{script}", _SCRIPTS[name])
