"""Strangers' text made safe to show: the one place that does it.

Text that came from files, agents or the network may hold what a terminal obeys (escape
sequences), what hides or reorders text (bidirectional controls) or what other programs
take for a line end. All of that becomes a visible sign here; nothing is left out, so that
a reader sees that something was there. Standard library only.
"""

from __future__ import annotations

import re

_REPLACEMENT = "\ufffd"
_NEWLINE_SIGN = "\u2424"
_ELLIPSIS = "…"

# C0 but tab and line feed, DEL, C1, bidirectional controls, line and paragraph separators,
# lone surrogates (they cannot even be written as UTF-8).
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNKNOWN = (
    *range(0x80, 0xA0),
    *(0x061C, 0x200E, 0x200F),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_SIGNS: dict[int, str] = (
    dict.fromkeys(_UNKNOWN, _REPLACEMENT)
    | dict.fromkeys((0x85, 0x2028, 0x2029), _NEWLINE_SIGN)
    | {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)}
    | {0x7F: "\u2421"}
)
_LINE_SIGNS = _SIGNS | {0x09: " ", 0x0A: _NEWLINE_SIGN}


def clean(text: str) -> str:
    """``text`` safe to show over several lines.

    Line feeds and tabs stay, CR LF and CR become line feeds; every other control character,
    bidirectional control, U+2028, U+2029, U+061C and lone surrogate becomes a visible sign.
    The number of lines is that of ``text`` read with universal newlines.
    """
    if _UNSAFE.search(text) is None:
        return text
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_SIGNS)


def clean_line(text: str, limit: int = 500) -> str:
    """``text`` safe to show as one line of at most ``limit`` characters.

    As `clean`, and a line end becomes a visible sign, a tab a space; what is too long ends
    in "…".
    """
    line = clean(text[: 2 * limit + 1]).translate(_LINE_SIGNS)  # CR LF shrinks to one sign
    return line if len(line) <= limit else line[: limit - 1] + _ELLIPSIS
