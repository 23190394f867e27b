"""Two versions of a document as rows: below each other or side by side, raw or rendered.

A rendered version is laid out with every paragraph on one line, compared like any text, and cut
to the width only then: so a changed word does not make the rest of its paragraph look changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acp_core.history import diff as differ
from acp_core.history.diff import NEW, OLD, SAME, Line
from acp_core.model.text import clean_line
from acp_tui.text import width
from acp_tui.widgets.document_view import RENDERED_UP_TO
from acp_tui.widgets.lines import Row, cut, mark, text_of
from acp_tui.widgets.markdown_blocks import TooDeep, parse
from acp_tui.widgets.markdown_page import MarkdownPage
from acp_tui.widgets.wrap import wrap

_ENDLESS = 100_000  # cells of a rendered line: no paragraph is cut
_RULE = 40  # cells of a rule
_STYLES = {SAME: "", OLD: "removed", NEW: "added"}
_NUMBER = 6  # cells of a line's number, with the blank behind it


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its rows in their styles, and the file's line in which each begins."""

    rows: tuple[Row, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both versions, and what became of the rows of the old one."""

    old: Version
    new: Version
    diff: tuple[Line, ...]

    def line(self, line: Line) -> int:
        """In which line of its file a row begins; 0 where it is not known."""
        side, place = (self.new, line.new) if line.new else (self.old, line.old)
        return side.lines[place - 1] if place else 0


def compare(old: str, new: str, *, rendered: bool) -> Comparison:
    """Compare two texts; slow for long ones: for a thread.

    Args:
        old, new: safe to show, with "\\n" as their only line end.
        rendered: As Markdown; what cannot be rendered is compared as it stands.
    """
    both = (_rendered(old), _rendered(new)) if rendered else (None, None)
    first, second = both if both[0] and both[1] else (_raw(old), _raw(new))
    assert first is not None and second is not None
    texts = ["\n".join(text_of(row) for row in side.rows) for side in (first, second)]
    return Comparison(first, second, tuple(differ.lines(*texts)))


def _raw(text: str) -> Version:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    rows = tuple(((clean_line(line, len(line) + 1), ""),) for line in lines)
    return Version(rows, tuple(range(1, len(rows) + 1)))


def _rendered(text: str) -> Version | None:
    if len(text) > RENDERED_UP_TO:
        return None
    try:
        page = MarkdownPage(parse(text), _ENDLESS)
    except TooDeep:
        return None
    rows = [page.row(y) for y in range(page.rows)]
    return Version(
        tuple(_short(row) for row in rows), tuple(page.lines(y)[0] for y in range(page.rows))
    )


def _short(row: Row) -> Row:
    """A rule is as wide as the page; a few cells of it say the same."""
    text = text_of(row)
    return cut(row, 0, _RULE) if len(text) > _RULE and not text.strip("─━ ") else row


def below(comparison: Comparison, hunk: Sequence[Line], cells: int) -> tuple[list[Row], list[int]]:
    """Rows below each other, and those of them at which a change begins."""
    rows: list[Row] = []
    changes: list[int] = []
    before = SAME
    for line in hunk:
        if line.sign != SAME and before == SAME:
            changes.append(len(rows))
        before = line.sign
        side = comparison.old if line.sign == OLD else comparison.new
        lead = f"{_number(side, line, old=line.sign == OLD)}{line.sign} "
        for part, row in enumerate(_cut(_styled(side, line), cells - len(lead))):
            rows.append(((lead if not part else " " * len(lead), "number"), *row))
    return rows, changes


def side_by_side(
    comparison: Comparison, hunk: Sequence[Line], cells: int
) -> tuple[list[Row], list[int]]:
    """Rows side by side, and those of them at which a change begins."""
    room = max(20, (cells - 3) // 2 - _NUMBER)
    rows: list[Row] = []
    changes: list[int] = []
    olds: list[Line] = []
    news: list[Line] = []

    def put(left: Line | None, right: Line | None) -> None:
        one = _column(comparison.old, left, room, old=True)
        two = _column(comparison.new, right, room, old=False)
        for place in range(max(len(one), len(two))):
            rows.append((*_filled(one, place, room), ("│ ", "rule"), *_filled(two, place, room)))

    def flush() -> None:
        if olds or news:
            changes.append(len(rows))
        for place in range(max(len(olds), len(news))):
            put(olds[place] if place < len(olds) else None,
                news[place] if place < len(news) else None)  # fmt: skip
        olds.clear()
        news.clear()

    for line in hunk:
        if line.sign == SAME:
            flush()
            put(line, line)
        else:
            (olds if line.sign == OLD else news).append(line)
    flush()
    return rows, changes


def _column(side: Version, line: Line | None, room: int, *, old: bool) -> list[Row]:
    if line is None:
        return []
    number = _number(side, line, old=old)
    styled = _styled(side, line, old=old)
    return [
        ((number if not part else " " * _NUMBER, "number"), *row)
        for part, row in enumerate(_cut(styled, room))
    ]


def _filled(rows: Sequence[Row], place: int, room: int) -> Row:
    row = rows[place] if place < len(rows) else ()
    left = room + _NUMBER - width(text_of(row))
    return (*row, (" " * max(0, left), ""))


def _number(side: Version, line: Line, *, old: bool) -> str:
    place = (line.old if old else line.new) or 0
    at = side.lines[place - 1] if place else 0
    return f"{at or '':>{_NUMBER - 1}} "


def _styled(side: Version, line: Line, *, old: bool = False) -> Row:
    """The row of a line, with what changed in it marked."""
    place = (line.old if old or line.sign == OLD else line.new) or 0
    row = side.rows[place - 1] if place else ()
    if line.sign == SAME:
        return row
    style = _STYLES[line.sign]
    whole = all(changed for _, changed in line.pieces)
    spans, at = [], 0
    for text, changed in line.pieces:
        if changed and not whole:
            spans.append((at, at + len(text)))
        at += len(text)
    return mark(mark(row, [(0, at)], style), spans, "match")


def _cut(row: Row, cells: int) -> list[Row]:
    return [cut(row, start, end) for start, end in wrap(text_of(row), max(8, cells))]
