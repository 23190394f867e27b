"""Acts that say something: to a participant what to do, to a person how to log a program in."""

from __future__ import annotations

import os
import shlex
from datetime import datetime
from pathlib import Path

from acp_core.agents import presets, registry
from acp_core.agents.live import control
from acp_core.agents.live.control import Steering
from acp_core.agents.place import Place
from acp_core.agents.presets import Preset
from acp_core.agents.state import RunnerState
from acp_core.files.owners import account
from acp_core.loops.acts.about import About, is_loop, one_of
from acp_core.loops.acts.ending import PATIENCE, within
from acp_core.loops.acts.table import LOGIN, NUDGE
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values


def bind_nudge(context: Context, now: datetime) -> Action:
    """Have a participant begin its turn anew, with a message."""
    about = About.of(context)
    names = [
        name
        for name, loop in about.loops.items()
        if loop.alive and (is_loop(loop) or _steers(loop))
    ]

    def loop_of(name: str) -> RunnerState:
        loop = about.loop(name)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can send a message to it")
        if not loop.alive:
            command = shlex.join(("acp", "launch", about.key, name))
            raise Refused(f"{name} has no running loop; `{command}`")
        if not (is_loop(loop) or _steers(loop)):
            raise Refused(f"{name}'s agent takes no messages while it works")
        return loop

    def preview(values: Values) -> Preview:
        loop = loop_of(values.participant)
        message = clean_line(values.message, 300)
        if message and _steers(loop):
            return Preview(
                f"{values.participant}'s agent gets the message “{message}” at once, in its running turn."
            )
        when = "at once"
        if loop.program_alive:
            when = "after the current attempt has ended"
        said = f" with the message “{message}”" if message else ""
        return Preview(f"{values.participant} restarts its turn {when}{said}.")

    def perform(values: Values) -> Outcome:
        name = values.participant
        loop = loop_of(name)
        message = values.message.strip()
        try:
            late = _steered(loop, message)
            if late is None:
                return Outcome(OutcomeState.DONE, f"{name}: the agent got the message.")
            if not is_loop(loop):  # nobody would read it later
                raise Refused(f"{name}'s agent did not get the message{late}")
            registry.nudge(loop.folder, loop.participant, message, utc_now())
        except OSError as error:
            raise Refused(f"could not save the message: {error.strerror or error}") from None
        waits = PATIENCE if not loop.program_alive else 0.0
        if within(lambda: not about.loop(name).nudge_waiting, waits):
            return Outcome(OutcomeState.DONE, f"{name}: the loop received the message.")
        return Outcome(
            OutcomeState.REQUESTED,
            f"{name}: message queued; the loop reads it after the current attempt{late}.",
        )

    return bound(
        NUDGE,
        about,
        preview,
        perform,
        narrowed={"participant": one_of(names)},
        offered=bool(names),
    )


def _steers(loop: RunnerState) -> bool:
    """Whether a message reaches the agent in its running turn."""
    run = loop.run
    at_work = run is not None and run.live and run.ended is None and loop.program_alive
    return at_work and control.can_steer(Place(Path(loop.place)))


def _steered(loop: RunnerState, message: str) -> str | None:
    """Send a message into the running turn. None where it arrived, else why not, for a sentence."""
    run = loop.run
    if not message or run is None or not _steers(loop):
        return ""
    sent = Steering(run.number, message, account(os.getuid()))
    reply = control.steer(Place(Path(loop.place)), sent)
    return None if reply.delivered else f" ({clean_line(reply.why, 200)})"


def bind_login(context: Context, now: datetime) -> Action:
    """Show how a participant's program is logged in."""
    about = About.of(context)
    commands = {
        name: preset.login
        for name, loop in about.loops.items()
        if (preset := _preset(loop)) is not None and preset.login
    }

    def preview(values: Values) -> Preview:
        words = tuple(shlex.split(_command(values.participant)))
        return Preview(
            f"Run this in your own terminal, then restart {values.participant}.",
            command=words,
        )

    def perform(values: Values) -> Outcome:
        return Outcome(
            OutcomeState.REQUESTED,
            f"Run `{_command(values.participant)}` in your own terminal, then restart {values.participant}.",
        )

    def _command(name: str) -> str:
        if name not in commands:
            raise Refused(f"no login command is known for {name}'s agent")
        return commands[name]

    narrowed = {"participant": one_of(commands)}
    return bound(LOGIN, about, preview, perform, narrowed=narrowed, offered=bool(commands))


def _preset(loop: RunnerState) -> Preset | None:
    return presets.bundled().get(loop.shown.program)
