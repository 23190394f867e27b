"""A person's turn: for each event, what is asked, and which event and documents follow from it.

Source: folder protocol specification, "Phases". Every event that is legal now has a form, so
that a person can take part without leaving the screen. With it, events that are appended for
somebody else, or as they are asked for, and `blocked`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Field, Kind
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.folder.acts import documents as acts_documents
from acp_core.protocols.folder.acts import table, table_agents
from acp_core.protocols.folder.acts.agents import request_of
from acp_core.protocols.folder.acts.opened import (
    OpenFolder,
    open_folder,
    participants,
    problems,
    title,
    who_may,
)
from acp_core.protocols.folder.acts.previewing import preview
from acp_core.protocols.folder.acts.table import BLOCKING
from acp_core.protocols.folder.schema import deliverables, documents, records
from acp_core.protocols.folder.write.append import RACED, Request, append
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.gates import document_text
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

Compose = Callable[[Opened, Values], Request]
"""Makes the event, and what changes with it, of what was given."""


def _as_described(opened: Opened) -> Narrowed:
    return {}


def _nothing_more(opened: Opened) -> tuple[Field, ...]:
    return ()


class Turn(NamedTuple):
    """One kind of event that a person can append.

    ``narrow`` is what is otherwise than in the description now, ``more`` is asked besides (the
    gates of this collaboration), ``compose`` makes the request.
    """

    spec: ActionSpec
    compose: Compose
    narrow: Callable[[Opened], Narrowed] = _as_described
    more: Callable[[Opened], tuple[Field, ...]] = _nothing_more

    def bind(self, context: Context, now: datetime) -> Action:
        """The turn as it can be taken now: a person's own, or in an agent's place.

        Raises:
            Refused: nobody may take it now, or the collaboration cannot be read.
        """
        here = open_folder(context, now)
        allowed = _allowed(here, self.spec.name)
        people = [name for name in allowed if name in here.humans]
        ordered = [*people, *(name for name in allowed if name not in people)]
        *first, summary = self.spec.fields
        action = _appending(
            self.spec,
            here,
            self.compose,
            (*first, *self.more(here.opened), summary),
            {**self.narrow(here.opened), "participant": participants(ordered)},
            here.humans,
        )
        return action if people else _in_its_place(action, ordered[0])


def _allowed(here: OpenFolder, event: str) -> list[str]:
    """Who may append an event now.

    Raises:
        Refused: nobody may; the message says why.
    """
    allowed = who_may(here.opened, event)
    if not allowed:
        found = [each.text for name in here.opened.participants[:1]
                 for each in problems(here.opened, event, name)]  # fmt: skip
        raise Refused(found[0] if found else f"{event} is not allowed now")
    return allowed


def _in_its_place(action: Action, name: str) -> Action:
    """A turn that no person may take: it is taken in an agent's place."""
    return replace(
        action,
        label=f"Act as {clean_name(name, 40)}: {action.label.lower()}",
        sentence=f"{action.sentence} No human participant can do this: you act in its place.",
        risky=True,
    )


def _appending(
    spec: ActionSpec,
    here: OpenFolder,
    compose: Compose,
    fields: tuple[Field, ...],
    narrowed: Narrowed,
    humans: frozenset[str] | None,
) -> Action:
    folder = here.opened.folder

    def show(values: Values) -> Preview:
        opened = open_unlocked(folder)
        return preview(compose(opened, values), opened, humans)

    def perform(values: Values) -> Outcome:
        return write(compose(open_unlocked(folder), values))

    return bound(spec, here, show, perform, fields=fields, narrowed=narrowed)


def blocking(context: Context, now: datetime) -> Action:
    """Stop the collaboration, on behalf of a participant.

    Raises:
        Refused: it is stopped already, or has ended, or cannot be read.
    """
    here = open_folder(context, now)
    allowed, machine = _allowed(here, "blocked"), here.opened.machine
    if machine.phase == "blocked":
        raise Refused("the collaboration is blocked already")
    waited = [name for name in machine.waiting if name in allowed]
    first = [name for name in allowed if name in here.humans] or waited
    ordered = [*first, *(name for name in allowed if name not in first)]

    def compose(opened: Opened, values: Values) -> Request:
        return _blocked(opened, values, here.humans)

    return _appending(
        BLOCKING, here, compose, BLOCKING.fields, {"participant": participants(ordered)}, None
    )


def _blocked(opened: Opened, values: Values, humans: frozenset[str]) -> Request:
    reason = values.reason.strip()
    if not reason:
        raise Refused("describe the blocker")
    name = values.participant
    if name not in humans:
        reason = f"{reason} (said by a human coordinator on behalf of {name})"
    return Request(
        folder=opened.folder,
        participant=name,
        event="blocked",
        summary=reason,
        reply_to=opened.last_seq or None,
        expect_seq=opened.last_seq,
    )


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
    if opened.dialect != records.V2:
        return ""
    return deliverables.declare(opened.protocol).reference


# the proposal

_CURRENT = table.CURRENT


def _proposal(opened: Opened) -> Narrowed:
    text = acts_documents.section(_safe_text(opened, "proposal.md"), _CURRENT)
    return {"proposal": {"default": text}}


def _propose(event: str) -> Compose:
    def compose(opened: Opened, answers: Values) -> Request:
        def change(text: str) -> str:
            new = answers.proposal.strip()
            if not new or new == acts_documents.section(text, _CURRENT):
                return text
            return acts_documents.with_section(text, _CURRENT, new)

        edits = (acts_documents.plan_edit(opened.folder, "proposal.md", change),)
        return _request(opened, answers, event, "proposal.md", edits)

    return compose


# a review


def _review(opened: Opened, answers: Values) -> Request:
    submitted = opened.machine.last.get("proposal_submitted", opened.last_seq)
    text = acts_documents.review(
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
    edit = acts_documents.plan_edit(
        opened.folder,
        "decisions.md",
        lambda text: acts_documents.with_decisions(text, answers.decisions, reference),
    )
    return _request(opened, answers, "decision_proposed", "decisions.md", (edit,))


def _accept(opened: Opened, answers: Values) -> Request:
    if not answers.read:
        raise Refused("read decisions.md first, then confirm that you agree")
    classified = opened.machine.last.get("question_classified", opened.last_seq)
    return _request(opened, answers, "decision_accepted", "decisions.md", reply_to=classified)


# questions and readiness


def _questions(opened: Opened) -> Narrowed:
    return {"questions": {"default": acts_documents.list_items(_safe_text(opened, "readiness.md"))}}


def _classify(opened: Opened, answers: Values) -> Request:
    edit = acts_documents.plan_edit(
        opened.folder,
        "readiness.md",
        lambda text: acts_documents.with_items(text, answers.questions),
    )
    return _request(opened, answers, "question_classified", "readiness.md", (edit,))


def _switch(name: str, text: str) -> Field:
    return Field(name, title(text), "Checked in readiness.md.", Kind.FLAG)


def _gates(opened: Opened) -> tuple[Field, ...]:
    """A switch for each gate that is not checked yet, and one for "Ready to implement"."""
    scan = documents.scan_readiness(_safe_text(opened, "readiness.md"))
    ready = [_switch("ready", documents.READY)] if scan.ready is None else []
    gates = enumerate(records.gate_texts(opened.protocol), 1)
    unmet = [(number, gate) for number, gate in gates if gate not in scan.checked]
    return (*ready, *(_switch(f"gate_{number}", f"Met: {gate}") for number, gate in unmet))


def _checked(opened: Opened, answers: Values) -> Edit:
    """readiness.md with what the person says is met."""
    met = [
        gate
        for number, gate in enumerate(records.gate_texts(opened.protocol), 1)
        if getattr(answers, f"gate_{number}", False)
    ]

    def change(text: str) -> str:
        text = acts_documents.with_boxes(text, met, "Completion Gates")
        ready = [documents.READY] if getattr(answers, "ready", False) else []
        return acts_documents.with_boxes(text, ready, "Final Design Document Checklist")

    return acts_documents.plan_edit(opened.folder, "readiness.md", change)


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
    begun = acts_documents.section(text, heading)
    if heading == "Deliverable Receipt" and not begun:
        begun = f"- Primary deliverable: `{_reference(opened)}`"
    return Field(name, heading, kind=Kind.LINES, default=begun)


def _complete(opened: Opened, answers: Values) -> Request:
    parts = {title: getattr(answers, name) for name, title in _parts(opened).items()}
    text = acts_documents.conclusion(answers.outcome, answers.in_short, parts)
    edits = (
        _checked(opened, answers),
        acts_documents.plan_edit(opened.folder, "conclusion.md", lambda _: text),
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
        edits = (acts_documents.plan_edit(opened.folder, primary.reference, _as_frozen, path),)
    reference = _reference(opened)
    return _request(opened, answers, "deliverable_frozen", reference, edits, role="primary")


def _as_frozen(text: str) -> str:
    line = deliverables.scan(text).status_line
    if line is None:
        raise Refused("the primary deliverable has no `Status:` line")
    lines = text.split("\n")
    lines[line - 1] = "Status: Frozen"
    return "\n".join(lines)


REVIEW_SUBMITTED = Turn(table.REVIEW_SUBMITTED, _review)
DECISION_ACCEPTED = Turn(table.DECISION_ACCEPTED, _accept)
DELIVERABLE_DRAFTED = Turn(table.DELIVERABLE_DRAFTED, _deliver("deliverable_drafted"))
PROPOSAL_SUBMITTED = Turn(table.PROPOSAL_SUBMITTED, _propose("proposal_submitted"), _proposal)
PROPOSAL_REVISED = Turn(table.PROPOSAL_REVISED, _propose("proposal_revised"), _proposal)
QUESTION_CLASSIFIED = Turn(table.QUESTION_CLASSIFIED, _classify, _questions)
DECISION_PROPOSED = Turn(table.DECISION_PROPOSED, _decide)
DELIVERABLE_REVISED = Turn(table.DELIVERABLE_REVISED, _deliver("deliverable_revised"))
DELIVERABLE_FROZEN = Turn(table.DELIVERABLE_FROZEN, _freeze)
READINESS_PASSED = Turn(table.READINESS_PASSED, _pass, more=_gates)
COMPLETED = Turn(table.COMPLETED, _complete, more=_sections)


def appending(context: Context, now: datetime) -> Action:
    """Append an event; what a person does is offered by its own name instead."""
    here = open_folder(context, now)
    narrowed = {
        "participant": participants(here.opened.participants) | {"default": None},
        "event": {"choices": records.events_of(here.opened.dialect)},
    }

    def request(values: Values) -> Request:
        values.folder = here.opened.folder
        return request_of(values)

    return bound(
        table_agents.APPEND,
        here,
        lambda values: preview(request(values)),
        lambda values: write(request(values)),
        narrowed=narrowed,
        offered=False,
    )


def write(request: Request) -> Outcome:
    """Append an event, and say how that went.

    Raises:
        Refused: it is not allowed.
        OSError: it cannot be written.
    """
    appended = append(request)
    entry = appended.entry
    sentence = f"Appended seq {entry.name}: {entry.event} from {entry.sender}."
    if appended.existing:
        sentence = f"Already in the log: seq {entry.name}."
    if appended.raced:
        sentence += (
            f" A program without a lock wrote at the same moment (exit code {RACED}): validate."
        )
    return Outcome(OutcomeState.DONE, safe(" ".join([sentence, *appended.warnings])))
