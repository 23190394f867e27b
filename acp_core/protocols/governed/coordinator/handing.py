"""Initiatives in the existing program's layout: what is done in them is handed to that program.

It alone knows how its barriers and gates are written; where it is not on the PATH, acp only reads
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from acp_core.files.text import clean_line
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.conduct import existing_program
from acp_core.protocols.governed.read.initiative import Initiative
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write.opened import refuse_agents

_ACTIONS = (
    ("approve_gate", "Approve the gate", "Open the cross-repo gate, so that all may go on."),
    ("coordinate", "Step the initiative", "Have the next turn dispatched, or the gate asked for."),
    ("resync", "Resync", "Look again at what the repositories have accepted."),
)


class Nothing(BaseModel):
    """Nothing is asked."""


def handed_actions(initiative: Initiative) -> Sequence[Action]:
    """What the existing program can do in the initiative now; nothing where it is not there."""
    if (
        not existing_program.is_there()
        or initiative.state.reason
        or initiative.status == "completed"
    ):
        return []
    names = {"coordinate", "resync"} | ({"approve_gate"} if initiative.pending else set())
    return [_action(initiative.root, *each) for each in _ACTIONS if each[0] in names]


def _action(root: Path, name: str, label: str, sentence: str) -> Action:
    command = (existing_program.NAME, *existing_program.INITIATIVE[name])

    def preview(given: Any) -> Preview:
        try:
            refuse_agents()
        except Refused as error:
            return Preview("", refused=clean_line(str(error), 400))
        return Preview(sentence, (), command)

    def perform(given: Any) -> Outcome:
        try:
            refuse_agents()
        except Refused as error:
            return Outcome(OutcomeState.REFUSED, clean_line(str(error), 400))
        ran = existing_program.hand_over(root, command[1:])
        state = OutcomeState.DONE if ran.ok else OutcomeState.REFUSED
        return Outcome(state, clean_line(f"{existing_program.NAME}: {ran.said}", 2_000))

    return Action(name, label, sentence, Nothing, preview, perform, risky=name == "approve_gate")
