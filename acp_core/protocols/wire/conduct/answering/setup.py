"""Which program answers, and how: what ``--on-message`` and the options beside it say."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace

from acp_core.agents import presets
from acp_core.agents.live.binding import offered
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.agents.program import Program, locate
from acp_core.agents.spawn import SpawnError
from acp_core.model.errors import InvalidInput
from acp_core.person import settings
from acp_core.person.permissions import Policy

AT_ONCE = 4
SECONDS = 1800.0
WAITING = 1000


class SetupError(InvalidInput):
    """It cannot be set up so; the message is one line."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How messages are answered.

    Attributes:
        preset: how the program is run; its ``program`` is an absolute path.
        workdir: the folder in which it runs, absolute.
        model: chosen for it; "" for its own choice.
        at_once: how many run at the same time.
        seconds: after which one is ended.
        waiting: how many may wait for their turn; what comes beyond is refused.
        grace: seconds between asking a program to end and ending it.
        permissions: the policy for what a live session asks; what strangers write makes it ask.
        once: start the program for each answer, even if it can hold a live session.
    """

    preset: Preset
    workdir: str
    model: str = ""
    at_once: int = AT_ONCE
    seconds: float = SECONDS
    waiting: int = WAITING
    grace: float = 3.0
    permissions: str = Policy.NONE.value
    once: bool = False

    @property
    def program(self) -> Program:
        """The program that answers, in live sessions where it can."""
        made = Program(self.preset, self.workdir, self.workdir, self.preset.program, self.model)
        return offered(made, once=self.once)


def choose(words: str, workdir: str | None = None, model: str = "") -> Setup:
    """The set-up for a preset's name (``claude``), or for a command with its words.

    A command is taken apart into words here, once; no shell ever sees it, or a message.

    Raises:
        SetupError: it is neither, its program is not there, or there is no such folder.
    """
    place = os.path.abspath(os.path.expanduser(workdir or "."))
    if not os.path.isdir(place):
        raise SetupError(f"--workdir: no folder {place}")
    try:
        known = presets.load(settings.load().presets)
        given = shlex.split(words)
        preset = known.get(given[0]) if len(given) == 1 else None
        if preset is None or preset.name == ANY or not preset.program:
            preset = presets.command_here(given)
        program = locate(preset, place)
    except ValueError as error:
        raise SetupError(f"--on-message: {error}") from None
    except (PresetError, SpawnError, settings.SettingsError) as error:
        raise SetupError(f"--on-message: {error}") from None
    if model and not preset.model_args:
        raise SetupError(f"--model: {preset.title or preset.program} takes no model")
    return Setup(replace(preset, program=program), place, model)
