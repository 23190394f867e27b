"""The acts by which a person changes a cycle, described once.

Source: development cycle specification, "Escalation Path". What they write is only requested until
an orchestrator has picked it up.
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.cycle.actions import table_fields as given
from acp_core.protocols.cycle.schema import (
    ACCEPT_ACT,
    DECIDE_ACT,
    EXTEND_ACT,
    FEEDBACK_ACT,
    LIMIT_ACT,
    PAUSE_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    RESUME_ACT,
    STOP_ACT,
)
from acp_core.protocols.cycle.write.changes import KINDS

LOST = 3
STEERED = (
    (0, "done, or queued for an orchestrator"),
    (2, "refused, nothing written; the error says why"),
    (3, "written, but overwritten by another program"),
    (130, "interrupted"),
)


def _act(
    name: str,
    label: str,
    sentence: str,
    fields: tuple[Field, ...],
    intent: Intent,
    example: str,
    help: str = "",
    risky: bool = False,
) -> ActionSpec:
    """An act that changes the state; its binding and its command have its name."""
    return ActionSpec(
        name,
        label,
        sentence,
        f"acp_core.protocols.cycle.actions.steering:{name}",
        (*fields, given.CYCLE),
        intent,
        risky=risky,
        command=f"cycle {name}",
        help=help,
        examples=(example,),
        exits=STEERED,
        place=given.NAMED_PROJECT if any(each.position for each in fields) else given.PROJECT,
        unknown=LOST,
    )


DECISION = _act(
    DECIDE_ACT,
    "Decide",
    "Make a pending decision.",
    (
        Field("decision", "Decision", "The decision's id.", Kind.CHOICE, required=True,
              position=True, metavar="ID"),
        Field("choice", "Option's number, or words", "The number of an option, or words.",
              required=True, position=True),
        Field("rationale", "Why", "Recorded with the decision."),
        Field("impact", "What it affects", "What the decision affects."),
    ),
    Intent.DECIDE,
    'acp cycle decide DEC-001 2 --rationale "It is the smaller change"',
)  # fmt: skip
RESOLUTION = _act(
    RESOLVE_ACT,
    "Resolve a blocker",
    "Resolve a blocker; acp informs the agent that reported it.",
    (
        Field("blocker", "Blocker", "The blocker's id.", Kind.CHOICE, required=True, position=True,
              metavar="ID"),
        Field("resolution", "Resolution", "How you resolved it.", Kind.LINES,
              required=True, position=True),
        Field("workaround", "Only worked around", "Mark the blocker as worked around, not resolved.", Kind.FLAG),
    ),
    Intent.ANSWER,
    'acp cycle resolve BLK-001 "The account is there now"',
)  # fmt: skip
MESSAGE = _act(
    FEEDBACK_ACT,
    "Feedback to an agent",
    "Send an agent feedback: a live session gets it at once if the agent takes messages, else its next run does.",
    (
        given.AGENT,
        Field("text", "Feedback", "The feedback.", Kind.LINES, required=True,
              position=True),
        Field("kind", "Kind", "The kind of feedback.", Kind.CHOICE, KINDS, default=KINDS[0],
              flag="--type"),
    ),
    Intent.MESSAGE,
    'acp cycle feedback cd "Quote fields with commas"',
)  # fmt: skip
EXTENSION = _act(
    EXTEND_ACT,
    "Extend",
    "Start another iteration with a new task.",
    (
        Field("text", "New task", "The task to add.", Kind.LINES, required=True,
              position=True),
        Field("limit", "Maximum iterations", "Maximum number of iterations in all.",
              Kind.NUMBER, least=1),
    ),
    Intent.CONTINUE,
    'acp cycle extend "Also as JSON"',
)  # fmt: skip
PAUSING = _act(
    PAUSE_ACT,
    "Pause",
    "Pause the cycle after the current run; no other agent starts.",
    (),
    Intent.STOP_EVERYTHING,
    "acp cycle pause",
)
RESUMPTION = _act(
    RESUME_ACT,
    "Resume",
    "Resume the cycle; a failed agent starts again.",
    (),
    Intent.START,
    "acp cycle resume",
)
STOPPING = _act(
    STOP_ACT,
    "Stop",
    "Stop the cycle as failed. The current run is lost; finished work stays and can be resumed.",
    (given.REASON,),
    Intent.STOP,
    'acp cycle stop --reason "No longer wanted"',
    risky=True,
)
ACCEPTANCE = _act(
    ACCEPT_ACT,
    "Accept as it is",
    "Accept the cycle as it is, even with failing tests, and complete it; the test results are kept.",
    (given.RECORDED_REASON,),
    Intent.ACCEPT,
    'acp cycle accept --reason "The rest is for later"',
)
REPEAT = _act(
    RERUN_ACT,
    "Rerun an agent",
    "Rerun an agent, and the agents that depend on it.",
    (
        given.AGENT,
        given.REASON._replace(title="Instructions", help="Instructions for the new run.",
                              kind=Kind.LINES),
    ),
    Intent.RETRY,
    "acp cycle rerun vas",
)  # fmt: skip
LIMITING = _act(
    LIMIT_ACT,
    "Change the limit",
    "Change the maximum number of iterations.",
    (
        Field("iterations", "Iterations", "Maximum number of iterations in all.", Kind.NUMBER, required=True,
              position=True),
    ),
    Intent.OTHER,
    "acp cycle limit 8",
)  # fmt: skip
