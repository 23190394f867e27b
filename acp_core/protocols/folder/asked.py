"""The questions that reviews ask: a pure function of review.md's text.

Source: folder protocol specification, "Review Format" (the part "Questions:"). Linear in the
text. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MOST = 200  # questions that are kept


class Asked(NamedTuple):
    """A question of a review: the review's seq, the question, its line."""

    seq: int
    text: str
    line: int


_PART = re.compile(r"[*_]{0,3}([A-Z][A-Za-z ]{1,40})[*_]{0,3}:[*_]{0,3}\s*(.*)")
_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(.*)")
_NOTHING = re.compile(
    r"(?:[-*+] )?[*_]{0,3}(?:(?:none|nothing|n/a)(?: (?:yet|so far|for now|at this time|open))?"
    r"|no (?:open |further |more |other )?questions?(?: (?:yet|so far|for now))?)?[*_.!…–—-]{0,5}",
    re.I,
)


def questions(text: str, seqs: Mapping[int, int]) -> tuple[Asked, ...]:
    """What the reviews ask, in order.

    Args:
        text: review.md, with "\\n" as its only line end.
        seqs: the line of each review's heading -> the review's seq.
    """
    found: list[Asked] = []
    seq, asking = None, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            asking = False
            if line.startswith("## "):
                seq = seqs.get(number)
            continue
        if seq is None or len(found) > MOST:
            continue
        part = _PART.fullmatch(line.rstrip()[:400])
        if part is not None:
            asking = part[1].strip().lower() in ("questions", "open questions", "question")
            if asking and part[2]:
                found.append(Asked(seq, part[2], number))
        elif asking and line.strip():
            _take(found, seq, line, number)
    return tuple(each for each in found[:MOST] if not _NOTHING.fullmatch(each.text.strip()))


def _take(found: list[Asked], seq: int, line: str, number: int) -> None:
    """A bullet is a question; what is indented below one belongs to it."""
    bullet = _BULLET.fullmatch(line.strip())
    if bullet is not None and not line.startswith(("    ", "\t")):
        found.append(Asked(seq, bullet[1], number))
    elif found and found[-1].seq == seq and line[0] in " \t":
        last = found[-1]
        if len(last.text) < 2_000:
            found[-1] = last._replace(text=f"{last.text} {line.strip()}")
    elif bullet is None:
        found.append(Asked(seq, line.strip(), number))
