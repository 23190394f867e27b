"""What a person can do about participants' loops: launch, hand over, nudge, stop.

Described as actions, like everything that a person can do. Each says beforehand what exactly
will be run or ended, and afterwards whether that is so.
"""

from __future__ import annotations

from acp_core.agents.state import RunnerState
from acp_core.diagnosis.names import DUPLICATE, STOP_LOOP, STOP_PROGRAM
from acp_core.diagnosis.names import NAMES as NAMES
from acp_core.diagnosis.remedies.fields import About
from acp_core.diagnosis.remedies.messages import login, nudge
from acp_core.diagnosis.remedies.starting import (
    hand_over,
    launch,
    launch_all,
    relaunch,
)
from acp_core.diagnosis.remedies.stopping import stop_duplicate, stop_loop, stop_program
from acp_core.model import Action, Snapshot
from acp_core.protocols.kit.diagnosis import Claim

ENDING = frozenset({STOP_PROGRAM, STOP_LOOP, DUPLICATE})
"""Those that make sense although the collaboration is over."""
MAKERS = (
    relaunch,
    launch,
    launch_all,
    hand_over,
    nudge,
    stop_program,
    stop_loop,
    stop_duplicate,
    login,
)


def actions(
    snapshot: Snapshot, loops: tuple[RunnerState, ...], claims: tuple[Claim, ...]
) -> list[Action]:
    """What can be done about the loops of a collaboration now."""
    about = About(snapshot, loops, claims)
    return [action for make in MAKERS if (action := make(about)) is not None]
