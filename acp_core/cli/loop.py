"""``acp loop``: take a participant's turns with a program, in this terminal."""

from __future__ import annotations

from dataclasses import replace

from acp_core.agents import presets
from acp_core.cli.output import say, warn
from acp_core.loops import launch, process
from acp_core.loops.acts.about import Chosen, all_presets, spec_of
from acp_core.loops.launch import LaunchError
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values


def loop(given: Values) -> int:
    """Take a participant's turns here, until it is over.

    Raises:
        CommandError: it is not clear with which program, or it cannot run.
    """
    chosen, command = Chosen.of(given), given.words
    if bool(given.agent) == bool(command):
        raise CommandError("give either --agent PRESET or a command after --")
    if given.agent:
        chosen_preset = presets.named(given.agent, all_presets())
    else:
        chosen_preset = presets.command_here(command)
    spec, chosen_preset = spec_of(given.folder, given.participant, chosen_preset, chosen)
    plan = launch.plan(spec, chosen_preset)
    if plan.refused:
        raise CommandError(plan.refused)
    for warning in plan.warnings:
        warn(warning)
    try:
        asked = replace(plan.spec, interval=max(0.01, given.interval), leave=given.leave)
        return process.run(asked, echo=lambda text: say(text, now=True))
    except LaunchError as error:
        raise CommandError(str(error)) from None
