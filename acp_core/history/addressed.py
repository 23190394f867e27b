"""Which changes that reviews asked for a revision touched: inferred, and the reason is said.

A review names no line of the proposal. A request counts as touched where it names a section in
which something changed, or where enough of its words stand in what changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from acp_core.history import diff as differ
from acp_core.history.diff import NEW, SAME, Line
from acp_core.model.story import Request

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
    sections = [(title, _folded(title)) for title in differ.sections(diff)]
    changed = _words("\n".join(line.text for line in diff if line.sign != SAME))
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
        words = _words(request.text)
        shared = tuple(word for stem, word in words.items() if stem in changed)
        if len(shared) >= _FEWEST and len(shared) >= _SHARE * len(words):
            found.append(Touched(request, "", shared))
    return found


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _words(text: str) -> dict[str, str]:
    """The words that say something, by their stems."""
    words = [word for word in _WORD.findall(text.casefold()) if word not in _COMMON]
    return {_stem(word): word for word in words}


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
