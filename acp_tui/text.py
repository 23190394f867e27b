"""Strings to `Content` and `Strip`: the one place that does it.

In Textual a plain `str` is markup, and a file can press keys through markup; and what
reaches the terminal unchanged can hold escape sequences. So nothing that came from
files, agents, the network or another program reaches a widget but through here.

The strings of a Snapshot were made safe where it was built. They are looked at once more
here, because a protocol of another distribution may have forgotten to, and because paths
and messages of exceptions never were part of a Snapshot; a look costs less than a
microsecond where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style as RichStyle
from rich.text import Text
from textual.content import Content
from textual.fuzzy import Matcher
from textual.strip import Strip
from textual.style import Style

from acp_core.model.text import clean, clean_line

Part = str | tuple[str, str | Style] | Content
"""A piece of text: plain, with a style, or already made."""

MUTED = "dim"
"""The style of what matters less, in every theme (``$text-muted`` has no place in a `Content`)."""


def safe(text: str) -> str:
    """``text`` without anything that a terminal may obey; keeps line ends and tabs."""
    return text if text.isprintable() else clean(text)


def safe_line(text: str) -> str:
    """``text`` as one line without anything that a terminal may obey."""
    return text if text.isprintable() else clean_line(text, len(text) + 1)


def plain(text: str, style: str | Style = "") -> Content:
    """``text`` as it is, never as markup, in one style."""
    return Content.styled(safe(text), style) if style else Content(safe(text))


def line(text: str, style: str | Style = "") -> Content:
    """``text`` as one line, never as markup, in one style."""
    return Content.styled(safe_line(text), style) if style else Content(safe_line(text))


def searchable(text: str) -> Text:
    """One line for a list in which typing finds an entry: there Content would not be found."""
    return Text(clean_line(text))


def join(*parts: Part) -> Content:
    """Several pieces after each other, each never as markup."""
    return Content.assemble(
        *(
            part
            if isinstance(part, Content)
            else safe(part)
            if isinstance(part, str)
            else (safe(part[0]), part[1])
            for part in parts
        )
    )


def width(text: str) -> int:
    """How many cells of the terminal ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` as one line of exactly ``cells`` cells: padded, or cut with an ellipsis.

    Args:
        text: What to fit.
        cells: The width; nothing is left of the text at 0 or below.
        right: Pad on the left instead.
    """
    if cells <= 0:
        return ""
    text = safe_line(text)
    space = cells - width(text)
    if space < 0:
        text = set_cell_size(text, cells - 1).rstrip() + "…"
        space = cells - width(text)  # more than 0 where blanks or half of a wide sign went
    return " " * space + text if right else text + " " * space


def end_of(text: str, cells: int) -> str:
    """A path as one line of at most ``cells`` cells: its end, which says most, behind an ellipsis."""
    text = safe_line(text)
    if width(text) <= cells:
        return text
    shown, left = "", cells - 1
    for sign in reversed(text):
        left -= width(sign)
        if left < 0:
            break
        shown = sign + shown
    _, slash, names = shown.partition("/")  # a name that is cut says less than none
    return "…" + (slash + names if slash and names else shown)


def strip(parts: Iterable[tuple[str, RichStyle]]) -> Strip:
    """A line for a widget that draws lines itself; nothing is stripped there afterwards."""
    return Strip([Segment(safe_line(text), style) for text, style in parts if text])


def highlight(matcher: Matcher, text: str) -> Content:
    """``text`` with the letters that the command palette's words matched.

    (`Matcher.highlight` takes its text as markup.)
    """
    text = safe_line(text)
    content = Content(text)
    score, offsets = matcher.fuzzy_search.match(matcher.query, text)
    if not score:
        return content
    for offset in offsets:
        if not text[offset].isspace():
            content = content.stylize(matcher.match_style, offset, offset + 1)
    return content
