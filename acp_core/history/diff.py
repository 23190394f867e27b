"""What became of a text: lines that stayed, went and came, in changed lines the words, and what was asked for.

Pure. Long texts are compared less exactly, so that it never takes long.

Which changes that reviews asked for a revision touched is inferred, and the reason is said: a review
names no line of the proposal. A request counts as touched where it names a section in which something
changed, or where enough of its words stand in what changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from acp_core.model.past import Request

SAME, OLD, NEW = " ", "-", "+"
EXACT = 4_000  # lines of both texts up to which the comparison is exact; then it is good enough
_WORDS = 400  # words of a line that are compared
_ALIKE = 0.4  # share of a line's words that must be the same for two lines to be one that changed
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
Piece = tuple[str, bool]
"""A part of a line, and whether it changed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: ``sign`` is `SAME`, `OLD` or `NEW`; numbers count from 1, None where it is not there."""

    sign: str
    old: int | None
    new: int | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece for piece, _ in self.pieces)


def lines(old: str, new: str) -> list[Line]:
    """Every line of both texts, in order; of a line that changed, the old form comes first.

    Args:
        old, new: the texts, with "\\n" as their only line end.
    """
    before, after = _split(old), _split(new)
    found: list[Line] = []
    matcher = SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > EXACT)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            found += [
                Line(SAME, i + 1, j1 + (i - i1) + 1, ((before[i], False),)) for i in range(i1, i2)
            ]
        else:
            found += _changed(before[i1:i2], after[j1:j2], i1, j1)
    return found


def unseen(old: bytes, new: bytes, diff: Sequence[Line]) -> list[str]:
    """What is different in the bytes and not in the lines, in sentences: line ends above all."""
    before, after = _ends(old), _ends(new)
    found = []
    if before[0] != after[0]:
        found.append(f"line ends: {before[0]} → {after[0]}")
    if before[1] != after[1]:
        found.append("the last line now ends with a newline" if after[1] else
                     "the last line no longer ends with a newline")  # fmt: skip
    if not found and old != new and not is_changed(diff):
        found.append("the files differ only in bytes that are not visible as text")
    return found


def _ends(text: bytes) -> tuple[str, bool]:
    crlf, cr, lf = text.count(b"\r\n"), text.count(b"\r"), text.count(b"\n")
    counts = {"LF": lf - crlf, "CR LF": crlf, "CR": cr - crlf}
    used = [name for name, count in counts.items() if count]
    how = (
        " and ".join(f"{counts[name]} {name}" for name in used) if len(used) > 1 else "".join(used)
    )
    return how or "none", not text or text.endswith((b"\n", b"\r"))


def is_changed(diff: Sequence[Line]) -> bool:
    """Whether anything is different."""
    return any(line.sign != SAME for line in diff)


def hunks(diff: Sequence[Line], context: int = 3) -> list[list[Line]]:
    """The changed places, each with some unchanged lines around it."""
    changed = [place for place, line in enumerate(diff) if line.sign != SAME]
    found: list[list[Line]] = []
    end = -1
    for place in changed:
        first, last = max(place - context, 0), min(place + context, len(diff) - 1)
        if found and first <= end + 1:
            found[-1] += diff[end + 1 : last + 1]
        else:
            found.append([*diff[first : last + 1]])
        end = max(end, last)
    return found


def changed_sections(diff: Sequence[Line]) -> list[str]:
    """The headings below which something changed, in order, each once."""
    found: dict[str, None] = {}
    heading = ""
    for line in diff:
        title = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line.text)
        if title and line.sign != OLD:
            heading = title[1]
        if line.sign != SAME and line.text.strip():
            found.setdefault(heading)
    return [title for title in found if title]


def _split(text: str) -> list[str]:
    split = text.split("\n")
    return split[:-1] if split and not split[-1] else split


def _changed(old: list[str], new: list[str], i: int, j: int) -> list[Line]:
    """Lines that were exchanged: two that are alike stand together, compared word by word."""
    found: list[Line] = []
    gone: list[Line] = []
    come: list[Line] = []
    for place in range(max(len(old), len(new))):
        both = place < len(old) and place < len(new)
        pair = _words(old[place], new[place]) if both else None
        if pair:
            found += [*gone, *come]
            found.append(Line(OLD, i + place + 1, None, pair[0]))
            found.append(Line(NEW, None, j + place + 1, pair[1]))
            gone, come = [], []
            continue
        if place < len(old):
            gone.append(Line(OLD, i + place + 1, None, ((old[place], True),)))
        if place < len(new):
            come.append(Line(NEW, None, j + place + 1, ((new[place], True),)))
    return [*found, *gone, *come]


def _words(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """Two forms of a line by their words; None where they have too little in common."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if not before or not after or len(before) > _WORDS or len(after) > _WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        changed = kind != "equal"
        if i2 > i1:
            left.append(("".join(before[i1:i2]), changed))
        if j2 > j1:
            right.append(("".join(after[j1:j2]), changed))
    return tuple(left), tuple(right)


_WORD = re.compile(r"\w{4,}")
_SHARE = 0.5  # of a request's words that must stand in what changed
_FEWEST = 2
_COMMON = frozenset(
    {
        "about", "also", "been", "change", "does", "each", "every", "from", "have", "into", "make",
        "must", "name", "need", "never", "only", "other", "please", "section", "should", "that",
        "their", "them", "then", "there", "these", "they", "this", "those", "what", "when",
        "where", "which", "will", "with", "would", "your",
    }
)  # fmt: skip


class Touched(NamedTuple):
    """A request, and why it counts as touched: ``section`` it names, else ``words`` it shares."""

    request: Request
    section: str
    words: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.section:
            return f"it names the section “{self.section}”"
        return f"shared words: {', '.join(self.words)}"


def touched(requests: Sequence[Request], diff: Sequence[Line]) -> list[Touched]:
    """The requests that a revision touched, in their order.

    Args:
        requests: of the reviews between the two versions.
        diff: of the two versions, see `acp_core.history.diff.lines`.
    """
    sections = [(title, _folded(title)) for title in changed_sections(diff)]
    changed = _words_by_stem("\n".join(line.text for line in diff if line.sign != SAME))
    new = _folded("\n".join(line.text for line in diff if line.sign == NEW))
    found = []
    for request in requests:
        text = _folded(request.text)
        if text in new:  # this is where it was asked for
            continue
        named = [
            t for t, folded in sections if folded and re.search(rf"\b{re.escape(folded)}\b", text)
        ]
        if named:
            found.append(Touched(request, max(named, key=len), ()))
            continue
        words = _words_by_stem(request.text)
        shared = tuple(word for stem, word in words.items() if stem in changed)
        if len(shared) >= _FEWEST and len(shared) >= _SHARE * len(words):
            found.append(Touched(request, "", shared))
    return found


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _words_by_stem(text: str) -> dict[str, str]:
    """The words that say something, by their stems."""
    words = [word for word in _WORD.findall(text.casefold()) if word not in _COMMON]
    return {_stem(word): word for word in words}


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
