"""Every rule of the validator, in the order in which they speak.

Source: folder protocol specification, "Required Inputs", "Files", "Events", "Review Format",
"Readiness Gate", "Final Conclusion" and "Validation"; for deliverables the dialect v2. Advice is
what every other reader accepts and what nevertheless goes wrong later: it never changes the
verdict, unless asked for. Standard library only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.deliverables import (
    CUSTOM,
    EXTERNAL,
    INTERNAL,
    TYPES,
    is_inside,
)
from acp_core.protocols.folder.schema.documents import READY, conclusion_sections
from acp_core.protocols.folder.schema.records import (
    ADVICE,
    ERROR,
    LOG_FILE,
    PROTOCOL_FILE,
    SHOWN,
    V2,
    WARNING,
    Entry,
    Finding,
    Report,
    id_in,
    is_digest,
    left_out,
    list_in,
    object_in,
    text_in,
)

if TYPE_CHECKING:
    from acp_core.files.markdown import CheckBox
    from acp_core.protocols.folder.read.facts import Declared, Facts
    from acp_core.protocols.folder.schema.documents import Conclusion, Readiness
    from acp_core.protocols.folder.schema.records import Finding

MISSING = "missing"


def protocol_readable(facts: Facts) -> Iterator[Finding]:
    """protocol.json is there and can be read: without it nothing else can be judged."""
    if facts.protocol_problem == MISSING:
        yield Finding("ACP111", f"missing protocol.json in {facts.folder}", file=PROTOCOL_FILE)
    elif facts.protocol_problem:
        text = f"invalid protocol.json: {facts.protocol_problem}"
        yield Finding("ACP110", text, file=PROTOCOL_FILE)


def dialect_known(facts: Facts) -> Iterator[Finding]:
    """``schemaVersion`` is one that this program knows."""
    if facts.dialect == records.UNKNOWN_DIALECT:
        yield _about("ACP131", "protocol.json schemaVersion must be 2")


def files_present(facts: Facts) -> Iterator[Finding]:
    """Every file of the protocol is there."""
    for name in records.REQUIRED_FILES:
        if name == records.LOG_FILE:
            missing = facts.log_problem == MISSING
        else:
            missing = name in facts.files and facts.files[name].missing
        if missing:
            yield Finding("ACP101", f"missing {name}", file=name)


def files_readable(facts: Facts) -> Iterator[Finding]:
    """Every document is a regular file, UTF-8, and not too large."""
    for name, file in facts.files.items():
        if file.problem and not file.missing:
            yield Finding("ACP103", f"{name} cannot be read: {file.problem}", file=name)


def obsolete_files(facts: Facts) -> Iterator[Finding]:
    """None of the files of earlier protocols is there."""
    for name in facts.obsolete:
        text = f"{name} is not part of the protocol; remove it and use events.jsonl/readiness.md instead"
        yield Finding("ACP102", text, file=name)


def charter(facts: Facts) -> Iterator[Finding]:
    """Phase, objective, participants and gates are given."""
    protocol = _protocol(facts)
    if text_in(protocol, "currentPhase") not in records.PHASES:
        yield _about("ACP112", f"currentPhase must be one of {list(records.PHASES)}")
    if not text_in(protocol, "objective").strip():
        yield _about("ACP113", "protocol.json objective must not be blank")
    listed = list_in(protocol, "participants")
    if not listed:
        yield _about("ACP114", "protocol.json participants must not be empty")
    else:
        for position, item in enumerate(listed):
            name = id_in(item)
            if not isinstance(name, str) or not name.strip():
                yield _about("ACP120", f"protocol.json participants[{position}] has no id")
            elif not records.is_writable(name):
                text = f"protocol.json participants[{position}] is not text in UTF-8"
                yield _about("ACP120", text)
        if len(listed) > records.MAX_PARTICIPANTS:
            text = f"protocol.json has more than {records.MAX_PARTICIPANTS} participants"
            yield _about("ACP121", text)
    gates = protocol.get("completionGates")
    if not isinstance(gates, list | dict) or not gates:  # of an object, the keys count
        yield _about("ACP115", "protocol.json completionGates must not be empty")


def gates_well_formed(facts: Facts) -> Iterator[Finding]:
    """Gates are texts (v2: with their source) and name no obsolete file."""
    gates = _protocol(facts).get("completionGates")
    for position, gate in enumerate(gates if isinstance(gates, list | dict) else [], 1):
        if facts.dialect == V2:
            well_formed = (
                isinstance(gate, dict)
                and gate.get("source") in ("objective", "generated")
                and isinstance(gate.get("text"), str)
                and bool(gate["text"].strip())
            )
            if not well_formed:
                yield _about("ACP132", f"completionGates[{position}] must include source and text")
        elif not isinstance(gate, str | dict) or not gate:
            yield _about("ACP122", f"completionGates[{position}] must be a text")
    for text in records.gate_texts(_protocol(facts)):
        for name in records.OBSOLETE_FILES:
            if name in text:
                yield _about("ACP117", f"completion gate must not reference obsolete file {name}")


def no_version(facts: Facts) -> Iterator[Finding]:
    """Dialect v1 has no version in protocol.json."""
    if facts.dialect == records.V1 and "version" in _protocol(facts):
        yield _about("ACP116", "protocol.json must not include a protocol version field")


def state_present(facts: Facts) -> Iterator[Finding]:
    """Who is waited for and who owns the proposal is recorded."""
    protocol = _protocol(facts)
    if not isinstance(protocol.get("waitingFor"), list):
        yield _about("ACP118", "protocol.json waitingFor must be present")
    if not text_in(protocol, "proposalOwner"):
        yield _about("ACP119", "protocol.json proposalOwner must be present")


def state_matches(facts: Facts) -> Iterator[Finding]:
    """What protocol.json says of the state is what the log leads to."""
    machine = facts.history.machine
    protocol = _protocol(facts)
    if not machine.count:
        return
    phase = text_in(protocol, "currentPhase")
    if phase in records.PHASES and phase != machine.phase:
        text = f"protocol.json currentPhase is {phase}, expected {machine.phase or 'none'}"
        yield _about("ACP150", text)
    for name, expected in (("proposalOwner", machine.owner), ("waitingFor", machine.waiting)):
        found = protocol.get(name)
        if name in protocol and found != expected:
            text = f"protocol.json {name} is {found!r}, expected {expected!r}"
            yield _about("ACP151", text)


def is_behind(facts: Facts) -> bool:
    """Whether protocol.json records an earlier state of the log than the last one."""
    protocol, machine = _protocol(facts), facts.history.machine
    phase, owner = protocol.get("currentPhase"), protocol.get("proposalOwner")
    waiting = protocol.get("waitingFor")
    if not isinstance(phase, str) or not isinstance(waiting, list):
        return False
    if (phase, owner, waiting) == (machine.phase, machine.owner, machine.waiting):
        return False
    return facts.history.was_ever((phase, owner, waiting))


def v2_declaration(facts: Facts) -> Iterator[Finding]:
    """Dialect v2: protocol.json names the protocol and declares its deliverables well."""
    if facts.dialect != V2:
        return
    protocol = _protocol(facts)
    if protocol.get("protocol") != "acp":
        yield _about("ACP130", "protocol.json protocol must be 'acp'")
    block = object_in(protocol, "deliverables")
    if "mode" in block and block["mode"] not in (INTERNAL, EXTERNAL):
        yield _about("ACP133", "deliverables.mode must be internal or external")
    yield from _place(facts, protocol, block)
    yield from _primary(block.get("primary"))
    yield from _supporting(block)
    yield from _attachments(block)


def _place(facts: Facts, protocol: dict[str, Any], block: dict[str, Any]) -> Iterator[Finding]:
    root = protocol.get("repoRoot")
    if block.get("mode") == EXTERNAL:
        if not isinstance(root, str) or not root.strip():
            yield _about("ACP134", "repoRoot is required for external deliverables")
        elif os.path.isabs(root) or "\0" in root:
            yield _about("ACP135", "repoRoot must be relative")
        elif facts.root.problem:
            yield _about("ACP136", facts.root.problem)
    elif root is not None:
        yield _about("ACP137", "repoRoot is not allowed for internal deliverables")
    folder = block.get("dir", deliverables.DEFAULT_DIR)
    if not isinstance(folder, str) or not folder.strip():
        yield _about("ACP138", "deliverables.dir is required")
    elif not is_inside(folder):
        yield _about("ACP139", "deliverables.dir must be relative and must not contain ..")


def _primary(primary: object) -> Iterator[Finding]:
    if not isinstance(primary, dict):
        yield _about("ACP140", "protocol.json deliverables.primary is required")
        return
    yield from _declared(primary, "primary deliverable")
    if primary.get("type") == CUSTOM and not list_in(primary, "checklist"):
        yield _about("ACP141", "custom primary deliverable requires checklist")


def _supporting(block: dict[str, Any]) -> Iterator[Finding]:
    listed = list_in(block, "supporting")
    items = [item for item in listed if isinstance(item, dict)]
    for item in items:
        yield from _declared(item, "supporting deliverable")
    files = [item["file"] for item in items if isinstance(item.get("file"), str)]
    if len(set(files)) < len(files):
        yield _about("ACP145", "supporting deliverable files must be unique")
    primary = block.get("primary")
    if isinstance(primary, dict) and primary.get("file") in files:
        yield _about("ACP146", "supporting deliverable must not reuse the primary deliverable file")
    if len(listed) > deliverables.MAX_DELIVERABLES:
        text = f"more than {deliverables.MAX_DELIVERABLES} supporting deliverables"
        yield _about("ACP149", text)


def _declared(item: dict[str, Any], what: str) -> Iterator[Finding]:
    file = text_in(item, "file")
    if item.get("type") not in TYPES:
        yield _about("ACP142", f"{what} type is invalid")
    if not file.endswith(".md"):
        yield _about("ACP143", f"{what} file must be Markdown")
    elif not is_inside(file):
        yield _about("ACP144", f"{what} file must be relative and must not contain ..")


def _attachments(block: dict[str, Any]) -> Iterator[Finding]:
    for item in list_in(block, "attachments"):
        file = text_in(item, "file") if isinstance(item, dict) else None
        if file is None:
            yield _about("ACP147", "attachments must be objects")
        elif not file.strip():
            yield _about("ACP148", "attachment file is required")
        elif not is_inside(file):
            yield _about("ACP144", "attachment file must be relative and must not contain ..")


def _protocol(facts: Facts) -> dict[str, Any]:
    return facts.protocol or {}


def _about(code: str, text: str) -> Finding:
    return Finding(code, text, file=PROTOCOL_FILE)


PROTOCOL_FILE_RULES = (
    files_present,
    files_readable,
    obsolete_files,
    charter,
    no_version,
    gates_well_formed,
    v2_declaration,
    state_present,
)

AFTER_THE_LOG = (state_matches,)


def log_readable(facts: Facts) -> Iterator[Finding]:
    """The log can be read, holds an event and ends in a whole line."""
    if facts.log_problem == "missing":
        return  # said by the rule about missing files
    if facts.log_problem:
        yield Finding("ACP206", f"{LOG_FILE}: {facts.log_problem}", file=LOG_FILE)
    elif not facts.history.entries and not facts.history.check.bad_lines and not facts.tail_error:
        yield Finding("ACP205", f"{LOG_FILE} is empty", file=LOG_FILE)
    if facts.log_full:
        text = f"{LOG_FILE} is larger than acp reads it: {records.MAX_LINES} lines, {records.MAX_LOG} bytes"
        yield Finding("ACP208", text, file=LOG_FILE)


def log_lines(facts: Facts) -> Iterator[Finding]:
    """Every line is an event that is right by itself and after the ones before it."""
    check = facts.history.check
    yield from check.findings
    severities = {finding.code: finding.severity for finding in check.findings}
    for code, count in check.left_out.items():
        yield left_out(code, count, severities[code], LOG_FILE)


def log_tail(facts: Facts) -> Iterator[Finding]:
    """The last line ends in a newline."""
    if facts.tail_error:
        text = f"{facts.tail_error} (the last line is incomplete)"
        yield Finding("ACP207", text, ERROR, LOG_FILE, facts.tail_line)
    elif facts.tail_counts:
        text = f"{LOG_FILE} line {facts.tail_line}: the newline at the end is missing"
        yield Finding("ACP906", text, ADVICE, LOG_FILE, facts.tail_line)


def log_ahead(facts: Facts) -> Iterator[Finding]:
    """The last event is not dated in the future: whatever follows cannot be dated before it."""
    last = facts.history.last
    at = records.parse_time(last.at) if last else None
    if last is not None and at is not None and at.timestamp() > time.time() + records.CLOCKS_DIFFER:
        text = f"seq {last.name}: at {last.at!r} is in the future"
        yield Finding("ACP955", text, ADVICE, LOG_FILE, last.line, last.seq)


def log_can_become_valid(facts: Facts) -> Iterator[Finding]:
    """What is wrong with the log's lines stays wrong: earlier events are never rewritten."""
    broken = facts.lines.broken
    if broken is not None:
        from acp_core.protocols.folder.rules.unrecoverable_log import way_out

        text = f"{LOG_FILE} can never become valid again: {way_out(facts.folder, facts.lines)}"
        yield Finding("ACP922", text, ADVICE, LOG_FILE, broken.line)


LOG_RULES = (log_readable, log_lines, log_tail, log_ahead, log_can_become_valid)

REVIEW = "review.md"

READINESS = "readiness.md"
CONCLUSION = "conclusion.md"


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
    yield from unchecked_gates(readiness, records.gate_texts(facts.protocol or {}))


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


DOCUMENT_RULES = (
    reviews_have_headings,
    ready_for_acceptance,
    ready_to_implement,
    gates_checked,
    concluded,
    deferred_with_reason,
)

DECISIONS = "decisions.md"

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
        name = f"accepted decision {decision.id or decision.title}"
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
        elif decision.id != f"D{expected}":
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


DELIVERABLE_RULES = (
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

PROPOSAL = "proposal.md"

NEAR_ENDING = ("decision_review", "readiness_check", "completed")

_MANY = 100  # gates that are compared with the nearest line


def lags_behind(facts: Facts) -> Iterator[Finding]:
    """protocol.json records an earlier state of the log."""
    if facts.history.machine.count and is_behind(facts):
        text = "protocol.json is out of date with events.jsonl; `acp repair` or the next append updates it"
        yield _advice("ACP920", text, records.PROTOCOL_FILE)


def participants_twice(facts: Facts) -> Iterator[Finding]:
    """A participant is listed twice."""
    names = map(id_in, list_in(facts.protocol or {}, "participants"))
    texts = [name for name in names if isinstance(name, str)]
    twice = sorted({name for name in texts if texts.count(name) > 1}) if len(texts) < 500 else []
    for name in twice:
        text = f"protocol.json participants: {name!r} is listed twice"
        yield _advice("ACP910", text, records.PROTOCOL_FILE)


def participants_portable(facts: Facts) -> Iterator[Finding]:
    """A participant's id holds what breaks headings, paths or terminals."""
    for name in facts.participants:
        if not records.is_participant_id(name):
            text = f"protocol.json participants: the id {name!r} contains characters that are not safe everywhere"
            yield _advice("ACP911", text, records.PROTOCOL_FILE)


def gates_listed(facts: Facts) -> Iterator[Finding]:
    """The completion gates are a list of texts."""
    gates = (facts.protocol or {}).get("completionGates")
    odd = isinstance(gates, dict) or (
        facts.dialect == records.V1
        and isinstance(gates, list)
        and any(isinstance(gate, dict) for gate in gates)
    )
    if odd:
        text = "protocol.json completionGates is not a list of texts"
        yield _advice("ACP912", text, records.PROTOCOL_FILE)


def links_lead_out(facts: Facts) -> Iterator[Finding]:
    """A file is a symbolic link that leads out of the folder."""
    for name, file in (*facts.files.items(), *facts.others.items()):
        if file.outside:
            text = f"{name} is a symbolic link that points outside the folder"
            yield _advice("ACP913", text, name)


def line_ends(facts: Facts) -> Iterator[Finding]:
    """The log's lines end in a newline, not in a bare carriage return."""
    if facts.bare_returns:
        text = "events.jsonl: lines end in carriage returns; write newlines"
        yield _advice("ACP914", text, records.LOG_FILE)


def near_items(facts: Facts) -> Iterator[Finding]:
    """A line of readiness.md looks like a classified question but does not count."""
    readiness = facts.readiness
    if readiness is None or _only_begun(facts):
        return
    for text, line in readiness.near:
        yield _advice("ACP930", f"readiness.md: {_quoted(text)} does not count", READINESS, line)
    for item in readiness.swallowing:
        text = f"readiness.md: the bare [{item.word}] uses line {item.text_line} as its text, so that line does not count by itself"
        yield _advice("ACP931", text, READINESS, item.line)
    for text, line in readiness.under_blockers:
        message = (
            f"readiness.md: {_quoted(text)} is listed under blockers but is not marked [blocking]"
        )
        yield _advice("ACP932", message, READINESS, line)


def reasons_given(facts: Facts) -> Iterator[Finding]:
    """A deferred item has ``Reason:`` with nothing after it."""
    for item in facts.readiness.items if facts.readiness else ():
        _, found, reason = item.text.lower().partition("reason:")
        if item.word == "deferred_nonblocking" and found and not reason.strip():
            text = "readiness.md: Reason: is empty, or continues on the next line"
            yield _advice("ACP933", text, READINESS, item.text_line)


def hidden_placeholders(facts: Facts) -> Iterator[Finding]:
    """A resolved question speaks of a TBD, and so counts as unresolved."""
    for item in facts.readiness.items if facts.readiness else ():
        if item.word != "unresolved" and "TBD" in item.text:
            text = f"readiness.md: [{item.word}] counts as unresolved because its text contains TBD"
            yield _advice("ACP934", text, READINESS, item.text_line)


def submitted_unwritten(facts: Facts) -> Iterator[Finding]:
    """A proposal went to the reviewers before anything was written."""
    if facts.files["proposal.md"].scan and facts.history.machine.round:
        yield _advice("ACP951", "proposal.md was submitted but contains no proposal", PROPOSAL)


def drafted_unwritten(facts: Facts) -> Iterator[Finding]:
    """A deliverable was declared to be drafted before anything was written."""
    primary = facts.primary
    content = primary.file.scan if primary else None
    if primary is None or content is None or not facts.history.machine.drafted:
        return
    wanted = [name for name in primary.item.sections if name != "Status"]
    if wanted and all(name in content.empty for name in wanted):
        text = f"{primary.item.reference} was drafted but all its sections are empty"
        yield _advice("ACP959", text, primary.item.reference)


def classified_in_name(facts: Facts) -> Iterator[Finding]:
    """The questions were declared classified, and some are not: nobody can accept."""
    machine, readiness = facts.history.machine, facts.readiness
    if readiness is None or not machine.classified or machine.accepted_ever:
        return
    if readiness.unresolved:
        text = "question_classified was appended, but readiness.md contains unresolved questions"
        yield _advice("ACP952", text, READINESS, readiness.unresolved[0].line)


def something_classified(facts: Facts) -> Iterator[Finding]:
    """Decisions were accepted on documents that say nothing."""
    if not facts.history.machine.accepted_ever:
        return
    if facts.readiness is not None and facts.readiness.empty:
        text = "readiness.md classifies nothing, but decisions were accepted"
        yield _advice("ACP935", text, READINESS)
    if facts.decisions is not None and facts.decisions.empty:
        text = "decisions.md contains no decision, but decisions were accepted"
        yield _advice("ACP936", text, DECISIONS)


def near_gates(facts: Facts) -> Iterator[Finding]:
    """A gate is not checked, but a line comes close."""
    readiness, machine = facts.readiness, facts.history.machine
    if readiness is None or machine.phase not in NEAR_ENDING:
        return
    wanted = [g for g in records.gate_texts(facts.protocol or {}) if g not in readiness.checked]
    for gate in wanted[:_MANY]:
        box = nearest(gate, readiness.boxes)
        if box is not None and (box.checked or box.text != gate):
            text = f"readiness.md: the gate {_quoted(gate)} must be checked exactly so"
            yield _advice("ACP937", text, READINESS, box.line)
    if readiness.ready is None:
        box = nearest(READY, readiness.boxes)
        if box is not None and box.checked:
            text = f"readiness.md: {_quoted(box.text)} must begin the line as '- [x] {READY}'"
            yield _advice("ACP937", text, READINESS, box.line)


def nearest(text: str, boxes: tuple[CheckBox, ...]) -> CheckBox | None:
    """The check box whose text is most like ``text``, or None where none is alike."""
    wanted = _words(text)
    best, most = None, 0.5
    for box in boxes[:_MANY]:
        if box.text == text:
            return box
        words = _words(box.text)
        alike = len(wanted & words) / max(1, len(wanted | words))
        if alike >= most:
            best, most = box, alike
    return best


def _words(text: str) -> set[str]:
    return set(text[:1000].lower().replace("`", " ").replace(".", " ").split())


def near_reviews(facts: Facts) -> Iterator[Finding]:
    """A heading of review.md speaks of a seq in another form, or two bear the same."""
    review = facts.review
    if review is None or _only_begun(facts):
        return
    for text, line in review.near:
        message = f"review.md: the heading {_quoted(text)} does not name a review"
        yield _advice("ACP940", message, REVIEW, line)
    for seq, line in review.repeated:
        message = f"review.md: two headings name seq {seq}; the last one counts"
        yield _advice("ACP941", message, REVIEW, line)


def near_conclusion(facts: Facts) -> Iterator[Finding]:
    """conclusion.md comes close to what is required, or fulfils it only in form."""
    conclusion = facts.conclusion
    if conclusion is None or facts.history.machine.phase not in ("readiness_check", "completed"):
        return
    for name in conclusion_sections(facts.dialect):
        if name not in conclusion.sections and name in conclusion.other_levels:
            text = f"conclusion.md: {name} must be a heading of level 2"
            yield _advice("ACP942", text, CONCLUSION, conclusion.other_levels[name])
    for text, line in conclusion.near:
        message = f"conclusion.md: {_quoted(text)} does not count as an outcome"
        yield _advice("ACP943", message, CONCLUSION, line)
    for line in conclusion.hidden:
        text = "conclusion.md: 待定 inside a longer word is not seen as a placeholder"
        yield _advice("ACP944", text, CONCLUSION, line)
    if [found.code for found in unfinished(conclusion, facts.dialect)] == ["ACP323"]:
        for word, line in conclusion.placeholders[:_MANY]:
            text = f"conclusion.md: {_quoted(word)} counts as a placeholder"
            yield _advice("ACP946", text, CONCLUSION, line)
    if "completed" in facts.history.machine.last:
        for name, line in conclusion.empty:
            yield _advice("ACP945", f"conclusion.md: {name} is empty", CONCLUSION, line)


def near_sections(facts: Facts) -> Iterator[Finding]:
    """A deliverable has a required section, but as a heading of another level."""
    for declared in facts.deliverables:
        content = declared.file.scan
        for name in declared.item.sections if content else ():
            if content and name not in content.sections and name in content.other_levels:
                text = f"{declared.item.reference}: {name} must be a heading of level 2"
                line = content.other_levels[name]
                yield _advice("ACP942", text, declared.item.reference, line)


def unseen_text(facts: Facts) -> Iterator[Finding]:
    """Agents read what nobody else can see."""
    held = [(records.LOG_FILE, facts.log_unseen)]
    held += [(name, file.unseen) for name, file in facts.files.items()]
    held += [(each.item.reference, each.file.unseen) for each in facts.deliverables]
    for name, unseen in held:
        if unseen.lines:
            yield _advice("ACP956", f"{name}: {unseen.sentence}", name, unseen.first)


def gave_way(facts: Facts) -> Iterator[Finding]:
    """A text of this host gave way to another host's, and waits to be settled."""
    for each in facts.kept:
        if each.document == records.LOG_FILE:
            text = f"events that were appended here without acp are in {each.file}: the store took others first"
            yield _advice("ACP958", text, records.LOG_FILE)
        else:
            text = f"{each.document} was changed here and on another host: the text of this host is in {each.file}"
            yield _advice("ACP957", text, each.document)


def _only_begun(facts: Facts) -> bool:
    """Whether nothing has happened yet: the documents show their forms, and say nothing."""
    return facts.history.machine.count == 1


def _quoted(text: str) -> str:
    return f"“{text if len(text) <= 80 else text[:79] + '…'}”"


def _advice(code: str, text: str, file: str, line: int | None = None) -> Finding:
    return Finding(code, text, ADVICE, file, line)


ADVICE_RULES = (
    lags_behind,
    participants_twice,
    participants_portable,
    gates_listed,
    links_lead_out,
    line_ends,
    near_items,
    reasons_given,
    hidden_placeholders,
    submitted_unwritten,
    drafted_unwritten,
    classified_in_name,
    something_classified,
    near_gates,
    near_reviews,
    near_conclusion,
    near_sections,
    unseen_text,
    gave_way,
)

Rule = Callable[["Facts"], Iterator["Finding"]]

PRECONDITIONS: tuple[Rule, ...] = (protocol_readable, dialect_known)
"""Where one of these says something, nothing further can be judged."""

RULES: tuple[Rule, ...] = (
    *PROTOCOL_FILE_RULES,
    *LOG_RULES,
    *AFTER_THE_LOG,
    *DOCUMENT_RULES,
    *DELIVERABLE_RULES,
    *ADVICE_RULES,
)


def judge(facts: Facts) -> Report:
    """What all rules say of what was read."""

    for rule in PRECONDITIONS:
        findings = list(rule(facts))
        if findings:
            return Report(findings)
    return Report(finding for rule in RULES for finding in rule(facts))


def validate(folder: str | os.PathLike[str]) -> Report:
    """Read a collaboration's folder and judge it. Never raises for what the folder holds."""
    from acp_core.protocols.folder.read.facts import gather

    return judge(gather(folder))
