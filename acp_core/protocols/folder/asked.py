"""The questions that reviews ask: a pure function of review.md's text.

Source: folder protocol specification, "Review Format" (the part "Questions:"). Linear in the
text. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MOST = 200  # questions that are kept
ANSWER = "Answer:"  # begins the line below a question that answers it
OVER = ("completed", "blocked", "")  # phases in which nothing is asked any more
TEMPLATE = "The open questions have not been listed yet; replace this line."


class Asked(NamedTuple):
    """A question of a review.

    ``seq`` is the review's; ``line`` that of the question, ``end`` the last one that belongs to
    it; ``answered`` says that an answer stands below it.
    """

    seq: int
    text: str
    line: int
    end: int = 0
    answered: bool = False


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
                found.append(Asked(seq, part[2], number, number))
        elif asking and line.strip():
            _take(found, seq, line, number)
    return tuple(each for each in found[:MOST] if not _NOTHING.fullmatch(each.text.strip()))


def _take(found: list[Asked], seq: int, line: str, number: int) -> None:
    """A bullet is a question; what is indented below one belongs to it."""
    bullet = _BULLET.fullmatch(line.strip())
    if bullet is not None and not line.startswith(("    ", "\t")):
        found.append(Asked(seq, bullet[1], number, number))
    elif found and found[-1].seq == seq and line[0] in " \t":
        last = found[-1]._replace(end=number)
        if last.answered or line.strip().startswith(ANSWER):
            last = last._replace(answered=True)
        elif len(last.text) < 2_000:
            last = last._replace(text=f"{last.text} {line.strip()}")
        found[-1] = last
    elif bullet is None:
        found.append(Asked(seq, line.strip(), number, number))
