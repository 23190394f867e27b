"""Markdown as a flat list of blocks, and these as rows of the screen.

The parsing is markdown-it's; what is done here is to make of its tokens what a view of
lines needs: blocks, each with the lines of the file that it came from. (Textual's own Markdown widget
mounts a widget per block: seconds for a document of ordinary length, on the interface's thread.)
Nothing in a document is fetched, HTML is shown as the text that it is, and a link is only an address
until somebody asks. Code is drawn in a few styles, line by line.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from acp_tui.text import safe_line, width
from acp_tui.widgets.document_pages import GUTTER, Page
from acp_tui.widgets.lines import Piece, Row, cut, wrap

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST = 20_000

"""How many characters of code are coloured at most; longer code is plain."""

Run = tuple[str, str]


def lines_of(code: str, language: str) -> list[tuple[Run, ...]]:
    """The lines of ``code``, each as pieces of text with the name of their style."""
    plain: list[tuple[Run, ...]] = [((line, ""),) for line in code.split("\n")]
    if not language or len(code) > LONGEST:
        return plain
    from pygments import lex  # type: ignore[import-untyped]
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return plain
    lines: list[list[Run]] = [[]]
    for token, text in lex(code, lexer):
        style = _style(str(token))
        for number, part in enumerate(text.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((part, style))
    if len(lines) != len(plain):  # a lexer that drops lines would move every line below
        return plain
    return [tuple(line) for line in lines]


def _style(token: str) -> str:
    if token.startswith("Token.Comment"):
        return "comment"
    if token.startswith("Token.Literal.String"):
        return "string"
    if token.startswith(("Token.Keyword", "Token.Name.Tag", "Token.Operator.Word")):
        return "keyword"
    if token.startswith("Token.Literal.Number"):
        return "accent"
    return ""


BULLETS = ("• ", "◦ ", "▪ ")

QUOTE = "▌ "

DEEPEST = 8

"""How many levels of lists and quotes are indented; deeper ones stay at that depth."""

_CLOSING = {"bullet_list_close", "ordered_list_close", "list_item_close", "blockquote_close"}

_TASK = re.compile(r"\[([ xX])\](?=\s)")


class TooDeep(ValueError):
    """Lists or quotes are nested deeper than can be rendered."""


class Inline(NamedTuple):
    """A run of text in one style; ``line`` is the line of the file, from 0."""

    text: str
    style: str
    line: int
    href: str = ""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before a block's first row, and before its others."""

    first: str = ""
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, heading, rule, code or table: ``kind`` says which.

    ``begin`` and ``end`` are the lines of the file, from 0, ``end`` not included; ``spaced``
    says that an empty line stands above.
    ``cells`` are the rows of a table, the first being its heading.
    """

    kind: str
    begin: int
    end: int
    prefix: Prefix = Prefix()
    inlines: tuple[Inline, ...] = ()
    level: int = 0
    spaced: bool = False
    info: str = ""
    code: str = ""
    cells: tuple[tuple[tuple[Inline, ...], ...], ...] = ()


@dataclass(slots=True)
class _Container:
    kind: str
    first: str
    rest: str
    number: int = 0
    fresh: bool = True  # nothing of it stands on a row yet


@dataclass(slots=True)
class _Reader:
    tokens: Sequence[Token]
    containers: list[_Container] = field(default_factory=list)
    end: int = 0  # the line after the last block
    blocks: list[Block] = field(default_factory=list)

    def read(self) -> tuple[Block, ...]:
        position = 0
        while position < len(self.tokens):
            position = self._read(position)
        return tuple(self.blocks)

    def _read(self, position: int) -> int:
        token = self.tokens[position]
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            start = int(token.attrGet("start") or 1) if kind == "ordered_list_open" else 0
            self.containers.append(_Container(kind, "", "", number=start))
        elif kind == "list_item_open":
            self._item(token)
        elif kind == "blockquote_open":
            self.containers.append(_Container(kind, QUOTE, QUOTE))
        elif kind in _CLOSING:
            self.containers.pop()
        elif kind in ("paragraph_open", "heading_open"):
            inline = self.tokens[position + 1]
            begin, end = token.map or (0, 0)
            self._add(
                Block(
                    "heading" if kind == "heading_open" else "paragraph",
                    begin,
                    end,
                    inlines=inlines(inline, begin),
                    level=int(token.tag[1]) if kind == "heading_open" else 0,
                ),
                begin,
            )
            return position + 3
        elif kind in ("fence", "code_block"):
            begin, end = token.map or (0, 0)
            info = token.info.strip().split(" ", 1)[0] if kind == "fence" else ""
            first = begin + (kind == "fence")
            code = token.content.removesuffix("\n")
            self._add(Block("code", first, end, info=info, code=code), begin)
        elif kind == "hr":
            begin, end = token.map or (0, 0)
            self._add(Block("rule", begin, end), begin)
        elif kind == "table_open":
            return self._table(position)
        return position + 1

    def _item(self, token: Token) -> None:
        around = self.containers[-1]
        depth = sum(container.kind.endswith("_list_open") for container in self.containers)
        if around.kind == "ordered_list_open":
            bullet = f"{around.number}{token.markup or '.'} "
            around.number += 1
        else:
            bullet = BULLETS[(depth - 1) % len(BULLETS)]
        self.containers.append(_Container("item", bullet, " " * len(bullet)))

    def _add(self, block: Block, top: int) -> None:
        spaced = bool(self.blocks) and (top > self.end or block.kind == "heading")
        self.end = block.end
        first = rest = ""
        for container in self.containers[:DEEPEST]:
            first += container.first if container.fresh else container.rest
            rest += container.rest
        for container in self.containers:
            if container.kind == "item":
                container.fresh = False
        quoted = any(container.kind == "blockquote_open" for container in self.containers)
        if quoted and block.kind == "paragraph":
            block = replace(
                block,
                inlines=tuple(i._replace(style=f"{i.style} quote".strip()) for i in block.inlines),
            )
        self.blocks.append(replace(block, prefix=Prefix(first, rest), spaced=spaced))

    def _table(self, position: int) -> int:
        begin, end = self.tokens[position].map or (0, 0)
        rows: list[tuple[tuple[Inline, ...], ...]] = []
        row: list[tuple[Inline, ...]] = []
        while self.tokens[position].type != "table_close":
            token = self.tokens[position]
            if token.type == "tr_open":
                row = []
            elif token.type == "tr_close":
                rows.append(tuple(row))
            elif token.type == "inline":
                row.append(inlines(token, (token.map or (begin, end))[0]))
            position += 1
        self._add(Block("table", begin, end, cells=tuple(rows)), begin)
        return position + 1


def parse(text: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text, in order. Slow for a long text: for a thread.

    Raises:
        TooDeep: the text nests deeper than the parser follows; it would leave the rest out.
    """
    from markdown_it import MarkdownIt  # heavy: only workers parse

    parser = MarkdownIt("gfm-like", {"html": False, "linkify": True, "typographer": False})
    if parser.linkify is not None:  # "review.md" is a file here, and not a server in Moldova
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    try:
        tokens = parser.parse(text)
    except RecursionError:
        raise TooDeep from None
    deepest = parser.options["maxNesting"] - 2
    if any(token.level >= deepest for token in tokens):
        raise TooDeep
    return _Reader(tokens).read()


def inlines(token: Token, line: int) -> tuple[Inline, ...]:
    """The runs of text of an inline token that begins in ``line``."""
    return tuple(_inlines(token.children or [], line))


def _inlines(tokens: Sequence[Token], line: int) -> Iterator[Inline]:
    styles: list[str] = []
    hrefs: list[str] = []
    first = True

    def made(text: str, *more: str) -> Inline:
        return Inline(text, " ".join((*styles, *more)), line, hrefs[-1] if hrefs else "")

    for token in tokens:
        match token.type:
            case "text":
                task = _TASK.match(token.content) if first else None
                if task:
                    style = "muted" if task[1] == " " else "success"
                    yield made(task[0], style)
                    yield made(token.content[task.end() :])
                else:
                    yield made(token.content)
            case "softbreak":
                line += 1
                yield made(" ")
            case "hardbreak":
                line += 1
                yield made("\n")
            case "code_inline":
                yield made(token.content, "code")
            case "strong_open":
                styles.append("strong")
            case "em_open":
                styles.append("em")
            case "s_open":
                styles.append("strike")
            case "link_open":
                styles.append("link")
                hrefs.append(str(token.attrGet("href") or ""))
            case "strong_close" | "em_close" | "s_close":
                styles.pop()
            case "link_close":
                styles.pop()
                hrefs.pop()
            case "image":
                address = str(token.attrGet("src") or "")
                label = f"[image: {token.content or address}]"
                yield made(label, "link")._replace(href=address)
            case _:
                if token.content:
                    yield made(token.content)
        first = False


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
