"""The names of the acts about participants' loops, by which causes name their remedies."""

from __future__ import annotations

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
