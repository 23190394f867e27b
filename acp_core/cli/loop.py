"""``acp loop``: take a participant's turns with a program, in this terminal."""

from __future__ import annotations

from dataclasses import replace

import click

from acp_core.cli.durations import DURATION
from acp_core.cli.folders import FOLDER
from acp_core.cli.loop_options import (
    Chosen,
    WithCommand,
    after,
    all_presets,
    any_command,
    loop_options,
    named,
    spec_of,
)
from acp_core.cli.output import say, warn
from acp_core.loops import launch, process
from acp_core.loops.launch import LaunchError
from acp_core.model.errors import CommandError


@click.command(cls=WithCommand, options_metavar="[OPTION]... [-- COMMAND...]")
@loop_options
@click.option("--folder", required=True, type=FOLDER, help="The collaboration.")
@click.option("--participant", required=True, metavar="ID", help="Whose turns are taken.")
@click.option("--preset", metavar="NAME", help="A known program instead of a COMMAND.")
@click.option("--interval", type=DURATION, default=1.0, help="Between two looks (1s).")
@click.option("--leave", is_flag=True, help="End instead of waiting for a person's help.")
@click.pass_context
def loop(
    context: click.Context,
    chosen: Chosen,
    folder: str,
    participant: str,
    preset: str | None,
    interval: float,
    leave: bool,
) -> int:
    """Wait for a participant's turns and run a program once for each.

    COMMAND gets the turn's prompt on its standard input, or where its words say {prompt} or
    {prompt_file}. Its exit code proves nothing: a turn is taken when the participant's event
    appears. One that was not is tried again, with what was refused.

    \b
    Exit codes:
      0    completed
      1    gave up (only with --leave), or the deadline passed
      2    cannot run: no collaboration, no such program, another loop
      5    blocked
      130  interrupted
    """
    command = after(context)
    if bool(preset) == bool(command):
        raise CommandError("give either --preset NAME or a command after --")
    chosen_preset = named(preset, all_presets()) if preset else any_command(command)
    spec, chosen_preset = spec_of(folder, participant, chosen_preset, chosen)
    plan = launch.plan(spec, chosen_preset)
    if plan.refused:
        raise CommandError(plan.refused)
    for warning in plan.warnings:
        warn(f"acp loop: {warning}")
    try:
        asked = replace(plan.spec, interval=max(0.01, interval), leave=leave)
        return process.run(asked, echo=lambda text: say(text, now=True))
    except LaunchError as error:
        raise CommandError(str(error)) from None
