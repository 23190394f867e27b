"""The structure of Markdown: headings, sections, check boxes, each with its line number.

Every function takes time linear in the text, whatever the text. Line ends are "\\n" only
(`normalise` makes them so); lines count from 1. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core.model.light import NamedTuple


class Heading(NamedTuple):
    """A heading: level 1 to 6, its text without the signs, its line."""

    level: int
    title: str
    line: int


class Section(NamedTuple):
    """A part under a heading: ``line`` is the heading's, ``body`` what follows it."""

    title: str
    line: int
    body: str


class CheckBox(NamedTuple):
    """A line ``- [ ] text`` or ``- [x] text``."""

    checked: bool
    text: str
    line: int


class Lines:
    """Line numbers of positions in a text that only go forward: linear in all."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._line = 1

    def at(self, position: int) -> int:
        """The line in which ``position`` lies; never smaller than one asked for before."""
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line


# At most three spaces before; the closing signs of "## Title ##" are cut off in `_title`.
_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+([^\n]*))?$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_HEADING_OR_FENCE = re.compile(rf"{_HEADING.pattern}|{_FENCE.pattern}", re.MULTILINE)
_CHECK_BOX = re.compile(r"^[^\S\n]*[-*+] \[([ xX])\] ([^\n]*)$", re.MULTILINE)


def normalise(text: str) -> str:
    """``text`` with "\\n" as its only line end, as Python's text files are read."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def headings(text: str) -> tuple[Heading, ...]:
    """The headings that a reader of the rendered text sees: those in code fences are none."""
    found = []
    lines = Lines(text)
    fence = ""
    for match in _HEADING_OR_FENCE.finditer(text):
        signs, title, opening, info = match.groups()
        if opening:
            if not fence and not (opening[0] == "`" and "`" in info):
                fence = opening
            elif opening[:1] == fence[:1] and len(opening) >= len(fence) and not info.strip():
                fence = ""
        elif not fence:
            found.append(Heading(len(signs), _title(title or ""), lines.at(match.start())))
    return tuple(found)


def _title(text: str) -> str:
    title = text.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def sections(text: str, level: int) -> Iterator[Section]:
    """The parts under each heading of exactly ``level``, up to the next of that level or above.

    Plain lines that begin with the signs and a space: what stands in code fences counts too.
    """
    pattern = re.compile(rf"^#{{1,{level}}} [^\n]*$", re.MULTILINE)
    own = "#" * level + " "
    lines = Lines(text)
    title, line, start = None, 0, 0
    for match in pattern.finditer(text):
        if title is not None:
            yield Section(title, line, text[start : match.start()])
        found = match.group()
        title = found[len(own) :].strip() if found.startswith(own) else None
        line, start = lines.at(match.start()), match.end()
    if title is not None:
        yield Section(title, line, text[start:])


def check_boxes(text: str) -> Iterator[CheckBox]:
    """The check boxes, wherever they stand."""
    lines = Lines(text)
    for match in _CHECK_BOX.finditer(text):
        mark, label = match.groups()
        yield CheckBox(mark != " ", label.strip(), lines.at(match.start()))
