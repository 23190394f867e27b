"""Signs for terminals that have few: of a locale without UTF-8, and of the Linux console.

Everything that is drawn or printed for a person passes through one table at its very end, cell by
cell, so that nothing is drawn otherwise for such a terminal, and columns stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_core.model.spoken import TABLE, is_wanted
from acp_core.model.spoken import VARIABLE as VARIABLE
from acp_core.model.spoken import WORDS as WORDS

if TYPE_CHECKING:
    from typing import TextIO


ALL = "unicode"
CONSOLE = "console"
ASCII = "ascii"

_SIGNS = {
    "●": "*", "○": "o", "◆": "#", "◇": "#", "■": "#", "□": "o", "▪": "*", "▫": "o", "▲": "^", "△": "^",
    "▼": "v", "▽": "v", "▶": ">", "▸": ">", "▾": "v", "◀": "<", "◂": "<", "◦": "o", "•": "-", "⏺": "*",
    "✓": "v", "✗": "x", "✔": "v", "✘": "x", "»": ">", "«": "<", "›": ">", "‹": "<", "❯": ">", "❮": "<",
    "→": ">", "←": "<", "↑": "^", "↓": "v", "↳": ">", "⋯": "~", "…": "~", "≡": "=", "×": "x",
    "·": "-", "—": "-", "–": "-", "−": "-", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'",
    "✅": "ok", "⚠": "!", "⭘": "o", "␛": "^", "\u00a0": " ",
    "█": "#", "▀": '"', "▔": '"', "▁": "_", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=", "▇": "#",
    "░": ".", "▒": ":", "▓": "#", "━": "=", "┄": ".",
}  # fmt: skip
_ALIKE = {"╭": "┌", "╮": "┐", "╰": "└", "╯": "┘"} | dict.fromkeys("╌╍┅┈┉╴╶╸╺╼╾", "─") | dict.fromkeys(
    "┃╎╏┆┇┊┋╵╷╹╻╽╿▏▎▍▌▐▕", "│"
)  # fmt: skip
# In every font of the Linux console; the lines, blocks and letters beyond Latin-1 vary.
_ON_CONSOLE = frozenset("─│┌┐└┘├┤┬┴┼█▀▄▌▐░▒▓")


class _Ascii(dict[int, str]):
    """What stands for each sign beyond ASCII, as wide as it is; made when it is first asked for."""

    def __missing__(self, code: int) -> str:
        if code < 0x80:
            raise LookupError(code)
        found = self[code] = _ascii(chr(code))
        return found


def _ascii(sign: str) -> str:
    import unicodedata

    if sign in _SIGNS:
        return _SIGNS[sign]
    code = ord(sign)
    alike = _ALIKE.get(sign, sign)
    if alike in "─│":
        return "-" if alike == "─" else "|"
    if 0x2500 <= code <= 0x257F:
        return {"═": "=", "║": "|"}.get(sign, "+")
    if 0x2580 <= code <= 0x259F:
        return "#"
    if 0x2800 <= code <= 0x28FF:
        return "*"  # what turns while one waits
    if 0x2400 <= code <= 0x243F:
        return "^"  # what stands for a control character
    if unicodedata.category(sign) in ("Mn", "Me", "Cf", "Zl", "Zp"):
        return ""  # takes no cell
    letter = unicodedata.normalize("NFKD", sign)[0]
    wide = unicodedata.east_asian_width(sign) in "WF"
    return letter if letter.isascii() and letter.isprintable() and not wide else "?" * (1 + wide)


def wanted(environment: Mapping[str, str]) -> str:
    """Which signs the terminal has: `ALL`, `CONSOLE` or `ASCII`.

    A locale without UTF-8 is one that is named and does not say so. (Python names UTF-8 itself in
    ``LC_CTYPE`` where ``LANG`` is C: that is no word of the person's.) Where none is named at all,
    as in many containers, the terminal is taken for one of today.
    """
    asked = environment.get(VARIABLE, "").strip().casefold()
    if asked in (ALL, CONSOLE, ASCII):
        return asked
    kind = environment.get("LC_CTYPE", "")
    if kind in ("C.UTF-8", "C.utf8", "UTF-8") and environment.get("LANG") in ("C", "POSIX"):
        kind = ""
    locale = environment.get("LC_ALL") or kind or environment.get("LANG") or "UTF-8"
    if "utf8" not in locale.casefold().replace("-", ""):
        return ASCII
    return CONSOLE if environment.get("TERM") == "linux" else ALL


def printed(environment: Mapping[str, str]) -> str:
    """Which signs commands print: those of the terminal, or `WORDS` where the person asked for them."""
    return WORDS if is_wanted(environment) else wanted(environment)


def table(signs: str) -> Mapping[int, str]:
    """What `str.translate` takes to write with these signs alone."""
    if signs == ASCII:
        return _Ascii()
    if signs == WORDS:
        return TABLE
    if signs == CONSOLE:
        alike = {ord(sign): to for sign, to in _ALIKE.items() if sign not in _ON_CONSOLE}
        return alike | {
            ord(sign): to
            for sign, to in _SIGNS.items()
            if sign not in _ON_CONSOLE and (ord(sign) > 0xFF or sign in "»«·×")
        }
    return {}


def written(stream: TextIO, signs: str) -> TextIO:
    """A stream to the same terminal, which writes with these signs alone."""
    import io
    import os

    known = table(signs)

    class Plain(io.TextIOWrapper):
        def write(self, text: str, /) -> int:
            said = text.replace(" · ", ", ") if signs == WORDS else text
            super().write(said.translate(known))
            return len(text)

    stream.flush()
    buffer = io.BufferedWriter(io.FileIO(os.dup(stream.fileno()), "wb"))
    return Plain(buffer, stream.encoding, stream.errors, line_buffering=True)
