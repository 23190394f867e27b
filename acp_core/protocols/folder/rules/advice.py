"""Advice: what every other reader accepts, and what nevertheless goes wrong later.

It never changes the verdict, unless asked for. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rules.finding import ADVICE, Finding
from acp_core.protocols.folder.rules.protocol_file import is_behind
from acp_core.protocols.folder.schema import id_in, list_in
from acp_core.protocols.folder.schema.documents import READY, conclusion_sections

if TYPE_CHECKING:
    from acp_core.files.markdown import CheckBox
    from acp_core.protocols.folder.read.facts import Facts

PROPOSAL, READINESS, CONCLUSION, REVIEW, DECISIONS = (
    "proposal.md",
    "readiness.md",
    "conclusion.md",
    "review.md",
    "decisions.md",
)
NEAR_ENDING = ("decision_review", "readiness_check", "completed")
_MANY = 100  # gates that are compared with the nearest line


def lags_behind(facts: Facts) -> Iterator[Finding]:
    """protocol.json records an earlier state of the log."""
    if facts.history.machine.count and is_behind(facts):
        text = "protocol.json is out of date with events.jsonl; `acp repair` or the next append updates it"
        yield _advice("ACP920", text, schema.PROTOCOL_FILE)


def participants_twice(facts: Facts) -> Iterator[Finding]:
    """A participant is listed twice."""
    names = map(id_in, list_in(facts.protocol or {}, "participants"))
    texts = [name for name in names if isinstance(name, str)]
    twice = sorted({name for name in texts if texts.count(name) > 1}) if len(texts) < 500 else []
    for name in twice:
        text = f"protocol.json participants: {name!r} is listed twice"
        yield _advice("ACP910", text, schema.PROTOCOL_FILE)


def participants_portable(facts: Facts) -> Iterator[Finding]:
    """A participant's id holds what breaks headings, paths or terminals."""
    for name in facts.participants:
        if not schema.is_participant_id(name):
            text = f"protocol.json participants: the id {name!r} contains characters that are not safe everywhere"
            yield _advice("ACP911", text, schema.PROTOCOL_FILE)


def gates_listed(facts: Facts) -> Iterator[Finding]:
    """The completion gates are a list of texts."""
    gates = (facts.protocol or {}).get("completionGates")
    odd = isinstance(gates, dict) or (
        facts.dialect == schema.V1
        and isinstance(gates, list)
        and any(isinstance(gate, dict) for gate in gates)
    )
    if odd:
        text = "protocol.json completionGates is not a list of texts"
        yield _advice("ACP912", text, schema.PROTOCOL_FILE)


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
        yield _advice("ACP914", text, schema.LOG_FILE)


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
        yield _advice("ACP936", "decisions.md is empty, but decisions were accepted", DECISIONS)


def near_gates(facts: Facts) -> Iterator[Finding]:
    """A gate is not checked, but a line comes close."""
    readiness, machine = facts.readiness, facts.history.machine
    if readiness is None or machine.phase not in NEAR_ENDING:
        return
    wanted = [g for g in schema.gate_texts(facts.protocol or {}) if g not in readiness.checked]
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
    held = [(schema.LOG_FILE, facts.log_unseen)]
    held += [(name, file.unseen) for name, file in facts.files.items()]
    held += [(each.item.reference, each.file.unseen) for each in facts.deliverables]
    for name, unseen in held:
        if unseen.lines:
            yield _advice("ACP956", f"{name}: {unseen.sentence}", name, unseen.first)


def gave_way(facts: Facts) -> Iterator[Finding]:
    """A text of this host gave way to another host's, and waits to be settled."""
    for each in facts.kept:
        if each.document == schema.LOG_FILE:
            text = f"events that were appended here without acp are in {each.file}: the store took others first"
            yield _advice("ACP958", text, schema.LOG_FILE)
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


RULES = (
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
    classified_in_name,
    something_classified,
    near_gates,
    near_reviews,
    near_conclusion,
    near_sections,
    unseen_text,
    gave_way,
)
