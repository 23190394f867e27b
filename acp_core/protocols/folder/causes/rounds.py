"""Whether reviews converge: how many changes they ask for, round after round."""

from __future__ import annotations

import re
from functools import lru_cache

from acp_core.files.markdown import normalise, sections
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.facts import Facts

_REQUIRED = re.compile(r"^(?:#{3,6} +|\*{0,2})Required Changes\b", re.IGNORECASE)
_TITLE = re.compile(r"^(?:#{3,6} +\S|\*{0,2}[A-Z][\w /-]{2,60}:\*{0,2}\s*$)")
_SEQ = re.compile(r"seq ([0-9]{1,15})\s*$")
_BULLET = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)]) +(.+)$")
_NOTHING = re.compile(r"(?:none|nothing|n/a|no )\b|[-–—.]*$", re.IGNORECASE)


_LOOKED = 2_000  # events from the end that are looked at


def converges(facts: Facts) -> list[int]:
    """How many required changes each of the latest full rounds named, oldest first."""
    review = facts.path("review.md")
    asked = _asked(review, stamp(review))
    rounds: list[list[int]] = []
    for entry in facts.history.entries[-_LOOKED:]:
        if entry.event == "proposal_submitted":
            rounds.append([])
        elif entry.event == "review_submitted" and rounds and entry.seq in asked:
            rounds[-1].append(asked[entry.seq])
    return [sum(named) for named in rounds if named]


@lru_cache(maxsize=64)
def _asked(path: str, of: Stamp | None) -> dict[int, int]:
    """`required_changes` of a file, worked out again only when the file changed."""
    try:
        data = read_bounded(path, schema.MAX_DOCUMENT)
    except Unreadable:
        return {}
    return required_changes(normalise(data.decode(errors="replace")))


def required_changes(text: str) -> dict[int, int]:
    """Seq of each review -> how many changes it requires, in bullets."""
    found: dict[int, int] = {}
    for part in sections(text, 2):
        seq = _SEQ.search(part.title)
        if seq is None:
            continue
        count, inside = 0, False
        for line in part.body.split("\n"):
            if _REQUIRED.match(line):
                inside = True
            elif _TITLE.match(line):
                inside = False
            elif inside and (bullet := _BULLET.match(line)) and not _NOTHING.match(bullet[1]):
                count += 1
        found[int(seq[1])] = count
    return found
