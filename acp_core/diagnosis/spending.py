"""A budget that is used up keeps a participant's turn from being taken."""

from __future__ import annotations

from acp_core.agents.budgets import raised
from acp_core.agents.state import RunnerState
from acp_core.diagnosis.words import of_run, where
from acp_core.loops.acts.names import HAND_OVER, RAISE, STOP_LOOP
from acp_core.model import Cause, Turn


def over_budget(turn: Turn, loop: RunnerState) -> Cause:
    """A budget is used up: the loop starts nothing until a person raises it."""
    name, shown = turn.participant, loop.shown
    told = tuple(use.sentence for use in shown.budget)
    return Cause(
        "E8",
        f"{name}'s loop holds: {shown.note}",
        advice="raise the budget, or end the work",
        evidence=(*told, *of_run(loop.run), where(loop)),
        remedy=RAISE,
        given=(("participant", name), ("budget", raised(shown.budget))),
        others=(HAND_OVER, STOP_LOOP),
        participant=name,
        since=shown.since,
        key=f"E8:{name}:{turn.since_event}:{shown.note.partition(':')[0]}",
    )
