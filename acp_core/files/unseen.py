"""Where a file holds text that people cannot see, and programs read. Standard library only.

Tag characters, signs without a width and piles of marks reach a program as text, and the person who
supervises it not at all. Documents are read as they are, JSON with its escapes.
"""

from __future__ import annotations

import re

from acp_core.model.light import NamedTuple
from acp_core.model.text import clean_line, spelled, unseen

_ESCAPES = r"(?:\\u[0-9a-fA-F]{4})+"  # compiled where it is needed: seldom
_BOM = b"\xef\xbb\xbf"


class Unseen(NamedTuple):
    """Lines with such text.

    Attributes:
        lines: how many there are.
        first: the first of them, counted from 1; 0 for none.
        characters: what cannot be seen in it.
    """

    lines: int = 0
    first: int = 0
    characters: str = ""

    @property
    def words(self) -> str:
        """What programs read in it, where it spells something; safe to show."""
        return clean_line(spelled(self.characters), 120)

    @property
    def sentence(self) -> str:
        """What is wrong, without its full stop."""
        count = len(self.characters)
        signs = f"{count} character{'s' * (count != 1)} that people cannot see"
        words = f"; programs read “{self.words}”" if self.words else ""
        more = f" ({self.lines} lines contain such text)" if self.lines > 1 else ""
        return f"line {self.first} holds {signs}{words}{more}"

    def then(self, later: Unseen) -> Unseen:
        """Both together; ``later`` stands behind this in the file."""
        if not self.lines or not later.lines:
            return later if later.lines else self
        return Unseen(self.lines + later.lines, self.first, self.characters)


NOTHING = Unseen()


def unseen_lines(data: bytes, first: int = 1, *, json: bool = False) -> Unseen:
    """The lines of ``data`` that hold such text.

    Args:
        data: lines; what is no UTF-8 in them is left out.
        first: the number of the first line.
        json: whether an escape such as ``\\u200b`` stands for its character.
    """
    if data.isascii() and not (
        json and b"\\" in data and b"\\u" in data
    ):  # one byte is found faster
        return NOTHING
    hits = [
        (number, characters)
        for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), first)
        if (characters := _unseen(line, json))
    ]
    return Unseen(len(hits), *hits[0]) if hits else NOTHING


def _unseen(line: bytes, json: bool) -> str:
    if line.isascii() and not (json and b"\\u" in line):
        return ""
    text = line.decode("utf-8", "ignore")
    return unseen(re.sub(_ESCAPES, _unescaped, text) if json else text)


def _unescaped(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("\\u", "")).decode("utf-16-be", "replace")
