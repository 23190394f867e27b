"""Whether proposal.md proposes anything: a pure function of its text.

Source: folder protocol specification, "Phases" (``drafting``). Standard library only: the proposal's
owner runs this when it submits, and nothing else of `documents` is needed then.
"""

from __future__ import annotations

import re

from acp_core.files import markdown

_PROPOSED = "Current Proposal"
_CONTENT = re.compile(r"^(?![^\S\n]*(?:#|<!--|$))[^\n]+$", re.MULTILINE)
_UNWRITTEN = re.compile(
    r"(?:tbd|todo|none|nothing|none yet|nothing yet|pending|not written yet|not yet written|"
    r"to be (?:written|done|defined|determined)|<[^>\n]*>|[.…]*)\.?",
    re.IGNORECASE,
)


def is_unwritten(text: str) -> bool:
    """Whether proposal.md still says what it said when the collaboration began: nothing."""
    bodies = [part.body for part in markdown.sections(text, 2) if part.title == _PROPOSED]
    if not bodies:
        return _CONTENT.search(text) is None
    words = (line.strip(" \t-*") for body in bodies for line in body.splitlines())
    return all(_UNWRITTEN.fullmatch(line) for line in words)
