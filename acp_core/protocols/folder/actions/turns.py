"""A person's turn: for each event, what is asked, and which event and documents follow from it.

Source: folder protocol specification, "Phases". Every event that is legal now has a form, so
that a person can take part without leaving the screen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import Field

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions import writing
from acp_core.protocols.folder.schema import deliverables, documents
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.append import Request
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.gates import document_text
from acp_core.protocols.folder.write.opened import Opened

Fields = dict[str, Any]
"""Name -> (type, pydantic field), as `pydantic.create_model` takes them."""

Answers = Any
"""An instance of the model made from `Fields`."""

LINES: dict[str, Any] = {"format": "multiline"}


class Turn(NamedTuple):
    """One kind of event that a person can append.

    ``fields`` are asked besides participant and summary; ``compose`` makes the request.
    """

    event: str
    label: str
    sentence: str
    summary: str
    fields: Callable[[Opened], Fields]
    compose: Callable[[Opened, Answers], Request]


def _text(title: str, description: str, default: str = "") -> tuple[Any, Any]:
    return str, Field(default, title=title, description=description, json_schema_extra=LINES)


def _wanted(title: str, description: str) -> tuple[Any, Any]:
    return str, Field(min_length=1, title=title, description=description, json_schema_extra=LINES)


def _lines(title: str, description: str, default: list[str]) -> tuple[Any, Any]:
    return list[str], Field(default, title=title, description=description)


def _switch(title: str, description: str = "") -> tuple[Any, Any]:
    return bool, Field(False, title=title, description=description)


def _request(
    opened: Opened,
    answers: Answers,
    event: str,
    doc: str | None,
    edits: tuple[Edit, ...] = (),
    **more: Any,
) -> Request:
    return Request(
        folder=opened.folder,
        participant=answers.participant,
        event=event,
        summary=answers.summary,
        doc=doc,
        reply_to=more.pop("reply_to", opened.last_seq),
        edits=tuple(edit for edit in edits if edit.before != edit.after),
        expect_seq=opened.last_seq,
        **more,
    )


def _safe_text(opened: Opened, name: str) -> str:
    """A document's text for a form to begin with; "" where it cannot be read."""
    try:
        return document_text(opened.folder, name)
    except Refused:
        return ""


def _reference(opened: Opened) -> str:
    """The primary deliverable's reference, "" in dialect v1."""
    if opened.dialect != schema.V2:
        return ""
    return deliverables.declare(opened.protocol).reference


# the proposal

_CURRENT = "Current Proposal"


def _proposal_fields(opened: Opened) -> Fields:
    text = writing.section(_safe_text(opened, "proposal.md"), _CURRENT)
    about = "Stands in proposal.md under this heading; leave it as it is if you edited the file."
    return {"proposal": _text(_CURRENT, about, text)}


def _propose(event: str) -> Callable[[Opened, Answers], Request]:
    def compose(opened: Opened, answers: Answers) -> Request:
        def change(text: str) -> str:
            new = answers.proposal.strip()
            if not new or new == writing.section(text, _CURRENT):
                return text
            return writing.with_section(text, _CURRENT, new)

        edits = (writing.edit(opened.folder, "proposal.md", change),)
        return _request(opened, answers, event, "proposal.md", edits)

    return compose


# a review


def _review_fields(opened: Opened) -> Fields:
    return {
        "position": _wanted("Position", "For or against, and why; a line for each point."),
        "concerns": _text("Concerns", "What worries you; a line for each."),
        "changes": _text("Required Changes", "What must change before you agree."),
        "questions": _text("Questions", "What the owner should answer."),
    }


def _review(opened: Opened, answers: Answers) -> Request:
    submitted = opened.machine.last.get("proposal_submitted", opened.last_seq)
    text = writing.review(
        submitted,
        answers.position,
        answers.concerns,
        answers.changes,
        answers.questions,
        reference=_reference(opened),
    )
    return _request(
        opened, answers, "review_submitted", "review.md", reply_to=submitted, review=text
    )


# decisions


def _decision_fields(opened: Opened) -> Fields:
    about = "Added to decisions.md; write what is decided, so that it can be accepted as it stands."
    return {"decisions": _lines("Decisions", about, [])}


def _decide(opened: Opened, answers: Answers) -> Request:
    reference = _reference(opened)
    edit = writing.edit(
        opened.folder,
        "decisions.md",
        lambda text: writing.with_decisions(text, answers.decisions, reference),
    )
    return _request(opened, answers, "decision_proposed", "decisions.md", (edit,))


def _acceptance_fields(opened: Opened) -> Fields:
    about = "Every participant accepts the decisions that stand in decisions.md."
    return {"read": _switch("I have read decisions.md and agree", about)}


def _accept(opened: Opened, answers: Answers) -> Request:
    if not answers.read:
        raise Refused("read decisions.md first, and say that you agree")
    classified = opened.machine.last.get("question_classified", opened.last_seq)
    return _request(opened, answers, "decision_accepted", "decisions.md", reply_to=classified)


# questions and readiness


def _question_fields(opened: Opened) -> Fields:
    words = ", ".join(f"[{word}]" for word in documents.CLASSES)
    about = f"Each begins with its class: {words}; a deferred one ends in `Reason: ...`."
    return {
        "questions": _lines(
            "Open questions", about, writing.items(_safe_text(opened, "readiness.md"))
        )
    }


def _classify(opened: Opened, answers: Answers) -> Request:
    edit = writing.edit(
        opened.folder, "readiness.md", lambda text: writing.with_items(text, answers.questions)
    )
    return _request(opened, answers, "question_classified", "readiness.md", (edit,))


def _gate_fields(opened: Opened) -> Fields:
    """A switch for each gate that is not checked yet, and one for "Ready to implement"."""
    scan = documents.scan_readiness(_safe_text(opened, "readiness.md"))
    fields: Fields = {}
    if scan.ready is None:
        fields["ready"] = _switch(documents.READY, "Checked in readiness.md.")
    for number, gate in enumerate(schema.gate_texts(opened.protocol), 1):
        if gate not in scan.checked:
            fields[f"gate_{number}"] = _switch(f"Met: {gate}", "Checked in readiness.md.")
    return fields


def _checked(opened: Opened, answers: Answers) -> Edit:
    """readiness.md with what the person says is met."""
    met = [
        gate
        for number, gate in enumerate(schema.gate_texts(opened.protocol), 1)
        if getattr(answers, f"gate_{number}", False)
    ]

    def change(text: str) -> str:
        text = writing.with_boxes(text, met, "Completion Gates")
        ready = [documents.READY] if getattr(answers, "ready", False) else []
        return writing.with_boxes(text, ready, "Final Design Document Checklist")

    return writing.edit(opened.folder, "readiness.md", change)


def _pass(opened: Opened, answers: Answers) -> Request:
    edits = (_checked(opened, answers),)
    return _request(opened, answers, "readiness_passed", "readiness.md", edits)


# the conclusion


def _parts(opened: Opened) -> dict[str, str]:
    """Field name -> heading of each section of conclusion.md but the outcome."""
    titles = documents.conclusion_sections(opened.dialect)[1:]
    return {title.lower().replace(" ", "_").replace("-", "_"): title for title in titles}


def _conclusion_fields(opened: Opened) -> Fields:
    from typing import Literal

    text = _safe_text(opened, "conclusion.md")
    about = "proceed: do it now. do_not_proceed: do not. defer: something must happen first."
    outcome = Literal["proceed", "do_not_proceed", "defer"]
    fields: Fields = {
        "outcome": (outcome, Field(title="Outcome", description=about)),
        "in_short": (str, Field("", title="In short", description="One line beside the outcome.")),
    }
    reference = _reference(opened)
    for name, title in _parts(opened).items():
        begun = writing.section(text, title)
        if title == "Deliverable Receipt" and not begun:
            begun = f"- Primary deliverable: `{reference}`"
        if title == "Rationale":
            fields[name] = _wanted(title, "Why this is the answer to the objective.")
        else:
            fields[name] = _text(title, "", begun)
    return fields | _gate_fields(opened)


def _complete(opened: Opened, answers: Answers) -> Request:
    parts = {title: getattr(answers, name) for name, title in _parts(opened).items()}
    text = writing.conclusion(answers.outcome, answers.in_short, parts)
    edits = (
        _checked(opened, answers),
        writing.edit(opened.folder, "conclusion.md", lambda _: text),
    )
    return _request(opened, answers, "completed", "conclusion.md", edits)


# the primary deliverable (dialect v2)


def _nothing(opened: Opened) -> Fields:
    return {}


def _deliver(event: str) -> Callable[[Opened, Answers], Request]:
    def compose(opened: Opened, answers: Answers) -> Request:
        return _request(opened, answers, event, _reference(opened), role="primary")

    return compose


def _freeze_fields(opened: Opened) -> Fields:
    return {"set_status": _switch("Set `Status: Frozen` in the deliverable")}


def _freeze(opened: Opened, answers: Answers) -> Request:
    edits: tuple[Edit, ...] = ()
    if answers.set_status:
        declaration = deliverables.declare(opened.protocol)
        root = deliverables.root_of(declaration, opened.folder)
        primary = declaration.primary
        path = deliverables.path_of(declaration, primary, root) if primary else None
        if path is None or primary is None:
            raise Refused(root.problem or "the primary deliverable lies outside its folder")
        edits = (writing.edit(opened.folder, primary.reference, _as_frozen, path),)
    reference = _reference(opened)
    return _request(opened, answers, "deliverable_frozen", reference, edits, role="primary")


def _as_frozen(text: str) -> str:
    line = deliverables.scan(text).status_line
    if line is None:
        raise Refused("the primary deliverable has no `Status:` line")
    lines = text.split("\n")
    lines[line - 1] = "Status: Frozen"
    return "\n".join(lines)


TURNS = (
    Turn(
        "review_submitted",
        "Review the proposal",
        "Write a review into review.md and submit it.",
        "Reviewed the proposal.",
        _review_fields,
        _review,
    ),
    Turn(
        "decision_accepted",
        "Accept the decisions",
        "Accept what stands in decisions.md.",
        "Accepted the decisions.",
        _acceptance_fields,
        _accept,
    ),
    Turn(
        "deliverable_drafted",
        "Declare the deliverable drafted",
        "Say that the primary deliverable is drafted.",
        "Drafted the primary deliverable.",
        _nothing,
        _deliver("deliverable_drafted"),
    ),
    Turn(
        "proposal_submitted",
        "Submit the proposal",
        "Send proposal.md to the reviewers.",
        "Submitted the proposal for review.",
        _proposal_fields,
        _propose("proposal_submitted"),
    ),
    Turn(
        "proposal_revised",
        "Revise the proposal",
        "Say that the proposal answers the reviews, and go on to the decisions.",
        "Revised the proposal.",
        _proposal_fields,
        _propose("proposal_revised"),
    ),
    Turn(
        "question_classified",
        "Classify the open questions",
        "Give each open question in readiness.md its class; acceptances start again.",
        "Classified the open questions.",
        _question_fields,
        _classify,
    ),
    Turn(
        "decision_proposed",
        "Propose decisions",
        "Add decisions to decisions.md; questions are then classified again.",
        "Proposed decisions.",
        _decision_fields,
        _decide,
    ),
    Turn(
        "deliverable_revised",
        "Declare the deliverable revised",
        "Say that the primary deliverable changed.",
        "Revised the primary deliverable.",
        _nothing,
        _deliver("deliverable_revised"),
    ),
    Turn(
        "deliverable_frozen",
        "Freeze the deliverable",
        "Record the primary deliverable's SHA-256: it may not change any more.",
        "Froze the primary deliverable.",
        _freeze_fields,
        _freeze,
    ),
    Turn(
        "readiness_passed",
        "Pass readiness",
        "Say that nothing stands in the way of the conclusion.",
        "Readiness passed.",
        _gate_fields,
        _pass,
    ),
    Turn(
        "completed",
        "Conclude",
        "Write conclusion.md and complete the collaboration. Nothing can follow.",
        "Completed the collaboration.",
        _conclusion_fields,
        _complete,
    ),
)
