"""What CD writes into issues.md: what blocks it, and what it asks of RA.

Source: development cycle specification, "Conflict Resolution". Whatever stands under a heading
with "resolved" in it is settled, and so is an item that is ticked off.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$")
_ISSUE = re.compile(r"^(?:issue\s*#?\d+\s*[:.-]\s*)?(.*)$", re.IGNORECASE)
_BLOCKER = re.compile(r"^[\s*_-]*blocker[\s*_]*:[\s*_]*(yes|true)\b", re.IGNORECASE)
_ITEM = re.compile(r"^\s{0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)$")
_ASKED = re.compile(r"^(?:Q\d+|FR-\d+)\s*[:.-]\s*(.*)$")
_TICKED = ("[x]", "[X]", "✓", "✅", "~~")
_NOTHING = ("none", "none.", "-", "n/a", "nothing")
_MANY = 200


class Item(NamedTuple):
    """A text and the line in which it stands."""

    text: str
    line: int


class Issues(NamedTuple):
    """What is open: ``blockers`` by the titles of their issues, and ``questions`` for RA."""

    blockers: tuple[Item, ...] = ()
    questions: tuple[Item, ...] = ()


def lines_of(text: str) -> list[str]:
    """A document's lines; where it is one line with ``\\n`` spelled out, those that were meant."""
    if "\n" not in text.strip() and "\\n" in text:
        text = text.replace("\\r\\n", "\n").replace("\\n", "\n")
    return text.split("\n")


def read(text: str) -> Issues:
    """What is open in ``text``."""
    blockers: list[Item] = []
    questions: list[Item] = []
    issue = Item("", 0)
    settled, asking = 0, 0  # levels of the headings under which we are; 0: under none
    for number, line in enumerate(lines_of(text), 1):
        heading = _HEADING.match(line[:1_000])
        if heading:
            level, title = len(heading[1]), heading[2].strip()
            settled = settled if settled and level > settled else 0
            asking = asking if asking and level > asking else 0
            if "resolved" in title.lower() and "unresolved" not in title.lower():
                settled = level
            if title.lower().startswith("questions"):
                asking = level
            match = _ISSUE.match(title)
            issue = Item(match[1] if match else title, number)
        elif settled:
            continue
        elif _BLOCKER.match(line[:200]):
            blockers.append(issue)
        elif asking and (item := _ITEM.match(line[:1_000])):
            said = item[1].strip()
            if not said.startswith(_TICKED) and said.lower() not in _NOTHING:
                asked = _ASKED.match(said)
                questions.append(Item(asked[1] if asked else said, number))
    return Issues(tuple(blockers[:_MANY]), tuple(questions[:_MANY]))
