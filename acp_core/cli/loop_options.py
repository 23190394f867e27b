"""What ``acp loop`` and ``acp launch`` have in common: how a program is chosen and run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

import click

from acp_core.agents import presets
from acp_core.agents.presets import Preset, PresetError
from acp_core.cli.durations import DURATION
from acp_core.cli.start import load_settings
from acp_core.loops.spec import Restart, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.turn import Mode

F = TypeVar("F", bound=Callable[..., Any])

_AFTER = "acp.command"
_OPTIONS = (
    click.option("--model", default="", metavar="NAME", help="The model that the program uses."),
    click.option(
        "--workdir", default="", type=click.Path(), help="Where the program runs (the folder)."
    ),
    click.option(
        "--alone", is_flag=True, help="The program waits for its turns itself; run it once."
    ),
    click.option(
        "--append-after-change",
        is_flag=True,
        help="The program cannot run commands: append its event when its document changed.",
    ),
    click.option(
        "--commands",
        metavar="TEMPLATE",
        help="How prompts name acp's commands: {command} is the name, {script} the script's file.",
    ),
    click.option(
        "--restart",
        type=click.Choice([each.value for each in Restart]),
        default=Restart.ON_FAILURE.value,
        show_default=True,
        help="When the program is run again for a turn that it did not take.",
    ),
    click.option("--retries", type=click.IntRange(0, 1000), help="How often at most (3)."),
    click.option("--pause", type=DURATION, help="Before the first retry; then longer (5s)."),
    click.option("--turn-limit", type=DURATION, help="How long one turn may take."),
    click.option("--deadline", type=DURATION, help="When the loop ends, counted from now."),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen on the command line."""

    model: str
    workdir: str
    alone: bool
    append_after_change: bool
    commands: str | None
    restart: str
    retries: int | None
    pause: float | None
    turn_limit: float | None
    deadline: float | None


def loop_options(function: F) -> F:
    """Give a command the options that its function takes as one `Chosen`, named ``chosen``."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **values: Any) -> Any:
        names = Chosen.__dataclass_fields__
        chosen = Chosen(**{name: values.pop(name) for name in names})
        return function(*arguments, chosen=chosen, **values)

    made: Any = wrapped
    for option in reversed(_OPTIONS):
        made = option(made)
    result: F = made
    return result


class WithCommand(click.Command):
    """A command of ours that is followed by ``--`` and somebody else's command, word by word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what stands behind ``--`` as it is; `after` gives it."""
        if "--" in args and not ctx.resilient_parsing:
            place = args.index("--")
            ctx.meta[_AFTER] = args[place + 1 :]
            args = args[:place]
        return super().parse_args(ctx, args)


def after(context: click.Context) -> list[str]:
    """The words behind ``--``; none where there was no ``--``."""
    words: list[str] = context.meta.get(_AFTER, [])
    return words


def all_presets() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        CommandError: one in config.toml is not what it should be.
    """
    try:
        return presets.load(load_settings().presets)
    except PresetError as error:
        raise CommandError(f"config.toml: {error}") from None


def named(name: str, known: Mapping[str, Preset]) -> Preset:
    """The preset of this name.

    Raises:
        CommandError: there is none.
    """
    try:
        return presets.named(name, known)
    except PresetError as error:
        raise CommandError(str(error)) from None


def any_command(words: Sequence[str]) -> Preset:
    """The preset for a command that was typed word by word.

    Raises:
        CommandError: it is none.
    """
    try:
        return presets.any_command(words)
    except PresetError as error:
        raise CommandError(str(error)) from None


def spec_of(folder: str, participant: str, preset: Preset, chosen: Chosen) -> tuple[Spec, Preset]:
    """What is asked for, settings included, and the preset as the options change it.

    Raises:
        CommandError: the options do not fit together.
    """
    if chosen.alone and (chosen.append_after_change or preset.append_after_change):
        raise CommandError("a program that cannot append cannot take part alone (--alone)")
    if chosen.append_after_change:
        preset = replace(preset, append_after_change=True)
    if chosen.commands is not None:
        if "{command}" not in chosen.commands and "{script}" not in chosen.commands:
            raise CommandError("--commands must name {command} or {script}")
        preset = replace(preset, commands=chosen.commands)
    set_by = load_settings().loops
    limit = chosen.turn_limit or 60 * set_by.get("turn_minutes", 0) or None
    until = chosen.deadline or 60 * set_by.get("minutes", 0) or None
    spec = Spec(
        folder=folder,
        participant=participant,
        model=chosen.model,
        workdir=chosen.workdir,
        mode=Mode.ALONE if chosen.alone else Mode.TURN,
        restart=Restart(chosen.restart),
        retries=int(set_by.get("retries", 3) if chosen.retries is None else chosen.retries),
        pause=set_by.get("pause", 5.0) if chosen.pause is None else chosen.pause,
        turn_limit=limit,
        deadline=utc_now() + timedelta(seconds=until) if until else None,
    )
    return spec, preset
