"""Actions that tell something: a participant what to do, a person how to log a program in."""

from __future__ import annotations

import shlex
from typing import Any

from pydantic import Field

from acp_core.agents import presets, registry
from acp_core.agents.presets import Preset
from acp_core.agents.state import RunnerState
from acp_core.diagnosis.names import LOGIN, NUDGE
from acp_core.diagnosis.remedies.ending import PATIENCE, within
from acp_core.diagnosis.remedies.fields import LINES, About, model_of, refuse, who
from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now


def nudge(about: About) -> Action | None:
    names = about.alive()
    if not names:
        return None

    def preview(answers: Any) -> Preview:
        loop = about.loops[answers.participant]
        when = "at once"
        if loop.program_alive:
            when = "as soon as the program that runs now has ended"
        said = f", told “{clean_line(answers.message, 300)}”" if answers.message.strip() else ""
        return Preview(f"{answers.participant} begins its turn anew {when}{said}.")

    def perform(answers: Any) -> Outcome:
        loop = about.loops[answers.participant]
        try:
            registry.nudge(loop.folder, loop.participant, answers.message.strip(), utc_now())
        except OSError as error:
            return refuse(f"the message cannot be left: {error.strerror or error}")
        woke = within(lambda: not _find(loop).nudge_waiting, PATIENCE)
        name = answers.participant
        if woke:
            return Outcome(OutcomeState.DONE, f"Delivered, and {name}'s loop took it.")
        return Outcome(
            OutcomeState.REQUESTED,
            f"Delivered; {name}'s loop takes it as soon as its program has ended.",
        )

    message = Field(
        "",
        title="Message",
        description="Stands in the prompt of its turn.",
        json_schema_extra=LINES,
    )
    return Action(
        name=NUDGE,
        label="Nudge",
        sentence="Have a participant begin its turn anew, with a message from you.",
        inputs=model_of(NUDGE, participant=who(names), message=(str, message)),
        preview=preview,
        perform=perform,
    )


def _find(loop: RunnerState) -> RunnerState:
    return registry.find(loop.folder, loop.participant) or loop


def login(about: About) -> Action | None:
    commands = {
        name: preset.login
        for name, loop in about.loops.items()
        if (preset := _preset(loop)) is not None and preset.login
    }
    if not commands:
        return None

    def preview(answers: Any) -> Preview:
        words = tuple(shlex.split(commands[answers.participant]))
        return Preview(
            f"Run this in a terminal of your own; then start {answers.participant} again.",
            command=words,
        )

    def perform(answers: Any) -> Outcome:
        return Outcome(
            OutcomeState.REQUESTED,
            f"Run `{commands[answers.participant]}` in a terminal of your own, then start "
            f"{answers.participant} again.",
        )

    return Action(
        name=LOGIN,
        label="Log in",
        sentence="Show the command with which a participant's program is logged in.",
        inputs=model_of(LOGIN, participant=who(commands)),
        preview=preview,
        perform=perform,
    )


def _preset(loop: RunnerState) -> Preset | None:
    return presets.bundled().get(loop.shown.program)
