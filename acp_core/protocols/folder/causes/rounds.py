"""Whether reviews converge: how many changes they ask for, round after round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from acp_core.files.markdown import normalise
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts

_REQUIRED = re.compile(r"^(?:#{3,6} +|\*{0,2})Required Changes\b", re.IGNORECASE)
_TITLE = re.compile(r"^(?:#{3,6} +\S|\*{0,2}[A-Z][\w /-]{2,60}:\*{0,2}\s*$)")
_SEQ = re.compile(r"seq ([0-9]{1,15})\s*$")
_BULLET = re.compile(r"^ {0,3}(?:[-*+]|\d{1,3}[.)]) +(.+)$")
_NOTHING = re.compile(r"(?:none|nothing|n/a|no )\b|[-–—.]*$", re.IGNORECASE)


# Level 2 begins a review, with its title; level 1 ends one.
_HEADING = re.compile(r"^#(?: [^\n]*|# ([^\n]*))$", re.MULTILINE)
_LOOKED = 2_000  # events from the end that are looked at


def required(facts: Facts) -> Iterator[int]:
    """How many changes each of the latest full rounds required, newest first.

    No more of the log is looked at than is asked for.
    """
    history = facts.history
    entries = history.entries
    start = max(0, len(entries) - _LOOKED)
    if history.check.regular:
        first = start + 1
    else:
        first = min((e.seq for e in entries[start:] if e.seq is not None), default=0)
    review = facts.path("review.md")
    asked = _asked(review, stamp(review), first - first % _LOOKED)
    named: list[int] = []
    for index in range(len(entries) - 1, start - 1, -1):
        entry = entries[index]
        if entry.event == "review_submitted" and entry.seq in asked:
            named.append(asked[entry.seq])
        elif entry.event == "proposal_submitted":
            if named:
                yield sum(named)
            named = []


@lru_cache(maxsize=64)
def _asked(path: str, of: Stamp | None, least: int) -> dict[int, int]:
    """`required_changes` of a file, worked out again only when the file changed."""
    try:
        data = read_bounded(path, schema.MAX_DOCUMENT)
    except Unreadable:
        return {}
    return required_changes(_latest(normalise(data.decode(errors="replace")), least), least)


def _latest(text: str, least: int) -> str:
    """The reviews after the last one below ``least``: they are written down in their order."""
    at = len(text)
    while (at := text.rfind("\n## ", 0, at)) >= 0:
        end = text.find("\n", at + 4)
        numbered = _SEQ.search(text[at + 4 : end if end >= 0 else len(text)])
        if numbered and int(numbered[1]) < least:
            return text[at + 1 :]
    return text


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
