"""The choice of a program in a form: one that was chosen before, a preset, or any command."""

from __future__ import annotations

import shlex
import shutil
from typing import Any

from pydantic import Field

from acp_core.protocols.workspaces.actions.common import Fields, choice, text
from acp_core.protocols.workspaces.conduct import agent_choice
from acp_core.protocols.workspaces.conduct.team import Choice
from acp_core.protocols.workspaces.write import Refused

BEFORE, COMMAND = "as before", "command"


def fields(before: Choice | None) -> Fields:
    """The inputs: which program, its words, its model.

    Args:
        before: what was chosen before, None where nothing was.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    presets = [name for name, preset in agent_choice.known().items() if preset.program]
    here = [name for name in presets if shutil.which(agent_choice.known()[name].program)]
    usual = BEFORE if before else here[0] if here else COMMAND
    offered = [*([BEFORE] if before else []), *presets, COMMAND]
    about = f"As before: {before.name}" if before else ""
    return {
        "program": (
            choice(dict.fromkeys(offered)),
            Field(usual, title="Program", description=about),
        ),
        "command": text(
            "Command",
            "Its words, for the program 'command'; the prompt goes to its standard input, or where "
            "{prompt} or {prompt_file} stands.",
        ),
        "model": text("Model", "The program's own if empty."),
    }


def chosen(answers: Any, workdir: str) -> Choice | None:
    """The program that is meant; None for the one of before.

    Raises:
        Refused: there is no such program, or no command.
        PresetError: the command is none.
    """
    if answers.program == BEFORE:
        return None
    if answers.program == COMMAND:
        try:
            words = shlex.split(answers.command)
        except ValueError:
            raise Refused("the command's quotes do not match") from None
        if not words:
            raise Refused("say which command does the work")
        return agent_choice.choice("", words, workdir, answers.model)
    return agent_choice.choice(answers.program, (), workdir, answers.model)


def words(answers: Any) -> list[str]:
    """The same on the command line."""
    if answers.program == BEFORE:
        return []
    model = ["--model", answers.model] if answers.model else []
    if answers.program == COMMAND:
        return [*model, "--", answers.command]
    return ["--program", answers.program, *model]
