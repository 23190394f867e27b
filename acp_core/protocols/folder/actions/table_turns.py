"""What a person does in a collaboration, described once: each turn, blocking, documents put right.

A turn that is legal now has the name of its event. Source: folder protocol specification, "Events",
"Phases", "Review Format" and "Readiness Gate".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.act_names import ANSWER_QUESTION as ANSWERING
from acp_core.protocols.folder.schema.act_names import BLOCK
from acp_core.protocols.folder.schema.act_names import CHECK_GATES as CHECK
from acp_core.protocols.folder.schema.act_names import SETTLE_QUESTIONS as SETTLE

_ROOM = "acp_core.protocols.folder.actions"
_CLASSES = ", ".join(f"[{word}]" for word in documents.CLASSES)
_CLASSED = f"Each begins with its class: {_CLASSES}; a deferred one ends in `Reason: ...`."
WHO = Field(
    "participant",
    "Participant",
    "The participant that takes this turn.",
    Kind.CHOICE,
)
"""Always one of them, see `common.participants`."""
CURRENT = "Current Proposal"
_PROPOSAL = Field(
    "proposal",
    CURRENT,
    "The text under this heading in proposal.md; leave it unchanged if you edited the file.",
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
        Field("position", "Position", "For or against, and why; one line per point.", Kind.LINES,
              required=True),
        Field("concerns", "Concerns", "Your concerns; one line each.", Kind.LINES),
        Field("changes", "Required Changes", "Changes required before you agree; one line each.", Kind.LINES),
        Field("questions", "Questions", "Questions to the owner; one line each.", Kind.LINES),
    ),
)  # fmt: skip
DECISION_ACCEPTED = _turn(
    "decision_accepted",
    "Accept the decisions",
    "Accept the decisions in decisions.md.",
    "Accepted the decisions.",
    (
        Field(
            "read",
            "I have read decisions.md and agree",
            "Every participant must accept the decisions in decisions.md.",
            Kind.FLAG,
        ),
    ),
    Intent.ACCEPT,
)
DELIVERABLE_DRAFTED = _turn(
    "deliverable_drafted",
    "Declare the deliverable drafted",
    "Declare that the primary deliverable is drafted.",
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
    "Declare that the proposal answers the reviews, and move to the decisions.",
    "Revised the proposal.",
    (_PROPOSAL,),
)
QUESTION_CLASSIFIED = _turn(
    "question_classified",
    "Classify the open questions",
    "Classify each open question in readiness.md; acceptance starts over.",
    "Classified the open questions.",
    (Field("questions", "Open questions", _CLASSED, Kind.LIST),),
)
DECISION_PROPOSED = _turn(
    "decision_proposed",
    "Propose decisions",
    "Add decisions to decisions.md; questions must then be classified again.",
    "Proposed decisions.",
    (
        Field(
            "decisions",
            "Decisions",
            "Added to decisions.md; state each decision so that it can be accepted as written.",
            Kind.LIST,
        ),
    ),
)
DELIVERABLE_REVISED = _turn(
    "deliverable_revised",
    "Declare the deliverable revised",
    "Declare that the primary deliverable changed.",
    "Revised the primary deliverable.",
)
DELIVERABLE_FROZEN = _turn(
    "deliverable_frozen",
    "Freeze the deliverable",
    "Record the primary deliverable's SHA-256; the file must not change afterwards.",
    "Froze the primary deliverable.",
    (Field("set_status", "Set `Status: Frozen` in the deliverable", kind=Kind.FLAG),),
)
READINESS_PASSED = _turn(
    "readiness_passed",
    "Pass readiness",
    "Declare that nothing blocks the conclusion.",
    "Readiness passed.",
)
COMPLETED = _turn(
    "completed",
    "Conclude",
    "Write conclusion.md and complete the collaboration. No event can follow.",
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
        Field("in_short", "In short", "One line next to the outcome."),
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
    "Stop the collaboration for all participants until it is continued in a new folder.",
    f"{_ROOM}.events:blocking",
    (
        WHO._replace(
            help="Participant on whose behalf you act; the event is recorded under that name."
        ),
        Field(
            "reason",
            "Reason",
            "The blocker, in one sentence; agents and people read it.",
            required=True,
            metavar="TEXT",
        ),
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
)
ANSWER_QUESTION = ActionSpec(
    ANSWERING,
    "Answer a question",
    "Answer a question of a review: writes your answer below the question in review.md.",
    f"{_ROOM}.answering:answering",
    (
        Field("question", "Question", kind=Kind.CHOICE, required=True),
        Field("answer", "Answer", "Written below the question in review.md.", Kind.LINES, required=True),
    ),
    Intent.ANSWER,
)  # fmt: skip
CHECK_GATES = ActionSpec(
    CHECK,
    "Check a gate",
    "Mark a gate as met: checks its line, or adds the line in its exact words.",
    f"{_ROOM}.readiness:checking",
    intent=Intent.DECIDE,
)
SETTLE_QUESTIONS = ActionSpec(
    SETTLE,
    "Resolve open questions",
    "Record in readiness.md how the open questions are resolved.",
    f"{_ROOM}.readiness:settling",
    (Field("questions", "Questions", _CLASSED, Kind.LIST, required=True),),
    Intent.DECIDE,
)
