"""Markdown as a flat list of blocks, each with the lines of the file that it came from.

The parsing is markdown-it's; what is done here is to make of its tokens what a view of
lines needs. (Textual's own Markdown widget mounts a widget per block: seconds for a
document of ordinary length, on the interface's thread.) Nothing in a document is fetched,
HTML is shown as the text that it is, and a link is only an address until somebody asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it.token import Token

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
