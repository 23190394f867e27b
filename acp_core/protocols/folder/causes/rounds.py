"""Whether reviews converge: how many changes they ask for, round after round."""

from __future__ import annotations

import re
from functools import lru_cache

from acp_core.files.markdown import normalise
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.facts import Facts

_REQUIRED = re.compile(r"^(?:#{3,6} +|\*{0,2})Required Changes\b", re.IGNORECASE)
_TITLE = re.compile(r"^(?:#{3,6} +\S|\*{0,2}[A-Z][\w /-]{2,60}:\*{0,2}\s*$)")
_SEQ = re.compile(r"seq ([0-9]{1,15})\s*$")
_BULLET = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)]) +(.+)$")
_NOTHING = re.compile(r"(?:none|nothing|n/a|no )\b|[-–—.]*$", re.IGNORECASE)


# Level 2 begins a review, with its title; level 1 ends one.
_HEADING = re.compile(r"^#(?: [^\n]*|# ([^\n]*))$", re.MULTILINE)
_LOOKED = 2_000  # events from the end that are looked at


def converges(facts: Facts) -> list[int]:
    """How many required changes each of the latest full rounds named, oldest first."""
    review = facts.path("review.md")
    latest = facts.history.entries[-_LOOKED:]
    first = min((entry.seq for entry in latest if entry.seq is not None), default=0)
    asked = _asked(review, stamp(review), first - first % _LOOKED)
    rounds: list[list[int]] = []
    for entry in latest:
        if entry.event == "proposal_submitted":
            rounds.append([])
        elif entry.event == "review_submitted" and rounds and entry.seq in asked:
            rounds[-1].append(asked[entry.seq])
    return [sum(named) for named in rounds if named]


@lru_cache(maxsize=64)
def _asked(path: str, of: Stamp | None, least: int) -> dict[int, int]:
    """`required_changes` of a file, worked out again only when the file changed."""
    try:
        data = read_bounded(path, schema.MAX_DOCUMENT)
    except Unreadable:
        return {}
    return required_changes(normalise(data.decode(errors="replace")), least)


def required_changes(text: str, least: int = 0) -> dict[int, int]:
    """Seq of each review from ``least`` on -> how many changes it requires, in bullets."""
    found: dict[int, int] = {}
    seq, start = None, 0
    for match in _HEADING.finditer(text):
        if seq is not None:
            found[seq] = _changes(text[start : match.start()])
        numbered = _SEQ.search(match.group(1) or "")
        seq, start = int(numbered[1]) if numbered else None, match.end()
        if seq is not None and seq < least:
            seq = None
    if seq is not None:
        found[seq] = _changes(text[start:])
    return found


def _changes(body: str) -> int:
    """The bullets below the titles that say what must change."""
    count, inside = 0, False
    for line in body.split("\n"):
        if _REQUIRED.match(line):
            inside = True
        elif _TITLE.match(line):
            inside = False
        elif inside and (bullet := _BULLET.match(line)) and not _NOTHING.match(bullet[1]):
            count += 1
    return count
