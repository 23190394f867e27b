"""Why a run does not go on although nothing in its files is wrong: a turn that says nothing.

Source: governed protocol specification, "Commands": a turn ends with its staged result. What is
wrong in the files is found by the rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Cause
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.schema import REJECT
from acp_core.protocols.kit.diagnosis import Case


def causes(run: Run, case: Case) -> Iterator[Cause]:
    """Turns without a deadline that take longer than usual, and of which no process is known."""
    if run.status != "active":
        return
    for turn in run.turns:
        if _is_quiet(turn) and case.stalled(turn.role, turn.since, case.patience.unmanaged):
            yield Cause(
                "B5",
                f"The turn of {turn.role} takes longer than usual; no result is staged",
                "Check on the agent, or reject the turn to reassign it",
                (
                    f"{turn.id}, attempt {turn.attempt}, is {turn.status or 'without a status'}",
                    "the turn has no deadline, and acp knows no process working on it",
                ),
                certain=False,
                remedy=REJECT,
                participant=turn.role or None,
                since=turn.since,
                key=f"B5:TURN_QUIET:{turn.id}:{turn.attempt}",
            )


def _is_quiet(turn: ActiveTurn) -> bool:
    """Whether no rule says anything of it: a program that is gone, or a deadline, is told there."""
    known = turn.running or turn.lost or turn.staged or turn.deadline is not None
    return turn.bundle and not known and turn.status in AT_WORK and turn.status != "retrying"
