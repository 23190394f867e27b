"""The acts by which a person changes a cycle, described once.

Source: development cycle specification, "Escalation Path". What they write is only requested until
an orchestrator has picked it up.
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.cycle.actions import table_fields as given
from acp_core.protocols.cycle.actions.names import (
    ACCEPT,
    DECIDE,
    EXTEND,
    FEEDBACK,
    LIMIT,
    PAUSE,
    RERUN,
    RESOLVE,
    RESUME,
    STOP,
)
from acp_core.protocols.cycle.write.changes import KINDS

LOST = 3
STEERED = (
    (0, "done, or requested: an orchestrator has to pick it up"),
    (2, "refused, nothing written: one line says why"),
    (3, "written, and lost again to another program"),
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
    DECIDE,
    "Decide",
    "Make a decision that waits for you.",
    (
        Field("decision", "Decision", "Name the decision.", Kind.CHOICE, required=True,
              position=True, metavar="ID"),
        Field("choice", "Option's number, or words", "The number of an option, or words.",
              required=True, position=True),
        Field("rationale", "Why", "Kept in the decision's record."),
        Field("impact", "What it affects", "Say what it affects."),
    ),
    Intent.DECIDE,
    'acp cycle decide DEC-001 2 --rationale "It is the smaller change"',
)  # fmt: skip
RESOLUTION = _act(
    RESOLVE,
    "Resolve a blocker",
    "Say how a blocker is gone; whoever reported it is told.",
    (
        Field("blocker", "Blocker", "Name the blocker.", Kind.CHOICE, required=True, position=True,
              metavar="ID"),
        Field("resolution", "How it is resolved", "Say how it is resolved.", Kind.LINES,
              required=True, position=True),
        Field("workaround", "Only worked around", "It is only worked around.", Kind.FLAG),
    ),
    Intent.ANSWER,
    'acp cycle resolve BLK-001 "The account is there now"',
)  # fmt: skip
MESSAGE = _act(
    FEEDBACK,
    "Feedback to an agent",
    "Tell an agent something: it is told it at the beginning of its next run.",
    (
        given.AGENT,
        Field("text", "What it is to know", "Say what it is to know.", Kind.LINES, required=True,
              position=True),
        Field("kind", "Kind", "Say what it is.", Kind.CHOICE, KINDS, default=KINDS[0],
              flag="--type"),
    ),
    Intent.MESSAGE,
    'acp cycle feedback cd "Quote fields with commas"',
)  # fmt: skip
EXTENSION = _act(
    EXTEND,
    "Extend",
    "Begin another iteration with something more to do.",
    (
        Field("text", "What is to be added", "Say what is to be added.", Kind.LINES, required=True,
              position=True),
        Field("limit", "Iterations in all, at most", "Allow so many iterations in all.",
              Kind.NUMBER, least=1),
    ),
    Intent.CONTINUE,
    'acp cycle extend "Also as JSON"',
)  # fmt: skip
PAUSING = _act(
    PAUSE,
    "Pause",
    "Have it wait: who is at work ends its run, and nobody else begins.",
    (),
    Intent.STOP_EVERYTHING,
    "acp cycle pause",
)
RESUMPTION = _act(
    RESUME,
    "Resume",
    "Let it go on; an agent that failed begins anew.",
    (),
    Intent.START,
    "acp cycle resume",
)
STOPPING = _act(
    STOP,
    "Stop",
    "End it as failed: the run that is at work is lost. What is done stays, to be resumed.",
    (given.REASON,),
    Intent.STOP,
    'acp cycle stop --reason "No longer wanted"',
    risky=True,
)
ACCEPTANCE = _act(
    ACCEPT,
    "Accept as it is",
    "Take it as it is, failing tests and all: it is completed, what tests showed stays.",
    (given.RECORDED_REASON,),
    Intent.ACCEPT,
    'acp cycle accept --reason "The rest is for later"',
)
REPEAT = _act(
    RERUN,
    "Run an agent again",
    "Have an agent, and those that depend on it, do their work again.",
    (
        given.AGENT,
        given.REASON._replace(title="What to do otherwise", help="Say what to do otherwise.",
                              kind=Kind.LINES),
    ),
    Intent.RETRY,
    "acp cycle rerun vas",
)  # fmt: skip
LIMITING = _act(
    LIMIT,
    "Change the limit",
    "Allow another number of iterations.",
    (
        Field("iterations", "Iterations", "Allow so many in all.", Kind.NUMBER, required=True,
              position=True),
    ),
    Intent.OTHER,
    "acp cycle limit 8",
)  # fmt: skip
