"""The names of the acts about participants' loops, by which causes name their remedies."""

from __future__ import annotations

from collections.abc import Iterable

from acp_core.model import Action, Intent, Snapshot, SourceState, Status

RELAUNCH = "relaunch"

LAUNCH = "launch"

LAUNCH_ALL = "launch_all"

HAND_OVER = "hand_over"

NUDGE = "nudge"

LOGIN = "login"

RAISE = "raise_budget"

STOP_LOOP = "stop"

CANCEL = "cancel"

STOP_PROGRAM = "stop_program"

DUPLICATE = "stop_duplicate"

ANSWER_PERMISSION = "answer_permission"

NAMES = frozenset(
    {
        RELAUNCH,
        LAUNCH,
        LAUNCH_ALL,
        HAND_OVER,
        NUDGE,
        CANCEL,
        STOP_PROGRAM,
        STOP_LOOP,
        DUPLICATE,
        LOGIN,
        RAISE,
        ANSWER_PERMISSION,
    }
)

"""All of them."""

ENDING = frozenset({STOP_PROGRAM, STOP_LOOP, DUPLICATE})

"""Those that make sense although the collaboration is over."""

IDLE = "acp runs no agent here"

"""What is said of a collaboration that goes on only if somebody acts by hand."""


def is_idle(snapshot: Snapshot) -> bool:
    """Whether no process at work is known here, though an agent is waited for, or nobody."""
    people = {each.id for each in snapshot.participants if each.kind == "human"}
    by_hand = snapshot.turns and all(turn.participant in people for turn in snapshot.turns)
    live = snapshot.status is Status.ACTIVE and snapshot.source.state is SourceState.LIVE
    return live and not snapshot.runners and not by_hand


def starting_act(offered: Iterable[Action]) -> Action | None:
    """The act that starts what runs it: loops where the collaboration has turns, else the first one."""
    names = NAMES - {LAUNCH}
    starts = [each for each in offered if each.intent is Intent.START and each.name not in names]
    return next((each for each in starts if each.name == LAUNCH), next(iter(starts), None))
