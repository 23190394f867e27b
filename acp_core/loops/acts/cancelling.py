"""The act by which a person cancels what a participant's agent is doing; its loop then waits for them."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from acp_core.agents import registry
from acp_core.agents.live import control
from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.agents.live.turn import has_ended
from acp_core.agents.place import Place
from acp_core.agents.state import Run, RunnerState
from acp_core.files.owners import account
from acp_core.loops.acts.about import About, is_loop, one_of
from acp_core.loops.acts.ending import end_group, within
from acp_core.loops.acts.table import CANCEL
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values

_PATIENCE = 20.0  # seconds for an agent to end its turn, or to be ended with its commands
_NOTICE = 3.0  # seconds for the loop to see that


def bind_cancel(context: Context, now: datetime) -> Action:
    """Cancel the attempt that runs when this is done."""
    about = About.of(context)
    names = [name for name, loop in about.loops.items() if _running(loop)]

    def running(name: str) -> tuple[RunnerState, Run]:
        loop = about.loop(name)
        if loop.account:
            raise Refused(f"{loop.shown.note}; only {loop.account} can cancel its turn")
        run = _running(loop)
        if run is None:
            raise Refused(f"{name}'s agent is not at work")
        return loop, run

    def preview(values: Values) -> Preview:
        loop, run = running(values.participant)
        how = "is asked to end its turn" if run.live else "is ended"
        waits = "acp starts no further attempt until you decide."
        if is_loop(loop):
            how += "; its session stays" if run.live else ""
            waits = "The loop starts no further attempt until you send a message or restart it."
        return Preview(
            f"{values.participant}'s agent {how}. Commands that it left running are ended. {waits}"
        )

    def perform(values: Values) -> Outcome:
        refuse_inside_a_session()
        name = values.participant
        loop, run = running(name)
        try:
            control.cancel(Place(Path(loop.place)), run.number, account(os.getuid()))
        except OSError as error:
            raise Refused(f"could not cancel the turn: {error.strerror or error}") from None
        if not run.live:
            end_group(run.process)
        if not _ended(loop, run):
            return Outcome(OutcomeState.UNKNOWN, f"{name}'s agent has not ended its turn yet.")
        after = registry.find(loop.folder, loop.participant) or loop
        waits = "; its loop waits for you" if after.alive and is_loop(after) else ""
        return Outcome(OutcomeState.DONE, f"{name}: the turn is cancelled{waits}.")

    return bound(
        CANCEL,
        about,
        preview,
        perform,
        narrowed={"participant": one_of(names)},
        offered=bool(names),
    )


def _running(loop: RunnerState) -> Run | None:
    run = loop.run
    return run if run is not None and run.ended is None and loop.program_alive else None


def _ended(loop: RunnerState, run: Run) -> bool:
    """Whether the attempt ended: its loop says so, or (where that does not live) its session."""
    out = Path(run.out)

    def is_over() -> bool:
        now = registry.find(loop.folder, loop.participant)
        if now is None or now.run is None or now.run.number != run.number:
            return True
        return now.run.ended is not None or not now.program_alive

    if run.live and not loop.alive:
        return within(lambda: has_ended(out), _PATIENCE)
    return within(is_over, _PATIENCE + _NOTICE)
