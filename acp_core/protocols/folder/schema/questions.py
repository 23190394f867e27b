"""The questions that reviews ask: a pure function of review.md's text.

Source: folder protocol specification, "Review Format" (the part "Questions:"). Linear in the
text. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from acp_core.model.light import NamedTuple

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


# Where a part with questions may begin: found at one go in a text that mostly asks nothing. Python
# searches fast for the newline before it; what stands in the first line belongs to no review.
_ASKING = re.compile(
    r"\n[*_]{0,3}(?:O[Pp][Ee][Nn] [Qq]|Q)[Uu][Ee][Ss][Tt][Ii][Oo][Nn][Ss]? *[*_]{0,3}:"
)


def may_ask(text: str) -> bool:
    """Whether a part with questions may stand in review.md."""
    return _ASKING.search(text) is not None


def questions(text: str, seqs: Mapping[int, int]) -> tuple[Asked, ...]:
    """What the reviews ask, in order.

    Args:
        text: review.md, with "\n" as its only line end.
        seqs: the line of each review's heading -> the review's seq.
    """
    found: list[Asked] = []
    reading = _Reading(text, seqs, found)
    while len(found) <= MOST and (begins := reading.search()) is not None:
        reading.go_to(begins)
        reading.read_part()
    return tuple(each for each in found[:MOST] if not _NOTHING.fullmatch(each.text.strip()))


class _Reading:
    """How far review.md was read; only ever forward, so that all is linear."""

    def __init__(self, text: str, seqs: Mapping[int, int], found: list[Asked]) -> None:
        self.position, self._line = 0, 1  # the line that begins there
        self._text, self._seqs, self._found = text, seqs, found
        self._seq = seqs.get(1) if text.startswith("## ") else None  # of the nearest heading

    def search(self) -> int | None:
        """Where the next line stands with which a part with questions may begin."""
        found = _ASKING.search(self._text, max(self.position - 1, 0))
        return found.start() + 1 if found else None

    def go_to(self, start: int) -> None:
        """Pass over everything before a line."""
        text, before = self._text, max(self.position - 1, 0)
        heading = text.rfind("\n## ", before, start) + 1
        if heading:
            line = self._line + text.count("\n", self.position, heading)
            self._seq = self._seqs.get(line)
        self._line += text.count("\n", self.position, start)
        self.position = start

    def read_part(self) -> None:
        """Read lines for as long as they ask."""
        asking = False
        while self.position < len(self._text) and len(self._found) <= MOST:
            end = self._text.find("\n", self.position)
            end = len(self._text) if end < 0 else end
            line = self._text[self.position : end]
            if line.startswith("#"):
                return
            asking = self._asks(line, asking)
            self.position, self._line = end + 1, self._line + 1
            if not asking:
                break
        self.position = min(self.position, len(self._text))

    def _asks(self, line: str, asking: bool) -> bool:
        """Take a line; whether what follows it are questions."""
        if self._seq is None:
            return False
        part = _PART.fullmatch(line.rstrip()[:400])
        if part is None:
            if asking and line.strip():
                _take(self._found, self._seq, line, self._line)
            return asking
        asking = part[1].strip().lower() in ("questions", "open questions", "question")
        if asking and part[2]:
            self._found.append(Asked(self._seq, part[2], self._line, self._line))
        return asking


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
