"""Markdown rendered as rows of the screen."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from acp_tui.text import safe_line, width
from acp_tui.widgets.code_styles import lines_of
from acp_tui.widgets.document_pages import GUTTER, Page
from acp_tui.widgets.lines import Piece, Row, cut
from acp_tui.widgets.markdown_blocks import QUOTE, Block, Inline
from acp_tui.widgets.wrap import wrap

NARROWEST = 3
"""How narrow a column of a table gets at most."""


class MarkdownPage(Page):
    """The blocks of a Markdown document laid out in some width."""

    def __init__(self, blocks: Sequence[Block], width: int) -> None:
        """Lay them out; slow for a long document: for a thread."""
        self._width = max(16, width - GUTTER - 1)
        self._rows: list[Row] = []
        self._first = array("l")  # the first line of the file that a row shows, 0 for none
        self._last = array("l")
        self._links: dict[int, list[tuple[int, int, str]]] = {}
        before: Block | None = None
        for block in blocks:
            if before is not None and block.spaced:
                self._add(
                    ((block.prefix.rest if _same_quote(before, block) else "", "muted"),), 0, 0
                )
            self._block(block)
            before = block
        self.rows = len(self._rows)
        # row_of needs lines that never go down; rows between blocks count with the one above
        self._order = array("l")
        highest = 0
        for line in self._first:
            highest = max(highest, line)
            self._order.append(highest)

    def row(self, y: int) -> Row:
        return self._rows[y]

    def lines(self, y: int) -> tuple[int, int]:
        return self._first[y], self._last[y]

    def row_of(self, line: int) -> int:
        y = bisect_left(self._order, line)
        if (y == self.rows or self._order[y] > line) and y > 0:
            y = bisect_left(self._order, self._order[y - 1])  # a line inside of a block
        return max(0, min(y, self.rows - 1))

    def link(self, y: int, x: int) -> str | None:
        for start, end, address in self._links.get(y, ()):
            if start <= x < end:
                return address
        return None

    # --- blocks ----------------------------------------------------------------------------

    def _add(self, row: Row, first: int, last: int) -> None:
        self._rows.append(row)
        self._first.append(first)
        self._last.append(last)

    def _block(self, block: Block) -> None:
        match block.kind:
            case "heading":
                self._heading(block)
            case "code":
                self._code(block)
            case "rule":
                wide = self._width - width(block.prefix.rest)
                row = ((block.prefix.first, "muted"), ("─" * max(3, wide), "rule"))
                self._add(row, block.begin + 1, block.end)
            case "table":
                self._table(block)
            case _:
                self._flow(block, block.inlines)

    def _heading(self, block: Block) -> None:
        self._flow(block, [i._replace(style=f"{i.style} heading") for i in block.inlines])
        if block.level == 1 and not block.prefix.rest:
            longest = max((sum(width(t) for t, _ in row) for row in self._rows[-1:]), default=0)
            self._add((("━" * min(self._width, longest), "heading"),), 0, 0)

    def _flow(self, block: Block, runs: Iterable[Inline]) -> None:
        """Text that is cut into rows at blanks."""
        part: list[Inline] = []
        prefix = block.prefix.first
        for run in runs:
            pieces = run.text.split("\n")
            for number, text in enumerate(pieces):
                if number:
                    self._paragraph(part, prefix, block.prefix.rest, block.begin)
                    prefix, part = block.prefix.rest, []
                part.append(run._replace(text=safe_line(text)))
        self._paragraph(part, prefix, block.prefix.rest, block.begin)

    def _paragraph(self, runs: Sequence[Inline], first: str, rest: str, begin: int) -> None:
        text = "".join(run.text for run in runs)
        for number, (start, end) in enumerate(
            wrap(text, max(8, self._width - width(first)), max(8, self._width - width(rest)))
        ):
            prefix = rest if number else first
            pieces: list[Piece] = [(prefix, "muted")] if prefix else []
            links: list[tuple[int, int, str]] = []
            at, column = 0, len(prefix)
            numbers: list[int] = []
            for run in runs:
                a, b = max(start, at), min(end, at + len(run.text))
                if a < b:
                    pieces.append((run.text[a - at : b - at], run.style))
                    numbers.append(run.line)
                    if run.href:
                        links.append((column, column + b - a, run.href))
                    column += b - a
                at += len(run.text)
            if links:
                self._links[len(self._rows)] = links
            # an empty piece stands where the last one ended, or at the block's beginning
            lines = numbers or [runs[-1].line if runs else begin]
            self._add(tuple(pieces), min(lines) + 1, max(lines) + 1)

    def _code(self, block: Block) -> None:
        cells = max(8, self._width - width(block.prefix.rest) - 2)
        prefix = block.prefix.first
        for number, runs in enumerate(lines_of(block.code, block.info)):
            line = block.begin + number + 1
            expanded = _expand(runs)
            text = "".join(t for t, _ in expanded)
            for start, end in wrap(text, cells):
                frame: Row = ((prefix, "muted"), ("│ ", "muted"))
                self._add(frame + cut(expanded, start, end), line, line)
                prefix = block.prefix.rest

    # --- tables ----------------------------------------------------------------------------

    def _table(self, block: Block) -> None:
        count = max((len(row) for row in block.cells), default=0)
        if not count:
            return
        widths = _column_widths(block, count, self._width - width(block.prefix.rest))
        prefix = block.prefix.first
        for number, cells in enumerate(block.cells):
            line = (block.begin if number == 0 else block.begin + number + 1) + 1
            columns = [
                _cell_rows(cells[c] if c < len(cells) else (), widths[c], number == 0)
                for c in range(count)
            ]
            for index in range(max(len(column) for column in columns)):
                pieces: list[Piece] = [(prefix, "muted")]
                for c, column in enumerate(columns):
                    if c:
                        pieces.append((" │ ", "muted"))
                    pieces += column[index] if index < len(column) else [(" " * widths[c], "")]
                self._add(tuple(pieces), line, line)
                prefix = block.prefix.rest
            if number == 0:
                rule = "─┼─".join("─" * w for w in widths)
                self._add(((prefix, "muted"), (rule, "muted")), line + 1, line + 1)


def _same_quote(before: Block, block: Block) -> bool:
    """Whether two blocks stand in the same quote."""
    return before.prefix.rest.startswith(QUOTE) and block.prefix.rest.startswith(QUOTE)


def _expand(runs: Sequence[Piece]) -> list[Piece]:
    return [(safe_line(text.replace("\t", "    ")), style or "code") for text, style in runs]


def _column_widths(block: Block, count: int, space: int) -> list[int]:
    """Natural widths where they fit; the widest columns give way first."""
    widths = [1] * count
    for cells in block.cells:
        for c, runs in enumerate(cells):
            widths[c] = max(widths[c], sum(width(run.text) for run in runs))
    space = max(count * NARROWEST, space - 3 * (count - 1))
    while sum(widths) > space:
        widest = max(widths)
        second = max((w for w in widths if w < widest), default=NARROWEST)
        number = widths.count(widest)
        over = sum(widths) - space
        least = max(second, widest - -(-over // number), NARROWEST)
        if least >= widest:
            least = widest - 1
        widths = [least if w == widest else w for w in widths]
        if max(widths) <= NARROWEST:
            break
    return widths


def _cell_rows(runs: Sequence[Inline], cells: int, heading: bool) -> list[list[Piece]]:
    pieces = [
        (safe_line(run.text.replace("\n", " ")), f"{run.style} strong" if heading else run.style)
        for run in runs
    ]
    text = "".join(piece for piece, _ in pieces)
    rows: list[list[Piece]] = []
    for start, end in wrap(text, cells):
        used = width(text[start:end])
        rows.append([*cut(pieces, start, end), (" " * (cells - used), "")])
    return rows
