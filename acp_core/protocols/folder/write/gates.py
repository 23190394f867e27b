"""What the documents must say before an event may be appended.

Source: folder protocol specification, "Readiness Gate" and "Final Conclusion". Only the event
at hand is judged: what documents say today does not make earlier events wrong, and ``blocked``
is never kept from being said. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import DELIVERABLE_EVENTS, Entry
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.opened import Opened
from acp_core.protocols.folder.write.opened import path_of as file_of

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.edits import Edit

READINESS = "readiness.md"
CONCLUSION = "conclusion.md"
MUST_BE_VALID = frozenset({"readiness_passed", "completed"})  # the validator must pass
JUDGED = MUST_BE_VALID | {"decision_accepted", *DELIVERABLE_EVENTS}  # see `prospect`


def check(opened: Opened, entry: Entry, edits: Sequence[Edit]) -> Entry:
    """Refuse an event that the documents do not allow yet.

    Args:
        opened: the collaboration before the event.
        entry: the event, legal by the state machine.
        edits: documents that change together with it.

    Returns:
        The event, with the SHA-256 of the deliverable that it freezes.

    Raises:
        Refused: why not.
    """
    event = entry.event
    if event in DELIVERABLE_EVENTS:
        entry = _deliverable_event(opened, entry, edits)
    elif entry.role is not None or entry.sha256 is not None:
        raise Refused(f"--role and --sha256 are for deliverable events, not for {event}")
    if event in ("decision_accepted", "readiness_passed", "completed"):
        _readiness(opened, event, edits)
    if event == "completed":
        _conclusion(opened, edits)
    return entry


def _readiness(opened: Opened, event: str, edits: Sequence[Edit]) -> None:
    from acp_core.protocols.folder.schema import documents

    readiness = documents.scan_readiness(document_text(opened.folder, READINESS, edits))
    if readiness.blocking:
        raise Refused("blocking readiness items must be cleared first")
    if readiness.unresolved:
        raise Refused("unresolved readiness questions must be classified first")
    if readiness.unreasoned:
        raise Refused("deferred_nonblocking readiness items require a reason")
    if event == "decision_accepted":
        return
    if readiness.ready is None:
        raise Refused("readiness.md must check 'Ready to implement' first")
    if event == "completed":
        gates = schema.gate_texts(opened.protocol)
        unmet = [gate for gate in gates if gate not in readiness.checked]
        if unmet:
            raise Refused(f"completion gates must be checked first: {', '.join(unmet)}")


def _conclusion(opened: Opened, edits: Sequence[Edit]) -> None:
    from acp_core.protocols.folder.schema import documents

    conclusion = documents.scan_conclusion(document_text(opened.folder, CONCLUSION, edits))
    wanted = documents.conclusion_sections(opened.dialect)
    missing = [name for name in wanted if name not in conclusion.sections]
    if missing:
        raise Refused(f"conclusion.md is missing required sections: {', '.join(missing)}")
    if len(conclusion.outcomes) != 1:
        raise Refused("conclusion.md must declare exactly one final outcome")
    if conclusion.outcomes[0][0] == "blocked":
        raise Refused("conclusion.md outcome cannot be completed while blocked")
    if conclusion.placeholders:
        raise Refused("conclusion.md must not contain unresolved placeholders before completed")


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
    return read_bounded(path, schema.MAX_DOCUMENT)


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
    if entry.sha256 is None and entry.event != "deliverable_frozen":
        return entry
    root = deliverables.root_of(declaration, opened.folder)
    path = deliverables.path_of(declaration, item, root)
    if path is None:
        raise Refused(root.problem or f"{entry.doc} lies outside its folder")
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
    """What does not stop the event, but should be known: a review without its heading."""
    if entry.event != "review_submitted":
        return ()
    from acp_core.protocols.folder.schema import documents

    try:
        review = documents.scan_review(document_text(opened.folder, "review.md", edits))
    except Refused as error:
        return (str(error),)
    heading = review.headings.get(entry.seq or 0)
    if heading and heading.participant == entry.sender:
        return ()
    wanted = f"## {entry.at} - {entry.sender} - seq {entry.seq}"
    return (f"review.md has no heading `{wanted}` yet: write it, or use --review-file",)
