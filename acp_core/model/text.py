"""Strangers' text made safe to show: the one place that does it.

Text that came from files, agents or the network may hold what a terminal obeys (escape
sequences), what hides or reorders text (bidirectional controls), what other programs take for a
line end, and what nobody sees at all: signs without a width, tag characters that spell a sentence,
marks that pile up. All of that becomes a visible sign here; nothing is left out, so that a reader
sees that something was there. Standard library only.
"""

from __future__ import annotations

import re
from functools import cache

_REPLACEMENT = "\ufffd"
_NEWLINE_SIGN = "\u2424"
_ELLIPSIS = "…"
_BLANK_SIGN = "␣"
_BLANK = "\u2800"  # of Braille: no space to Python, and drawn as one
_PILE = 8  # marks above one letter; no language needs more

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Soft hyphen, joiners and spaces without a width, fillers, musical and shorthand formats, tags and
# variation selectors beyond the sixteenth: none of them is drawn.
_INVISIBLE = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = _BIDIRECTIONAL + _INVISIBLE
_UNSAFE = f"{_CONTROLS}\u2028\u2029\ud800-\udfff{_UNSEEN}"
_JOINERS, _SELECTORS = "\u200c\u200d", "\ufe00-\ufe0f"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
# Letters that are written with joiners (Arabic to Mongolian), and pictures that are put together.
_JOINED = (
    "\u0620-\u064a\u066e-\u06d5\u06fa-\u06ff\u0710-\u072f\u0750-\u08ff\u0900-\u0dff\u1000-\u109f"
    "\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa\u2190-\u2bff\U0001f000-\U0001faff"
)
_SELECTED = "0-9#*\xa9\xae\u203c-\u2bff\u3000-\ufaff\U0001f000-\U0001faff"  # have variants

# Joiners, selectors and marks are part of ordinary text; these are the ones that are not.
_MISUSED = (
    f"(?<![{_JOINED}])(?<![{_SELECTED}]\ufe0f)[{_JOINERS}]|[{_JOINERS}](?![{_JOINED}])"
    f"|(?<![{_SELECTED}])[{_SELECTORS}]|(?<=[{_MARKS}]{{{_PILE}}})[{_MARKS}]"
)
_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# Compiled where they are first needed: large classes take as long as a short command.
_SUSPECT = f"[{_UNSAFE}{_JOINERS}{_SELECTORS}{_MARKS}]"
_UNSAFE_SIGN = f"[{_UNSAFE}]|{_MISUSED}"
_UNSEEN_SIGN = f"(?:[{_UNSEEN}]|{_MISUSED})+"

_SIGNS: dict[str, str] = (
    dict.fromkeys("\x85\u2028\u2029", _NEWLINE_SIGN)
    | {chr(code): chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    | {"\x7f": "\u2421"}
)
_LINE_SIGNS = {0x09: " ", 0x0A: _NEWLINE_SIGN}
_TAGS = 0xE0000
_TAG_LETTERS = range(_TAGS + 0x20, _TAGS + 0x7F)


_compiled = cache(re.compile)


def clean(text: str) -> str:
    """``text`` safe to show over several lines.

    Line feeds and tabs stay, CR LF and CR become line feeds. Every other control character, U+2028,
    U+2029, every lone surrogate and everything that people cannot see (see `unseen`) becomes a
    visible sign. The number of lines is that of ``text`` read with universal newlines.
    """
    if (_ASCII if text.isascii() else _compiled(_SUSPECT)).search(text) is None:
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _compiled(_UNSAFE_SIGN).sub(_sign, text)


def _sign(match: re.Match[str]) -> str:
    return _SIGNS.get(match.group(), _REPLACEMENT)


def clean_line(text: str, limit: int = 500) -> str:
    """``text`` safe to show as one line of at most ``limit`` characters.

    As `clean`, and a line end becomes a visible sign, a tab a space; what is too long ends
    in "…".
    """
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    line = clean(text[: 2 * limit + 1]).translate(_LINE_SIGNS)  # CR LF shrinks to one sign
    return line if len(line) <= limit else line[: limit - 1] + _ELLIPSIS


def is_clean(text: str) -> bool:
    """Whether a text can be shown, and typed in a command, as it is: one line, not empty."""
    return bool(text) and clean_line(text) == text


def clean_name(text: str, limit: int = 500) -> str:
    """A name, such as a participant's, safe to show as one line of at most ``limit`` characters.

    As `clean_line`; where nothing could be seen of it, a visible sign stands for every blank.
    """
    line = clean_line(text, limit)
    blank = line.replace(_BLANK, " ").isspace()
    return _BLANK_SIGN * len(line) if blank else line


def unseen(text: str) -> str:
    """The characters of a text that people cannot see, or that hide or reorder others.

    Bidirectional controls; soft hyphens, spaces and joiners without a width, fillers, tags;
    joiners and variation selectors where no script or picture has them; marks beyond the eighth
    above one letter. "" for ordinary text of any language.
    """
    if text.isascii() or _compiled(_SUSPECT).search(text) is None:
        return ""
    return "".join(_compiled(_UNSEEN_SIGN).findall(text))


def spelled(characters: str) -> str:
    """What tag characters among these spell; they mirror ASCII, and programs read them so."""
    return "".join(chr(ord(each) - _TAGS) for each in characters if ord(each) in _TAG_LETTERS)
