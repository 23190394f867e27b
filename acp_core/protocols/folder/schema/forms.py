"""Lines of a document's first form: they show how something is written, and say nothing.

Whoever starts a collaboration writes documents that hold placeholders, legends and instructions, each
program its own. They are known by their shape, so that no advice is given about them.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

# A slot (<reason>, {id}, ...), or a choice ([a|b], [a / b]) where one word is wanted.
# What is seldom needed is compiled where it is: agents run the validator at every turn.
_SLOT = re.compile(r"<[^<>\n]+>|\{[^{}\n]+\}|\.\.\.|…")
_CHOICE = r"\w\s*[|/]\s*\w"
_IN_CODE = r"^(?:[-*+]|\d{1,9}[.)])\s*`\[(\w+)\]`"
_LEGEND = 3  # classes, each named once, that make lines a legend of them

_NOTHING = re.compile(
    r"(?:(?:there (?:are|is) )?(?:currently )?(?:none|nothing|n/a|no (?:\w+ ){0,3}(?:blockers?|issues?|items?))\b"
    r"|(?:tbd|todo|pending|not (?:yet )?(?:known|written|recorded|determined|applicable)"
    r"|to be (?:\w+ )?(?:added|confirmed|defined|determined|done|recorded|written))\b[^\w\n]*$"
    r"|[-–—.…]*$)",
    re.IGNORECASE,
)
_INSTRUCTION = (
    r"(?i)(?:add|capture|classify|describe|enter|keep|list|mark|move|put|record|replace|write) "
    r"(?:a|all|any|blockers?|blocking|concrete|each|every|here|items?|one|only|open|remaining|the|this|unresolved)\b"
)
_NUMBERED = re.compile(r"\bseq\w*\W{0,6}\d", re.IGNORECASE)

Place = tuple[str, int]
"""A text and the line in which it stands."""


def is_slot(word: str) -> bool:
    """Whether what stands in brackets is a slot or a choice, and no word of a class."""
    return _SLOT.search(word) is not None or re.search(_CHOICE, word) is not None


def without_legend(places: Sequence[Place], classes: Collection[str]) -> tuple[Place, ...]:
    """The lines without those that explain the classes: one below the other, each class once, as code."""
    runs: list[list[Place]] = []
    for place in places:
        if runs and place[1] == runs[-1][-1][1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return tuple(place for run in runs if not _is_legend(run, classes) for place in run)


def _is_legend(lines: Sequence[Place], classes: Collection[str]) -> bool:
    words = [match[1] for text, _ in lines if (match := re.match(_IN_CODE, text))]
    once = len(words) == len(set(words)) == len(lines)
    return once and len(set(words) & set(classes)) >= _LEGEND


def says_nothing(bullet: str, *, alone: bool) -> bool:
    """Whether a bullet is a placeholder or an instruction; ``alone``: it is its section's only one."""
    text = bullet.strip(" \t*_`").removesuffix(".")
    if _NOTHING.match(text) or _SLOT.fullmatch(text):
        return True
    return (alone and re.match(_INSTRUCTION, text) is not None) or "`[" in bullet


def names_a_review(title: str) -> bool:
    """Whether a heading means one certain review: it has a number, and no slot."""
    return _NUMBERED.search(title) is not None and _SLOT.search(title) is None
