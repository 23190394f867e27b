"""A person's turn: for each event, what is asked, and which event and documents follow from it.

Source: folder protocol specification, "Phases". Every event that is legal now has a form, so
that a person can take part without leaving the screen.
"""

from __future__ import annotations

from typing import Any

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions import table_turns, writing
from acp_core.protocols.folder.actions.common import title
from acp_core.protocols.folder.actions.events import Compose, Turn
from acp_core.protocols.folder.schema import deliverables, documents
from acp_core.protocols.folder.write.append import Request
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.gates import document_text
from acp_core.protocols.folder.write.opened import Opened
from acp_core.protocols.kit.binding import Narrowed
from acp_core.protocols.kit.values import Values


def _request(
    opened: Opened,
    answers: Values,
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

_CURRENT = table_turns.CURRENT


def _proposal(opened: Opened) -> Narrowed:
    text = writing.section(_safe_text(opened, "proposal.md"), _CURRENT)
    return {"proposal": {"default": text}}


def _propose(event: str) -> Compose:
    def compose(opened: Opened, answers: Values) -> Request:
        def change(text: str) -> str:
            new = answers.proposal.strip()
            if not new or new == writing.section(text, _CURRENT):
                return text
            return writing.with_section(text, _CURRENT, new)

        edits = (writing.edit(opened.folder, "proposal.md", change),)
        return _request(opened, answers, event, "proposal.md", edits)

    return compose


# a review


def _review(opened: Opened, answers: Values) -> Request:
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


def _decide(opened: Opened, answers: Values) -> Request:
    reference = _reference(opened)
    edit = writing.edit(
        opened.folder,
        "decisions.md",
        lambda text: writing.with_decisions(text, answers.decisions, reference),
    )
    return _request(opened, answers, "decision_proposed", "decisions.md", (edit,))


def _accept(opened: Opened, answers: Values) -> Request:
    if not answers.read:
        raise Refused("read decisions.md first, then confirm that you agree")
    classified = opened.machine.last.get("question_classified", opened.last_seq)
    return _request(opened, answers, "decision_accepted", "decisions.md", reply_to=classified)


# questions and readiness


def _questions(opened: Opened) -> Narrowed:
    return {"questions": {"default": writing.items(_safe_text(opened, "readiness.md"))}}


def _classify(opened: Opened, answers: Values) -> Request:
    edit = writing.edit(
        opened.folder, "readiness.md", lambda text: writing.with_items(text, answers.questions)
    )
    return _request(opened, answers, "question_classified", "readiness.md", (edit,))


def _switch(name: str, text: str) -> Field:
    return Field(name, title(text), "Checked in readiness.md.", Kind.FLAG)


def _gates(opened: Opened) -> tuple[Field, ...]:
    """A switch for each gate that is not checked yet, and one for "Ready to implement"."""
    scan = documents.scan_readiness(_safe_text(opened, "readiness.md"))
    ready = [_switch("ready", documents.READY)] if scan.ready is None else []
    gates = enumerate(schema.gate_texts(opened.protocol), 1)
    unmet = [(number, gate) for number, gate in gates if gate not in scan.checked]
    return (*ready, *(_switch(f"gate_{number}", f"Met: {gate}") for number, gate in unmet))


def _checked(opened: Opened, answers: Values) -> Edit:
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


def _pass(opened: Opened, answers: Values) -> Request:
    edits = (_checked(opened, answers),)
    return _request(opened, answers, "readiness_passed", "readiness.md", edits)


# the conclusion


def _parts(opened: Opened) -> dict[str, str]:
    """Field name -> heading of each section of conclusion.md but the outcome."""
    titles = documents.conclusion_sections(opened.dialect)[1:]
    return {title.lower().replace(" ", "_").replace("-", "_"): title for title in titles}


def _sections(opened: Opened) -> tuple[Field, ...]:
    """A text for each section of conclusion.md, and the gates that are not met yet."""
    text = _safe_text(opened, "conclusion.md")
    found = (_section(opened, text, name, heading) for name, heading in _parts(opened).items())
    return (*found, *_gates(opened))


def _section(opened: Opened, text: str, name: str, heading: str) -> Field:
    if heading == "Rationale":
        about = "Why this is the answer to the objective."
        return Field(name, heading, about, Kind.LINES, required=True)
    begun = writing.section(text, heading)
    if heading == "Deliverable Receipt" and not begun:
        begun = f"- Primary deliverable: `{_reference(opened)}`"
    return Field(name, heading, kind=Kind.LINES, default=begun)


def _complete(opened: Opened, answers: Values) -> Request:
    parts = {title: getattr(answers, name) for name, title in _parts(opened).items()}
    text = writing.conclusion(answers.outcome, answers.in_short, parts)
    edits = (
        _checked(opened, answers),
        writing.edit(opened.folder, "conclusion.md", lambda _: text),
    )
    return _request(opened, answers, "completed", "conclusion.md", edits)


# the primary deliverable (dialect v2)


def _deliver(event: str) -> Compose:
    def compose(opened: Opened, answers: Values) -> Request:
        return _request(opened, answers, event, _reference(opened), role="primary")

    return compose


def _freeze(opened: Opened, answers: Values) -> Request:
    edits: tuple[Edit, ...] = ()
    if answers.set_status:
        declaration = deliverables.declare(opened.protocol)
        root = deliverables.root_of(declaration, opened.folder)
        primary = declaration.primary
        path = deliverables.path_of(declaration, primary, root) if primary else None
        if path is None or primary is None:
            raise Refused(root.problem or "the primary deliverable is outside its folder")
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


REVIEW_SUBMITTED = Turn(table_turns.REVIEW_SUBMITTED, _review)
DECISION_ACCEPTED = Turn(table_turns.DECISION_ACCEPTED, _accept)
DELIVERABLE_DRAFTED = Turn(table_turns.DELIVERABLE_DRAFTED, _deliver("deliverable_drafted"))
PROPOSAL_SUBMITTED = Turn(table_turns.PROPOSAL_SUBMITTED, _propose("proposal_submitted"), _proposal)
PROPOSAL_REVISED = Turn(table_turns.PROPOSAL_REVISED, _propose("proposal_revised"), _proposal)
QUESTION_CLASSIFIED = Turn(table_turns.QUESTION_CLASSIFIED, _classify, _questions)
DECISION_PROPOSED = Turn(table_turns.DECISION_PROPOSED, _decide)
DELIVERABLE_REVISED = Turn(table_turns.DELIVERABLE_REVISED, _deliver("deliverable_revised"))
DELIVERABLE_FROZEN = Turn(table_turns.DELIVERABLE_FROZEN, _freeze)
READINESS_PASSED = Turn(table_turns.READINESS_PASSED, _pass, more=_gates)
COMPLETED = Turn(table_turns.COMPLETED, _complete, more=_sections)
