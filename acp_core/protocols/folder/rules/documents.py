"""Rules about review.md, readiness.md and conclusion.md, against what the log says was done.

Source: folder protocol specification, "Review Format", "Readiness Gate" and "Final
Conclusion". Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rules.finding import ERROR, SHOWN, WARNING, Finding, left_out
from acp_core.protocols.folder.schema.documents import conclusion_sections

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts
    from acp_core.protocols.folder.schema.documents import Conclusion, Readiness

REVIEW, READINESS, CONCLUSION = "review.md", "readiness.md", "conclusion.md"


def reviews_have_headings(facts: Facts) -> Iterator[Finding]:
    """Every review in the log has its heading, every heading its review."""
    review = facts.review
    if review is None:
        return
    unheaded = facts.pairing.without_heading
    for entry in unheaded[:SHOWN]:
        text = f"seq {entry.name}: review_submitted requires matching review.md heading"
        yield Finding("ACP301", text, file=REVIEW, seq=entry.seq)
    if len(unheaded) > SHOWN:
        yield left_out("ACP301", len(unheaded) - SHOWN, ERROR, REVIEW)
    for label, line in review.huge:
        text = f"review.md heading seq {label}: no matching event"
        yield Finding("ACP302", text, file=REVIEW, line=line)
    for heading, event, author in facts.pairing.without_review:
        name = f"review.md heading seq {heading.seq}"
        if not event:
            yield Finding("ACP302", f"{name}: no matching event", file=REVIEW, line=heading.line)
        elif event != "review_submitted":
            text = f"{name}: matching event is {event}, not review_submitted"
            yield Finding("ACP303", text, file=REVIEW, line=heading.line, seq=heading.seq)
        else:
            text = (
                f"{name}: participant {heading.participant!r} does not match event from {author!r}"
            )
            yield Finding("ACP304", text, file=REVIEW, line=heading.line, seq=heading.seq)


def ready_for_acceptance(facts: Facts) -> Iterator[Finding]:
    """Nothing in readiness.md speaks against a decision that was accepted."""
    readiness = facts.readiness
    if readiness is not None and facts.history.machine.accepted_ever:
        yield from open_items(readiness, "decision_accepted")


def open_items(readiness: Readiness, event: str) -> Iterator[Finding]:
    """What must not stand in readiness.md before ``event``."""
    later = event != "decision_accepted"
    when = "readiness_passed or completed" if later else "decision_accepted"
    if readiness.blocking:
        text = f"blocking readiness items must be cleared before {when}"
        yield Finding("ACP310", text, file=READINESS, line=readiness.blocking[0].line)
    if readiness.unresolved:
        text = f"unresolved readiness questions must be classified before {when}"
        yield Finding("ACP311", text, file=READINESS, line=readiness.unresolved[0].line)
    if readiness.unreasoned:
        text = "deferred_nonblocking readiness items require a reason"
        text = text if later else f"{text} before {when}"
        yield Finding("ACP312", text, file=READINESS, line=readiness.unreasoned[0].line)


def ready_to_implement(facts: Facts) -> Iterator[Finding]:
    """readiness.md is in order once readiness was passed."""
    machine, readiness = facts.history.machine, facts.readiness
    if readiness is None or not (machine.passed or "completed" in machine.last):
        return
    yield from open_items(readiness, "readiness_passed")
    if readiness.ready is None:
        text = "readiness.md must check 'Ready to implement' before readiness_passed or completed"
        yield Finding("ACP313", text, file=READINESS)


def gates_checked(facts: Facts) -> Iterator[Finding]:
    """Every completion gate is checked in readiness.md before completion."""
    readiness = facts.readiness
    if readiness is None or "completed" not in facts.history.machine.last:
        return
    yield from unchecked_gates(readiness, schema.gate_texts(facts.protocol or {}))


def unchecked_gates(readiness: Readiness, gates: list[str]) -> Iterator[Finding]:
    """Gates that are not checked off."""
    unchecked = [gate for gate in gates if gate not in readiness.checked]
    if unchecked:
        text = f"completion gates must be checked before completed: {', '.join(unchecked)}"
        yield Finding("ACP314", text, file=READINESS)


def concluded(facts: Facts) -> Iterator[Finding]:
    """conclusion.md is a finished conclusion once the collaboration was completed."""
    conclusion = facts.conclusion
    if conclusion is not None and "completed" in facts.history.machine.last:
        yield from unfinished(conclusion, facts.dialect)


def unfinished(conclusion: Conclusion, dialect: str) -> Iterator[Finding]:
    """What keeps conclusion.md from being a conclusion."""
    missing = [name for name in conclusion_sections(dialect) if name not in conclusion.sections]
    if missing:
        text = f"conclusion.md is missing required sections: {', '.join(missing)}"
        yield Finding("ACP320", text, file=CONCLUSION)
    outcomes = conclusion.outcomes
    if len(outcomes) != 1:
        line = outcomes[1][1] if outcomes else conclusion.sections.get("Decision Outcome")
        text = "conclusion.md must declare exactly one final outcome"
        yield Finding("ACP321", text, file=CONCLUSION, line=line)
    elif outcomes[0][0] == "blocked":
        text = "conclusion.md outcome cannot be completed while blocked"
        yield Finding("ACP322", text, file=CONCLUSION, line=outcomes[0][1])
    if conclusion.placeholders:
        text = "conclusion.md must not contain unresolved placeholders before completed"
        yield Finding("ACP323", text, file=CONCLUSION, line=conclusion.placeholders[0][1])


def deferred_with_reason(facts: Facts) -> Iterator[Finding]:
    """Deferred items say why, even before it is required."""
    readiness = facts.readiness
    if readiness is None or "completed" in facts.history.machine.last:
        return
    if readiness.unreasoned:
        text = "deferred_nonblocking readiness items should include a reason"
        line = readiness.unreasoned[0].line
        yield Finding("ACP315", text, WARNING, READINESS, line)


RULES = (
    reviews_have_headings,
    ready_for_acceptance,
    ready_to_implement,
    gates_checked,
    concluded,
    deferred_with_reason,
)
