"""What a human can do in a governed run, described: forms and commands are made of it.

Loaded only when needed: the descriptions are pydantic models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_core.protocols.governed.actions import deciding, gates, leftovers, turns
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write.journal import interrupted
from acp_core.protocols.governed.write.opened import look

if TYPE_CHECKING:
    from acp_core.model import Action


def run_actions(root: str) -> Sequence[Action]:
    """What a human can do in the run now, most useful first.

    Names: ``recover``, ``approve_gate``, ``reject_gate``, ``accept_turn``, ``correct_result``,
    ``reject_turn``, ``stop_turn``, ``unblock``, ``step``, ``mark_objection``, ``talk``, ``escalate``,
    ``bring_back``, ``take_files``, ``set_aside``.
    """
    try:
        opened = look(root)
    except (Refused, OSError):
        from pathlib import Path

        return [leftovers.recover(root)] if interrupted(Path(root)) else []
    listed = (
        leftovers.set_aside(opened),
        gates.approve(opened),
        gates.reject(opened),
        *turns.accept_turn(opened),
        turns.reject_turn(opened),
        turns.stop_turn(opened),
        deciding.unblock(opened),
        turns.step(opened),
        deciding.mark_objection(opened),
        deciding.talk(opened),
        deciding.escalate(opened),
        leftovers.bring_back(opened),
        leftovers.take_files(opened),
    )
    return [action for action in listed if action is not None]
