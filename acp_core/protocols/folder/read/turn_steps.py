"""The events with which a participant takes its turn, as the log and the documents stand.

Prompts and diagnoses name them: the latter on every screen, so nothing that loops need is imported
here. Source: folder protocol specification, "Phases" and "Events".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from acp_core.model.turn import Brief
from acp_core.protocols.folder.read import list_summary
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import V2


class _Kind(NamedTuple):
    """An event that ends a turn: the document it names, the documents it needs, what to do."""

    event: str
    doc: str
    needs: tuple[str, ...]
    what: str


_DRAFTING = _Kind("proposal_submitted", "proposal.md", ("proposal.md",), "write proposal.md")

_REVIEWING = _Kind(
    "review_submitted", "review.md", (), "review the proposal and say what must change"
)

_REVISING = _Kind(
    "proposal_revised",
    "proposal.md",
    ("proposal.md",),
    "revise proposal.md so that it answers every required change in review.md",
)

_CLASSIFYING = _Kind(
    "question_classified",
    "readiness.md",
    ("readiness.md", "decisions.md"),
    "write the explicit decisions into decisions.md and classify every open question in "
    "readiness.md",
)

_ACCEPTING = _Kind(
    "decision_accepted",
    "decisions.md",
    (),
    "accept the decisions in decisions.md, if they are explicit",
)

_PASSING = _Kind(
    "readiness_passed",
    "readiness.md",
    ("readiness.md",),
    "clear every blocker in readiness.md and check `Ready to implement`",
)

_COMPLETING = _Kind(
    "completed",
    "conclusion.md",
    ("conclusion.md", "readiness.md"),
    "write conclusion.md, and check in readiness.md every completion gate that is met",
)


def steps(facts: Facts, participant: str) -> tuple[Step, ...]:
    """The events with which ``participant`` takes the present turn, in order; none if not waited for."""
    machine = facts.history.machine
    wait = machine.waits.get(participant)
    if wait is None:
        return ()
    last = facts.history.last
    reply_to = wait.seq or (last.seq if last and last.seq else 1)
    phase, second = machine.phase, facts.dialect == V2
    found: list[Step] = []
    if phase == "drafting":
        if second and not machine.drafted:
            found += _deliverable(facts, "deliverable_drafted", "write", reply_to)
        found.append(_step(facts, _DRAFTING, reply_to))
    elif phase == "reviewing":
        found.append(_step(facts, _REVIEWING, reply_to, draft="review"))
    elif phase == "revising":
        if second:
            revised = _deliverable(facts, "deliverable_revised", "if need be, revise", reply_to)
            found += [step._replace(optional=True) for step in revised]
        found.append(_step(facts, _REVISING, reply_to))
    elif phase == "decision_review":
        if not machine.classified:
            found.append(_step(facts, _CLASSIFYING, reply_to))
        else:
            found.append(_step(facts, _ACCEPTING, reply_to, draft="acceptance"))
    elif phase == "readiness_check":
        if second and not machine.frozen:
            found += _deliverable(facts, "deliverable_frozen", "finish and freeze", reply_to)
        if not machine.passed:
            found.append(_step(facts, _PASSING, reply_to))
        found.append(_step(facts, _COMPLETING, reply_to))
    return tuple(found)


def required(found: tuple[Step, ...]) -> tuple[Step, ...]:
    """The events that a turn cannot do without."""
    return tuple(step for step in found if not step.optional)


def _step(facts: Facts, kind: _Kind, reply_to: int, draft: str = "") -> Step:
    return Step(
        event=kind.event,
        doc=kind.doc,
        needs=tuple(facts.path(name) for name in kind.needs),
        what=kind.what,
        reply_to=reply_to,
        draft=f"{draft}-of-seq-{reply_to}.md" if draft else "",
    )


def _deliverable(facts: Facts, event: str, verb: str, reply_to: int) -> list[Step]:
    """The event of the primary deliverable, where one is declared."""
    primary = facts.primary
    if primary is None or primary.file.path is None:
        return []
    reference = primary.item.reference
    frozen = ", its status being `Status: Frozen`" if event == "deliverable_frozen" else ""
    return [
        Step(
            event=event,
            doc=reference,
            needs=(primary.file.path,),
            what=f"{verb} the primary deliverable {reference}{frozen}",
            reply_to=reply_to,
            role="primary",
        )
    ]


class Step(NamedTuple):
    """One event with which a turn is taken.

    Attributes:
        event: its name; ``doc`` the document that it names.
        needs: paths of the documents that are written before.
        what: what to do before it, in words.
        reply_to: the seq that it answers.
        role: of a deliverable event.
        draft: file name of the text that goes with it and is first written as a draft.
        optional: the turn may be taken without it.
    """

    event: str
    doc: str
    needs: tuple[str, ...]
    what: str
    reply_to: int
    role: str = ""
    draft: str = ""
    optional: bool = False

    def draft_path(self, brief: Brief) -> str:
        """Where its draft is written."""
        return os.path.join(brief.drafts, self.draft)

    def paths(self, brief: Brief) -> tuple[str, ...]:
        """The files that change before the event can be appended."""
        return (*self.needs, self.draft_path(brief)) if self.draft else self.needs


def event_of_turn(facts: Facts) -> str:
    """The event that ends the turn of those who are waited for: the name of its action too."""
    return list_summary.event_of_turn(facts.history.machine, facts.dialect)
