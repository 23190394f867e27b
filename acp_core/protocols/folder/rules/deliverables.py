"""Rules about deliverables: their events, their texts, and what must name them (dialect v2).

Source: the folder protocol's dialect v2. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.rules.finding import ADVICE, Finding
from acp_core.protocols.folder.schema import LOG_FILE, V2, Entry, is_digest

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Declared, Facts

REVIEW, DECISIONS, CONCLUSION = "review.md", "decisions.md", "conclusion.md"
FROZEN = "Frozen"


def events_well_formed(facts: Facts) -> Iterator[Finding]:
    """Events about deliverables name one that is declared."""
    if facts.dialect != V2:
        return
    supporting = {item.reference for item in facts.declaration.supporting if item.reference}
    for entry in facts.history.deliverables:
        for code, text in _reference_problems(entry, facts.declaration.reference, supporting):
            yield _of_event(entry, code, text)


def _reference_problems(
    entry: Entry, primary: str, supporting: set[str]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the deliverable that an event names, given the references."""
    if entry.role == "primary" and entry.doc and entry.doc != primary:
        yield "ACP505", "doc must reference the primary deliverable"
    elif entry.role == "supporting" and entry.doc and entry.doc not in supporting:
        yield "ACP506", "doc must reference a declared supporting deliverable"


def frozen_as_recorded(facts: Facts) -> Iterator[Finding]:
    """What was frozen is still there, and has not changed since."""
    if facts.dialect != V2:
        return
    files = {declared.item.reference: declared.file for declared in facts.deliverables}
    for reference, entry in _frozen(facts).items():
        file = files.get(reference)
        if file is None:
            continue  # said of the event's doc
        if file.problem:
            yield _of_event(entry, "ACP507", "deliverable_frozen doc does not exist")
        elif is_digest(entry.sha256) and file.digest != entry.sha256:
            text = "deliverable_frozen sha256 does not match current file"
            yield _of_event(entry, "ACP504", text)


def drafts_as_recorded(facts: Facts) -> Iterator[Finding]:
    """The digest that the latest draft or revision names is that of the file."""
    if facts.dialect != V2:
        return
    latest = {entry.doc: entry for entry in facts.history.deliverables if entry.doc}
    files = {declared.item.reference: declared.file for declared in facts.deliverables}
    for reference, entry in latest.items():
        file = files.get(reference or "")
        if entry.event == "deliverable_frozen" or entry.sha256 is None or file is None:
            continue
        if file.digest and file.digest != entry.sha256:
            text = f"seq {entry.name}: sha256 is not that of {reference} as it is now"
            yield Finding("ACP950", text, ADVICE, LOG_FILE, entry.line, entry.seq)


def primary_in_order(facts: Facts) -> Iterator[Finding]:
    """The primary deliverable is there from the start, with its status and its sections."""
    machine, primary = facts.history.machine, facts.primary
    if facts.dialect != V2 or primary is None:
        return
    yield from _in_order(primary, f"primary deliverable missing: {primary.item.reference}")
    content = primary.file.scan
    if content is None:
        return
    file = primary.item.reference
    if not content.status:
        text = "primary deliverable must include Status: Draft, In Review, or Frozen"
        yield Finding("ACP511", text, file=file)
    elif machine.frozen and content.status != FROZEN:
        text = "primary deliverable status must be Frozen"
        yield Finding("ACP512", text, file=file, line=content.status_line)
    yield from _sections(primary, machine.frozen, "primary deliverable")


def supporting_in_order(facts: Facts) -> Iterator[Finding]:
    """Supporting deliverables are there, in order, and frozen where that is said of them."""
    if facts.dialect != V2:
        return
    frozen = _frozen(facts)
    for declared in facts.deliverables:
        item = declared.item
        if item.role != "supporting":
            continue
        name = f"supporting deliverable {item.reference}"
        yield from _in_order(declared, f"supporting deliverable missing: {item.reference}")
        has_event = item.reference in frozen
        if item.frozen and not has_event:
            text = f"supporting deliverable requires deliverable_frozen: {item.reference}"
            yield Finding("ACP521", text, file=item.reference)
        if has_event and not item.frozen:
            text = f"supporting deliverable has freeze event but is not marked frozen: {item.reference}"
            yield Finding("ACP522", text, file=item.reference)
        content = declared.file.scan
        if content is None:
            continue
        if not content.status:
            yield Finding("ACP511", f"{name} must include Status", file=item.reference)
        elif (item.frozen or has_event) and content.status != FROZEN:
            text = f"{name} status must be Frozen"
            yield Finding("ACP512", text, file=item.reference, line=content.status_line)
        yield from _sections(declared, item.frozen or has_event, name)


def attachments_present(facts: Facts) -> Iterator[Finding]:
    """Declared attachments are there."""
    for declared in facts.deliverables:
        if declared.item.role == "attachment" and declared.file.problem:
            text = f"attachment missing: {declared.item.file}"
            yield Finding("ACP523", text, file=declared.item.reference)


def _in_order(declared: Declared, missing: str) -> Iterator[Finding]:
    file = declared.file
    if file.missing:
        yield Finding("ACP510", missing, file=declared.item.reference)
    elif file.problem:
        text = f"{declared.item.reference} cannot be read: {file.problem}"
        yield Finding("ACP515", text, file=declared.item.reference)


def _sections(declared: Declared, frozen: bool, what: str) -> Iterator[Finding]:
    content, file = declared.file.scan, declared.item.reference
    if content is None:
        return
    for section in declared.item.sections:
        if section not in content.sections:
            text = f"{what} missing required section: {section}"
            yield Finding("ACP513", text, file=file)
        elif frozen and section in content.empty:
            text = f"{what} section must not be empty when frozen: {section}"
            yield Finding("ACP514", text, file=file, line=content.sections[section])


def decisions_reflected(facts: Facts) -> Iterator[Finding]:
    """Accepted decisions are numbered in order, and each says where it is reflected."""
    decisions = facts.decisions
    if facts.dialect != V2 or decisions is None:
        return
    seen: set[int] = set()
    expected = 1
    for decision in decisions.decisions:
        name = f"accepted decision {f'D{decision.number}' if decision.number else decision.title}"
        if not decision.number:
            text = "accepted decision headings must use D<number>"
            yield Finding("ACP530", text, file=DECISIONS, line=decision.line)
        if not decision.decided:
            text = f"{name} requires Decision"
            yield Finding("ACP531", text, file=DECISIONS, line=decision.line)
        if not decision.reflected:
            text = f"{name} requires Reflected in"
            yield Finding("ACP532", text, file=DECISIONS, line=decision.line)
        elif not decision.referenced:
            text = f"{name} Reflected in must point to declared deliverable"
            yield Finding("ACP533", text, file=DECISIONS, line=decision.line)
        if not decision.number:
            continue
        if decision.number in seen:
            text = f"duplicate accepted decision id D{decision.number}"
            yield Finding("ACP535", text, file=DECISIONS, line=decision.line)
        elif decision.number != expected:
            text = "accepted decision ids must be sequential"
            yield Finding("ACP534", text, file=DECISIONS, line=decision.line)
        seen.add(decision.number)
        expected = decision.number + 1


def review_declares_scope(facts: Facts) -> Iterator[Finding]:
    """review.md says what was reviewed and how far, once there is a review."""
    review = facts.review
    if facts.dialect != V2 or review is None or not facts.history.review_at:
        return
    if not review.reviewed:
        text = "review.md must declare Reviewed primary deliverable"
        yield Finding("ACP540", text, file=REVIEW)
    if not review.scope:
        yield Finding("ACP541", "review.md must declare Review Scope", file=REVIEW)
    if not review.completeness:
        text = "review.md Review Scope must include Primary deliverable completeness"
        yield Finding("ACP542", text, file=REVIEW)
    if not review.referenced:
        text = "review.md must reference the primary deliverable"
        yield Finding("ACP543", text, file=REVIEW)


def conclusion_references(facts: Facts) -> Iterator[Finding]:
    """conclusion.md names the primary deliverable once the collaboration was completed."""
    conclusion = facts.conclusion
    if facts.dialect != V2 or conclusion is None or conclusion.referenced:
        return
    if "completed" in facts.history.machine.last:
        text = "conclusion.md must reference the primary deliverable"
        yield Finding("ACP544", text, file=CONCLUSION)


def _frozen(facts: Facts) -> dict[str, Entry]:
    """The latest freeze event of each deliverable."""
    return {
        entry.doc: entry
        for entry in facts.history.deliverables
        if entry.event == "deliverable_frozen" and entry.doc
    }


def _of_event(entry: Entry, code: str, text: str) -> Finding:
    message = f"seq {entry.name}: {text}"
    return Finding(code, message, file=LOG_FILE, line=entry.line, seq=entry.seq)


RULES = (
    events_well_formed,
    frozen_as_recorded,
    drafts_as_recorded,
    primary_in_order,
    supporting_in_order,
    attachments_present,
    decisions_reflected,
    review_declares_scope,
    conclusion_references,
)
