"""What the validator would say if an event had been appended: asked before it is.

Source: folder protocol specification, "Readiness Gate" (the validator must pass before
readiness_passed and completed). Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from acp_core.model.light import NamedTuple
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import judge
from acp_core.protocols.folder.schema.records import DELIVERABLE_EVENTS, Entry, Finding
from acp_core.protocols.folder.write.edits import Edit
from acp_core.protocols.folder.write.gates import MUST_BE_VALID
from acp_core.protocols.folder.write.opened import Opened, with_state

_NO_HEADING = "ACP301"  # a review's heading may be written after its event
_STRAY = frozenset({"ACP302", "ACP303", "ACP304"})  # a heading without its review, by any event
_OF_DOCUMENTS = frozenset(
    {"ACP310", "ACP311", "ACP312", "ACP313", "ACP314", "ACP320", "ACP321", "ACP322", "ACP323"}
)
_OF_TEXT = frozenset({"ACP510", "ACP511", "ACP513", "ACP515"})  # of a deliverable's draft
_MOST = 20  # reasons that are listed


class Foreseen(NamedTuple):
    """What the validator would say.

    Attributes:
        errors: those for which the event is refused.
        warnings: what is wrong with a deliverable or the headings of reviews already, in words.
        whole: whether the event needs a valid collaboration; others must only break nothing.
    """

    errors: tuple[Finding, ...]
    warnings: tuple[str, ...]
    whole: bool


def foresee(opened: Opened, entry: Entry, after: Opened, edits: Sequence[Edit]) -> Foreseen:
    """Suppose that an event was appended, and judge.

    ``readiness_passed`` and ``completed`` need a valid collaboration; other events must only
    not break what was in order. What the event itself cures (protocol.json that lags) is no
    obstacle.
    """
    whole = entry.event in MUST_BE_VALID
    facts = Facts(opened.folder, grace=0.0, verify=False)
    facts.refresh(time.time())
    before = judge(facts).errors
    facts.suppose(with_state(after), entry, {edit.path: edit.after for edit in edits})
    then = judge(facts).errors
    known = {_matter(finding) for finding in before if not _stays(finding, entry)}
    new = (f for f in then if _matter(f) not in known and f.code != _NO_HEADING)
    drafts = (f.message for f in then if f.code in _OF_TEXT | _STRAY and _matter(f) in known)
    warned = entry.event in DELIVERABLE_EVENTS
    return Foreseen(then if whole else tuple(new), tuple(drafts) if warned else (), whole)


def _stays(finding: Finding, entry: Entry) -> bool:
    """Whether it could not be mended after the event: what is frozen does not change any more."""
    frozen = entry.event == "deliverable_frozen" and finding.file == entry.doc
    return frozen and finding.code in _OF_TEXT


def _matter(finding: Finding) -> str:
    """What a finding is about: a stray heading stays one, whatever event bears its number."""
    stray = finding.code in _STRAY
    return f"{finding.file}:{finding.line}" if stray else finding.message


def new_reasons(foreseen: Foreseen, reasons: Iterable[str]) -> list[str]:
    """The errors that are foreseen and that no reason has named yet, as the end of a refusal."""
    named = [*reasons]
    errors = [
        finding.message
        for finding in foreseen.errors
        if finding.message not in named and not (named and finding.code in _OF_DOCUMENTS)
    ]
    if not errors:
        return []
    more = [f"and {len(errors) - _MOST} more"] if len(errors) > _MOST else []
    must, breaks = "validate must pass first", "that would make the collaboration invalid"
    *first, last = [*errors[:_MOST], *more]
    return [*first, f"{last}: {must if foreseen.whole else breaks}"]
