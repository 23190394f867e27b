"""Tells how an act ended; where there is a next thing to do, one key does it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model.action_spec import Intent
from acp_tui.actions.alone import alone

if TYPE_CHECKING:
    from textual.screen import Screen

    from acp_core.diagnosis.actions import NextStep
    from acp_core.model import Action, Outcome
    from acp_core.protocols.contract import Collaboration
    from acp_tui.app import AcpApp

RUNNING = frozenset({Intent.STOP, Intent.STOP_EVERYTHING, Intent.START})
"""Acts after which nobody is asked to start something: it was stopped, or starts now."""
_LOOK, _MOST_LOOKS = 0.05, 40  # s between two looks whether a screen has left


def report(app: AcpApp, key: str | None, action: Action | None, outcome: Outcome) -> None:
    """Tell how an act ended, with the next thing to do in its collaboration.

    Args:
        app: The dashboard.
        key: The collaboration's; None where the act belongs to none.
        action: The act.
        outcome: How it ended: done, or queued.
    """
    outcome = replace(outcome, sentence=alone(app, key, outcome.sentence))
    place = outcome.location
    if key is None or action is None or action.personal or (place and not os.path.isdir(place)):
        app.tell(outcome.sentence)
        return
    work = _report_new(app, place, outcome) if place else _report(app, key, action, outcome)
    app.run_worker(work, group="result", exit_on_error=False)


def leave(screen: Screen[Outcome | None], outcome: Outcome) -> None:
    """Leave the screen of an act with its outcome; what was opened over it meanwhile goes too."""
    app = screen.app
    while app.screen is not screen:  # a document of its card: Textual takes away what is on top
        app.pop_screen()
    screen.dismiss(outcome)


async def _report(app: AcpApp, key: str, action: Action, outcome: Outcome) -> None:
    try:
        step = await app.fleet.call(key, partial(_next_step, app))
    except Exception:  # somebody else's protocol, or it is gone: how it ended is known all the same
        step = None
    from acp_core.diagnosis.idle import IDLE

    stopped = step is not None and step.reason == IDLE and action.intent in RUNNING
    if step is None or stopped:
        app.tell(outcome.sentence)
        return
    if app.screen.is_modal:  # the person goes on by themselves
        app.tell(f"{outcome.sentence} Next: {step.reason} ({step.label}).")
        return
    from acp_tui.screens.result import ResultScreen

    then = getattr(app.screen, "performed", None)

    def go_on(wanted: bool | None) -> None:
        if wanted:
            app.perform(key, step.action, then, dict(step.given))

    app.push_screen(ResultScreen(outcome, step), go_on)


async def _report_new(app: AcpApp, place: str, outcome: Outcome) -> None:
    """Tell of an act that made another collaboration, with what is to be done next in that one.

    The screen of a collaboration opens the other one, which says so by itself.
    """
    from acp_core.diagnosis.actions import NextStep
    from acp_tui.screens.result import ResultScreen

    there = Path(place)
    if hasattr(app.screen, "performed"):
        app.tell(outcome.sentence)
        return
    opener = app.screen
    new = app.fleet.add(there)
    try:
        step = await app.fleet.call(new, partial(_next_step, app))
    except Exception:  # as above
        step = None
    for _ in range(_MOST_LOOKS):  # a card from which the act was opened is about to leave, too
        if app.screen is not opener or not opener.is_modal:
            break
        await asyncio.sleep(_LOOK)
    if app.screen.is_modal:
        app.tell(outcome.sentence)
        return
    shown = step or NextStep("look at it", "", "Open")

    def go_on(wanted: bool | None) -> None:
        if wanted and step is not None:
            app.perform(new, step.action, None, dict(step.given))
        elif wanted:
            app.open_collaboration(new)

    app.push_screen(
        ResultScreen(outcome, shown._replace(reason=f"{there.name}: {shown.reason}")), go_on
    )


def _next_step(app: AcpApp, opened: Collaboration) -> NextStep | None:
    """What is to be done next, read anew; for worker threads."""
    from acp_core.diagnosis.actions import next_step

    return next_step(opened, app.attention, app.now())
