"""Commands that mean the same in every shell: words, quoted or not, and nothing else.

Which shell a program hands its command to is not known, so a command counts only if all of them
read the same words in it. Standard library only.
"""

from __future__ import annotations

import re

_WORD = r"[A-Za-z0-9_@%+:,./=-]+"
_QUOTED = r"'[^'\\]*'"
_DOUBLE = r'"[^"\\$`!]*"'
_PART = re.compile(f"{_WORD}|{_QUOTED}|{_DOUBLE}")
_GAP = re.compile(r" +")


def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of a command; None where a shell could do more than run them.

    Only ASCII letters, digits and ``_@%+:,./=-`` stand outside of quotes. No backslash and no
    character that cannot be printed stands anywhere, nor an expansion within double quotes: shells
    differ in what they make of those. The first word assigns no variable, and none begins with
    ``=``, which one shell expands.
    """
    if not command.isprintable():
        return None
    words: list[str] = []
    text = command.strip(" ")
    place = 0
    while place < len(text):
        word, start = "", place
        while part := _PART.match(text, place):
            quoted = part[0][0] in "'\""
            word += part[0][1:-1] if quoted else part[0]
            place = part.end()
        if place == start or text[start] == "=":
            return None
        words.append(word)
        if place < len(text):
            gap = _GAP.match(text, place)
            if gap is None:
                return None
            place = gap.end()
    if not words or not words[0] or "=" in words[0]:
        return None
    return tuple(words)
