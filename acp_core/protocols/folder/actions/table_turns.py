"""What a person does in a collaboration, described once: each turn, blocking, documents put right.

A turn that is legal now has the name of its event. Source: folder protocol specification, "Events",
"Phases", "Review Format" and "Readiness Gate".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.folder.actions.names import ANSWERING, BLOCK, CHECK, SETTLE
from acp_core.protocols.folder.schema import documents

_ROOM = "acp_core.protocols.folder.actions"
_CLASSES = ", ".join(f"[{word}]" for word in documents.CLASSES)
_CLASSED = f"Each begins with its class: {_CLASSES}; a deferred one ends in `Reason: ...`."
WHO = Field("participant", "Participant", "Who takes this turn.", Kind.CHOICE, required=True)
CURRENT = "Current Proposal"
_PROPOSAL = Field(
    "proposal",
    CURRENT,
    "Stands in proposal.md under this heading; leave it as it is if you edited the file.",
    Kind.LINES,
)


def _turn(
    event: str,
    label: str,
    sentence: str,
    summary: str,
    fields: tuple[Field, ...] = (),
    intent: Intent = Intent.OTHER,
    *,
    risky: bool = False,
) -> ActionSpec:
    """An event as a person's turn; ``summary`` is what the log says where nothing else is given."""
    about = "One short sentence for the log."
    return ActionSpec(
        event,
        label,
        sentence,
        f"{_ROOM}.turns:{event.upper()}.bind",
        (WHO, *fields, Field("summary", "Summary", about, default=summary)),
        intent,
        risky=risky,
    )


REVIEW_SUBMITTED = _turn(
    "review_submitted",
    "Review the proposal",
    "Write a review into review.md and submit it.",
    "Reviewed the proposal.",
    (
        Field("position", "Position", "For or against, and why; a line for each point.", Kind.LINES,
              required=True),
        Field("concerns", "Concerns", "What worries you; a line for each.", Kind.LINES),
        Field("changes", "Required Changes", "What must change before you agree.", Kind.LINES),
        Field("questions", "Questions", "What the owner should answer.", Kind.LINES),
    ),
)  # fmt: skip
DECISION_ACCEPTED = _turn(
    "decision_accepted",
    "Accept the decisions",
    "Accept what stands in decisions.md.",
    "Accepted the decisions.",
    (
        Field(
            "read",
            "I have read decisions.md and agree",
            "Every participant accepts the decisions that stand in decisions.md.",
            Kind.FLAG,
        ),
    ),
    Intent.ACCEPT,
)
DELIVERABLE_DRAFTED = _turn(
    "deliverable_drafted",
    "Declare the deliverable drafted",
    "Say that the primary deliverable is drafted.",
    "Drafted the primary deliverable.",
)
PROPOSAL_SUBMITTED = _turn(
    "proposal_submitted",
    "Submit the proposal",
    "Send proposal.md to the reviewers.",
    "Submitted the proposal for review.",
    (_PROPOSAL,),
)
PROPOSAL_REVISED = _turn(
    "proposal_revised",
    "Revise the proposal",
    "Say that the proposal answers the reviews, and go on to the decisions.",
    "Revised the proposal.",
    (_PROPOSAL,),
)
QUESTION_CLASSIFIED = _turn(
    "question_classified",
    "Classify the open questions",
    "Give each open question in readiness.md its class; acceptances start again.",
    "Classified the open questions.",
    (Field("questions", "Open questions", _CLASSED, Kind.LIST),),
)
DECISION_PROPOSED = _turn(
    "decision_proposed",
    "Propose decisions",
    "Add decisions to decisions.md; questions are then classified again.",
    "Proposed decisions.",
    (
        Field(
            "decisions",
            "Decisions",
            "Added to decisions.md; write what is decided, so that it can be accepted as it stands.",
            Kind.LIST,
        ),
    ),
)
DELIVERABLE_REVISED = _turn(
    "deliverable_revised",
    "Declare the deliverable revised",
    "Say that the primary deliverable changed.",
    "Revised the primary deliverable.",
)
DELIVERABLE_FROZEN = _turn(
    "deliverable_frozen",
    "Freeze the deliverable",
    "Record the primary deliverable's SHA-256: it may not change any more.",
    "Froze the primary deliverable.",
    (Field("set_status", "Set `Status: Frozen` in the deliverable", kind=Kind.FLAG),),
)
READINESS_PASSED = _turn(
    "readiness_passed",
    "Pass readiness",
    "Say that nothing stands in the way of the conclusion.",
    "Readiness passed.",
)
COMPLETED = _turn(
    "completed",
    "Conclude",
    "Write conclusion.md and complete the collaboration. Nothing can follow.",
    "Completed the collaboration.",
    (
        Field(
            "outcome",
            "Outcome",
            "proceed: do it now. do_not_proceed: do not. defer: something must happen first.",
            Kind.CHOICE,
            ("proceed", "do_not_proceed", "defer"),
            required=True,
        ),
        Field("in_short", "In short", "One line beside the outcome."),
    ),
    Intent.DECIDE,
    risky=True,
)
TURNS = (
    REVIEW_SUBMITTED,
    DECISION_ACCEPTED,
    DELIVERABLE_DRAFTED,
    PROPOSAL_SUBMITTED,
    PROPOSAL_REVISED,
    QUESTION_CLASSIFIED,
    DECISION_PROPOSED,
    DELIVERABLE_REVISED,
    DELIVERABLE_FROZEN,
    READINESS_PASSED,
    COMPLETED,
)
"""A person's turns, the most useful first."""
BLOCKING = ActionSpec(
    BLOCK,
    "Block",
    "Stop the collaboration: everybody stops until it is continued in a new folder.",
    f"{_ROOM}.events:blocking",
    (
        WHO._replace(help="On whose behalf; the event is recorded as that participant's."),
        Field(
            "reason",
            "Reason",
            "What stands in the way, in one sentence; agents and people read it.",
            required=True,
        ),
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
)
ANSWER_QUESTION = ActionSpec(
    ANSWERING,
    "Answer a question",
    "Answer what a review asks: your answer is put below the question in review.md.",
    f"{_ROOM}.answering:answering",
    (
        Field("question", "Question", kind=Kind.CHOICE, required=True),
        Field("answer", "Answer", "Stands below the question in review.md.", Kind.LINES, required=True),
    ),
    Intent.ANSWER,
)  # fmt: skip
CHECK_GATES = ActionSpec(
    CHECK,
    "Check a gate",
    "Say that a gate is met: its line is checked, or put in, in its exact words.",
    f"{_ROOM}.readiness:checking",
    intent=Intent.DECIDE,
)
SETTLE_QUESTIONS = ActionSpec(
    SETTLE,
    "Settle open questions",
    "Write down in readiness.md how its open questions are settled.",
    f"{_ROOM}.readiness:settling",
    (Field("questions", "Questions", _CLASSED, Kind.LIST),),
    Intent.DECIDE,
)
