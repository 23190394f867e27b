"""The choice of a program in a form: one that was chosen before, a preset, or any command."""

from __future__ import annotations

import shlex
from typing import Any

from acp_core.agents.presets import PresetError, is_installed
from acp_core.model.errors import Refused
from acp_core.protocols.kit.owner_inputs import AS_BEFORE
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces.actions.common import choice
from acp_core.protocols.workspaces.conduct import agent_choice
from acp_core.protocols.workspaces.conduct.team import Choice

BEFORE, COMMAND = AS_BEFORE, "command"


def narrowed(before: Choice | None) -> dict[str, dict[str, Any]]:
    """Which programs can be chosen now.

    Args:
        before: what was chosen before, None where nothing was.
    """
    try:
        known = agent_choice.known()
    except PresetError:  # an own preset is wrong: `chosen` says so
        known = {}
    presets = [name for name, preset in known.items() if preset.program]
    here = [name for name in presets if is_installed(known[name].program)]
    usual = BEFORE if before else here[0] if here else COMMAND
    offered = [*([BEFORE] if before else []), *presets, COMMAND]
    about = f"As before: {before.name}" if before else ""
    return {"program": choice(offered, usual, help=about)}


def chosen(values: Values, workdir: str) -> Choice | None:
    """The program that is meant; None for the one of before.

    Raises:
        Refused: there is no such program, or no command.
        PresetError: the command is none.
    """
    if values.program == BEFORE:
        return None
    if values.program == COMMAND:
        try:
            words = shlex.split(values.command)
        except ValueError:
            raise Refused("the command's quotes do not match") from None
        if not words:
            raise Refused("give the command to run")
        return agent_choice.choice("", words, workdir, values.model)
    return agent_choice.choice(values.program, (), workdir, values.model)


def words(values: Values) -> list[str]:
    """The same on the command line."""
    if values.program == BEFORE:
        return []
    model = ["--model", values.model] if values.model else []
    if values.program == COMMAND:
        return [*model, "--", *shlex.split(values.command)]
    return ["--agent", values.program, *model]
