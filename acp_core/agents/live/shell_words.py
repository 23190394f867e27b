"""The words of a shell command, in what all shells have in common.

Which shell a program hands its command to is not known. `plain_words` reads a command that means the
same in every shell, and nothing else: for what is allowed. `read` takes apart a longer one, with its lists,
brackets, substitutions and redirections: for what is forbidden or asked about. It stops at what it
cannot read for certain. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WORD = r"[A-Za-z0-9_@%+:,./=-]+"
_QUOTED = r"'[^'\\]*'"
_DOUBLE = r'"[^"\\$`!]*"'
_PART = re.compile(f"{_WORD}|{_QUOTED}|{_DOUBLE}")
_GAP = re.compile(r" +")

UNKNOWN = "\0"
"""Stands for a word that only the shell knows: what it expands, or what another program appends."""
_DEEPEST = 8
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|\n]")
_REDIRECTION = re.compile(r"(?:\d+|&)?(?:>>|>\||>&|<&|<>|>|<)&?(?:\d+(?=[\s;&|)]|$)|-(?=\s|$))?")
_EXPANSION = re.compile(r"\$(?:\{[A-Za-z0-9_]+(?::?[-+?][^}$`'\"\\]*|[#%/^,:][^}$`'\"\\@]*)?\}|\{#[A-Za-z0-9_]+\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\(\([0-9 +*/%-]*\)\))")  # fmt: skip
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
"""How a word begins that assigns a variable."""
_FISH_ESCAPES = "xXuUc01234567"
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "coproc",
     "begin", "end", "and", "or", "not"}
)  # fmt: skip


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


class _Unclear(Exception):
    """Something cannot be read; its text says what."""


def read(text: str, take: Callable[[list[str], int], None], depth: int = 0) -> str:
    """Hand over the words of each command that a shell runs in a text, those of substitutions too.

    Args:
        text: what the shell gets.
        take: gets the words of a command, and how deep it stands.
        depth: how deep the text itself stands.

    Returns:
        What of it cannot be read for certain, though what stands before that was handed over; ""
        where all was read.
    """
    try:
        _read(text, take, depth)
    except _Unclear as why:
        return str(why)
    return ""


def _read(text: str, take: Callable[[list[str], int], None], depth: int) -> None:
    if depth > _DEEPEST:
        raise _Unclear("commands within commands go too deep")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        raise _Unclear("it holds characters that cannot be shown")
    _Text(take, text, depth).commands("")


class _Text:
    """A text that a shell reads, at some place in it."""

    def __init__(
        self, take: Callable[[list[str], int], None], text: str, depth: int, place: int = 0
    ) -> None:
        self.take, self.text, self.depth, self.place = take, text, depth, place

    def commands(self, end: str) -> None:
        """Take in commands until a closing bracket, or the text's end."""
        words: list[str] = []
        while True:
            self._skip_blanks()
            sign = self.text[self.place : self.place + 1]
            operator = _OPERATOR.match(self.text, self.place)
            redirection = _REDIRECTION.match(self.text, self.place)
            if sign == "" or (sign == ")" and end == ")"):
                if sign != end:
                    raise _Unclear("a bracket is not closed")
                self._command(words)
                self.place += len(end)
                return
            if sign == "#":
                self._comment()
            elif operator and self.text[self.place : self.place + 2] != "&>":
                self._command(words)
                words, self.place = [], operator.end()
            elif sign == "(" and not words:
                self.place += 1
                self.commands(")")
            elif sign in "()":
                if not re.match(r"\(\s*\)", self.text[self.place :]) or len(words) != 1:
                    raise _Unclear("a bracket stands where it cannot be read")
                words, self.place = [], self.text.index(")", self.place) + 1  # begins a function
            elif redirection:
                self._redirect(redirection)
            else:
                word = self._word()
                if words or word not in _KEYWORDS:
                    words.append(word)

    def _command(self, words: list[str]) -> None:
        if words[:1] in (["for"], ["select"]):
            return  # its words are data; what follows `do` is a command of its own
        words = words[2:] if words[:1] == ["function"] else words
        while words and words[0] in _KEYWORDS:
            words = words[1:]
        if words:
            self.take(words, self.depth)

    def _skip_blanks(self) -> None:
        while (blank := self.text[self.place : self.place + 2]) and (blank[0] in " \t" or blank == "\\\n"):  # fmt: skip
            self.place += 2 if blank == "\\\n" else 1

    def _comment(self) -> None:
        end = self.text.find("\n", self.place)
        comment = self.text[self.place : end if end >= 0 else len(self.text)]
        if re.search(r"[;&|$`()<>]", comment):  # not every shell takes it for a comment
            raise _Unclear("a comment may be read as commands")
        self.place += len(comment)

    def _redirect(self, found: re.Match[str]) -> None:
        sign, self.place = found[0], found.end()
        if sign.endswith("<") and self.text[self.place : self.place + 1] == "<":
            raise _Unclear("it holds a here-document")
        if self.text[self.place : self.place + 1] == "(":
            raise _Unclear("it holds a process substitution")
        if not sign[-1].isdigit() and sign[-1] != "-":
            self._skip_blanks()
            self._word()

    def _word(self) -> str:
        """The next word: what it says where it stands there, `UNKNOWN` in what is expanded."""
        start, word = self.place, ""
        while (sign := self.text[self.place : self.place + 1]) and sign not in " \t\n;&|()<>":
            if sign == "'":
                end = self.text.find("'", self.place + 1)
                if end < 0 or self.text[end - 1] == "\\":
                    raise _Unclear("a quote is not closed")
                word, self.place = word + self.text[self.place + 1 : end], end + 1
            elif sign == '"':
                word += self._double()
            elif sign in "$`":
                word += self._expand()
            elif sign == "\\":
                word += self._escaped()
            else:
                expands = sign in "*?" or (sign == "[" and not self._is_test()) or self._is_brace()
                word += UNKNOWN if expands else sign
                self.place += 1
        if self.place == start:
            raise _Unclear("a sign stands where it cannot be read")
        return word

    def _is_test(self) -> bool:
        """Whether a bracket stands here that is the name of a command."""
        return re.compile(r"(?<![^\s;&|(\[])\[{1,2}(?=\s)").match(self.text, self.place) is not None

    def _is_brace(self) -> bool:
        """Whether a bracket stands here that may expand to several words."""
        return re.compile(r"\{(?![\s}]|$)").match(self.text, self.place) is not None

    def _escaped(self) -> str:
        sign = self.text[self.place + 1 : self.place + 2]
        if sign == "" or sign in _FISH_ESCAPES:
            raise _Unclear("shells differ in what a backslash means here")
        self.place += 2
        return "" if sign == "\n" else sign

    def _double(self) -> str:
        word = ""
        self.place += 1
        while (sign := self.text[self.place : self.place + 1]) != '"':
            if sign == "":
                raise _Unclear("a quote is not closed")
            if sign in "$`":
                word += self._expand(quoted=True)
                continue
            if sign == "\\" and self.text[self.place + 1 : self.place + 2] in ('"', "\\", "$", "`", "\n"):  # fmt: skip
                self.place += 1
                sign = self.text[self.place]
            word, self.place = word + sign, self.place + 1
        self.place += 1
        return word

    def _expand(self, quoted: bool = False) -> str:
        """Take in what is substituted here."""
        text, place = self.text, self.place
        if found := _EXPANSION.match(text, place):
            self.place = found.end()
            return UNKNOWN
        if text.startswith("$(", place) and not text.startswith("$((", place):
            if self.depth >= _DEEPEST:
                raise _Unclear("commands within commands go too deep")
            inner = _Text(self.take, text, self.depth + 1, place + 2)
            inner.commands(")")
            self.place = inner.place
            return UNKNOWN
        if text[place] == "`":
            end = text.find("`", place + 1)
            if end < 0 or "\\" in text[place:end]:
                raise _Unclear("a quote is not closed")
            _read(text[place + 1 : end], self.take, self.depth + 1)
            self.place = end + 1
            return UNKNOWN
        if re.compile(r"\$(?=[\s\"/.,|)])" if quoted else r"\$(?=[\s;|)]|$)").match(text, place):
            self.place += 1
            return "$"
        raise _Unclear("an expansion cannot be read")
