"""What the documents must say before an event may be appended.

Source: folder protocol specification, "Readiness Gate" and "Final Conclusion". Only the event
at hand is judged: what documents say today does not make earlier events wrong, and ``blocked``
is never kept from being said. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import DELIVERABLE_EVENTS, Entry
from acp_core.protocols.folder.schema.records import path_of as file_of
from acp_core.protocols.folder.write.opened import Opened

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.edits import Edit

READINESS = "readiness.md"
CONCLUSION = "conclusion.md"
MUST_BE_VALID = frozenset({"readiness_passed", "completed"})  # the validator must pass
JUDGED = MUST_BE_VALID | {"decision_accepted", *DELIVERABLE_EVENTS}  # see `forecast`


def judge(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> tuple[Entry, list[str]]:
    """What the documents say against an event.

    Args:
        opened: the collaboration before the event.
        entry: the event, which is the turn of its author.
        edits: documents that change together with it.

    Returns:
        The event, with the SHA-256 of the deliverable that it freezes; every reason against it.

    Raises:
        Refused: the event does not say what it is about.
    """
    event = entry.event
    reasons: list[str] = []
    if event in DELIVERABLE_EVENTS:
        entry = _deliverable_event(opened, entry, edits)
    elif entry.role is not None or entry.sha256 is not None:
        raise Refused(f"--role and --sha256 are for deliverable events, not for {event}")
    if event in ("decision_accepted", "readiness_passed", "completed"):
        reasons += _readiness(opened, event, edits)
    if event == "completed":
        reasons += _conclusion(opened, edits)
    return entry, reasons


def _readiness(opened: Opened, event: str, edits: Sequence[Edit]) -> Iterator[str]:
    from acp_core.protocols.folder.schema import documents

    try:
        readiness = documents.scan_readiness(document_text(opened.folder, READINESS, edits))
    except Refused as error:
        yield str(error)
        return
    if readiness.blocking:
        yield "blocking readiness items must be cleared first"
    if readiness.unresolved:
        yield "unresolved readiness questions must be classified first"
    if readiness.unreasoned:
        yield "deferred_nonblocking readiness items require a reason"
    if event == "decision_accepted":
        return
    if readiness.ready is None:
        yield "readiness.md must check 'Ready to implement' first"
    if event == "completed":
        gates = records.gate_texts(opened.protocol)
        unmet = [gate for gate in gates if gate not in readiness.checked]
        if unmet:
            yield f"completion gates must be checked first: {', '.join(unmet)}"


def _conclusion(opened: Opened, edits: Sequence[Edit]) -> Iterator[str]:
    from acp_core.protocols.folder.rules.checks import unfinished
    from acp_core.protocols.folder.schema import documents

    try:
        conclusion = documents.scan_conclusion(document_text(opened.folder, CONCLUSION, edits))
    except Refused as error:
        yield str(error)
        return
    for finding in unfinished(conclusion, opened.dialect):
        word, line = conclusion.placeholders[0] if conclusion.placeholders else ("", 0)
        named = f" (line {line}: “{word}”)" if finding.code == "ACP323" else ""
        yield finding.message + named


def document_text(folder: str, name: str, edits: Sequence[Edit] = ()) -> str:
    """A document's text as it will be, with "\\n" as its only line end.

    Raises:
        Refused: it cannot be read.
    """
    from acp_core.files.markdown import normalise

    try:
        data = _content(file_of(folder, name), edits)
    except Unreadable as error:
        if error.missing:
            raise Refused(f"missing {name}") from None
        raise Refused(f"{name}: {error}") from None
    try:
        return normalise(data.decode())
    except UnicodeDecodeError as error:
        raise Refused(f"{name} is not UTF-8 at byte {error.start + 1}") from None


def _content(path: str, edits: Sequence[Edit]) -> bytes:
    for edit in edits:
        if edit.path == path:
            return edit.after
    return read_bounded(path, records.MAX_DOCUMENT)


def _deliverable_event(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Entry:
    """Check role, document and digest of a deliverable event; work out the digest it freezes."""
    from acp_core.protocols.folder.schema import deliverables

    if entry.role is None:
        raise Refused("deliverable events require role")
    if entry.doc is None:
        raise Refused("deliverable events require doc")
    declaration = deliverables.declare(opened.protocol)
    if entry.role == "primary" and entry.doc != declaration.reference:
        raise Refused(f"doc must reference the primary deliverable: {declaration.reference}")
    candidates = (declaration.primary, *declaration.supporting)
    item = next((d for d in candidates if d and d.reference == entry.doc), None)
    if item is None or item.role != entry.role:
        raise Refused("doc must reference a declared supporting deliverable")
    if entry.event != "deliverable_frozen":
        return entry
    root = deliverables.root_of(declaration, opened.folder)
    path = deliverables.path_of(declaration, item, root)
    if path is None:
        raise Refused(root.problem or f"{entry.doc} is outside its folder")
    digest = _digest(path, entry, edits)
    if entry.sha256 not in (None, digest):
        raise Refused(f"{entry.event} sha256 does not match current file")
    return entry._replace(sha256=digest)


def _digest(path: str, entry: Entry, edits: Sequence[Edit]) -> str:
    from hashlib import sha256

    try:
        return sha256(_content(path, edits)).hexdigest()
    except Unreadable as error:
        if error.missing:
            raise Refused(f"{entry.event} doc does not exist: {entry.doc}") from None
        raise Refused(f"{entry.doc}: {error}") from None


def remarks(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> tuple[str, ...]:
    """What does not stop the event, but should be known."""
    found = _REMARKS.get(entry.event)
    about = tuple(found(opened, entry, edits)) if found else ()
    if len(entry.summary) > records.MAX_SUMMARY:
        limit = f"the summary is longer than {records.MAX_SUMMARY} characters: write one sentence"
        return (*about, limit)
    return about


def _about_review(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Iterator[str]:
    """The review has no heading."""
    from acp_core.protocols.folder.schema import documents

    try:
        review = documents.scan_review(document_text(opened.folder, "review.md", edits))
    except Refused as error:
        yield str(error)
        return
    heading = review.headings.get(entry.seq or 0)
    if not heading or heading.participant != entry.sender:
        wanted = f"## {entry.at} - {entry.sender} - seq {entry.seq}"
        yield f"review.md has no heading `{wanted}` yet: write it, or use --review-file"


def _about_proposal(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Iterator[str]:
    """The proposal says nothing."""
    from acp_core.protocols.folder.schema.records import is_unwritten_proposal

    try:
        if is_unwritten_proposal(document_text(opened.folder, "proposal.md", edits)):
            yield "proposal.md contains no proposal yet; the reviewers read the file as it is"
    except Refused as error:
        yield str(error)


def _about_questions(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Iterator[str]:
    """Questions are unresolved."""
    from acp_core.protocols.folder.schema import documents

    try:
        readiness = documents.scan_readiness(document_text(opened.folder, READINESS, edits))
    except Refused as error:
        yield str(error)
        return
    if readiness.unresolved:
        line = readiness.unresolved[0].line
        yield (
            f"readiness.md still holds unresolved questions (line {line}): "
            "decisions cannot be accepted until they are classified"
        )


def _about_draft(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Iterator[str]:
    """The digest is not that of the deliverable."""
    if entry.sha256 is None:
        return
    frozen = entry._replace(event="deliverable_frozen", sha256=None)
    try:
        found = _deliverable_event(opened, frozen, edits)
    except Refused as error:
        yield str(error)
        return
    if found.sha256 != entry.sha256:
        yield f"{entry.event} sha256 does not match current file"


_REMARKS: dict[str, Callable[[Opened, Entry, Sequence[Edit]], Iterator[str]]] = {
    "review_submitted": _about_review,
    "proposal_submitted": _about_proposal,
    "question_classified": _about_questions,
    "deliverable_drafted": _about_draft,
    "deliverable_revised": _about_draft,
}
