"""A report as Markdown, for a pull request or an issue; and Markdown that others wrote, rendered for a report.

HTML in it is text, an address is text after what it names, and no image is loaded. Headings are
lower than those of the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from acp_core.history.metrics import (
    NOT_RECORDED,
    PEOPLE,
    Metrics,
    describe_span,
    people_figures,
    summary_figures,
)
from acp_core.history.reports.report import Report, Text, cells
from acp_core.model import Panel, format

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST = 400_000  # characters of a document that is rendered

_LOWER = 2  # levels by which headings are lowered

_LOWEST = 6

_MARKS = {"strong_open": "**", "strong_close": "**", "em_open": "*", "em_close": "*",
          "s_open": "~~", "s_close": "~~"}  # fmt: skip

_LISTS_END = ("bullet_list_close", "ordered_list_close")

# What Markdown, or what shows it, would take for more than text.
_SPECIAL = re.compile(r"([\\`*_\[\]#|<>~@&])")

_LEADING = re.compile(r"^(\d{0,9})([-+=.)])")  # a list, a rule, a heading's underline


def to_html(text: str) -> str:
    """A document's Markdown as HTML without links, images or anything that loads."""
    reader = _reader()
    return str(reader.renderer.render(_tokens(text), reader.options, {}))


def to_markdown(text: str) -> Iterator[str]:
    """A document's Markdown as lines of Markdown in which nothing but its layout has a meaning."""
    yield from _Writer(_tokens(text)).lines()


def plain(text: str) -> str:
    """A text that stays text, on one line, wherever it stands in Markdown."""
    safe = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return _LEADING.sub(r"\1\\\2", safe)


def fenced(text: str, info: str = "") -> Iterator[str]:
    """A text as a block of code in Markdown, which nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    yield f"{fence}{info}"
    yield from text.rstrip("\n").split("\n")
    yield fence


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # heavy: only where something is rendered

    options = {"html": False, "linkify": False, "xhtmlOut": False}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def _tokens(text: str) -> list[Token]:
    """The blocks of a text, with addresses and images as text and lower headings."""
    tokens = _reader().parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(_LOWEST, int(token.tag[1]) + _LOWER)}"
        if token.children:
            token.children = list(_without_addresses(token.children))
    return tokens


def _without_addresses(children: Sequence[Token]) -> Iterator[Token]:
    addresses: list[str] = []
    for child in children:
        if child.type == "link_open":
            addresses.append(str(child.attrGet("href") or ""))
        elif child.type == "link_close":
            yield _text(f" ({addresses.pop()})" if addresses else "")
        elif child.type == "image":
            yield _text(f"{child.content} (image: {child.attrGet('src')})")
        else:
            yield child


def _text(content: str) -> Token:
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)


class _Writer:
    """Writes tokens as Markdown.

    Args:
        tokens: as `_tokens` gives them.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._prefixes: list[str] = []  # of lists and quotes around a block, for their next line
        self._numbers: list[int] = []  # of the next item of each list; 0 where it has no numbers

    def lines(self) -> Iterator[str]:
        place = 0
        while place < len(self._tokens):
            token = self._tokens[place]
            if token.type == "table_open":
                end = place + [each.type for each in self._tokens[place:]].index("table_close")
                yield from self._block(_table(self._tokens[place:end]))
                place = end
            else:
                self._enter(token)
                yield from self._leaf(token, place)
                self._leave(token)
                if token.type in _LISTS_END:
                    yield self._margin()
            place += 1

    def _enter(self, token: Token) -> None:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            numbered = token.type == "ordered_list_open"
            self._numbers.append(int(token.attrGet("start") or 1) if numbered else 0)
        elif token.type == "list_item_open":
            number = self._numbers[-1]
            self._prefixes.append(f"{number}. " if number else "- ")
            self._numbers[-1] += bool(number)
        elif token.type == "blockquote_open":
            self._prefixes.append("> ")

    def _leave(self, token: Token) -> None:
        if token.type in _LISTS_END:
            self._numbers.pop()
        elif token.type in ("list_item_close", "blockquote_close"):
            self._prefixes.pop()

    def _leaf(self, token: Token, place: int) -> Iterator[str]:
        if token.type == "inline":
            opened = self._tokens[place - 1]
            level = int(opened.tag[1]) if opened.type == "heading_open" else 0
            mark = f"{'#' * level} " if level else ""
            yield from self._block([mark + _inline(token)], spaced=not opened.hidden)
        elif token.type in ("fence", "code_block"):
            yield from self._block(list(fenced(token.content)))
        elif token.type == "hr":
            yield from self._block(["***"])

    def _block(self, lines: Sequence[str], *, spaced: bool = True) -> Iterator[str]:
        """Lines behind the signs of the lists and quotes around them; where spaced, an empty line."""
        for line in lines:
            yield "".join(self._prefixes) + line
            self._prefixes = [each if each == "> " else " " * len(each) for each in self._prefixes]
        if spaced:
            yield self._margin()

    def _margin(self) -> str:
        """An empty line inside the lists and quotes that are open."""
        return "".join(self._prefixes).rstrip()


def _inline(token: Token) -> str:
    """The runs of a paragraph; its lines become one."""
    found: list[str] = []
    for child in token.children or ():
        if child.type == "code_inline":
            longest = max((len(run) for run in re.findall(r"`+", child.content)), default=0)
            fence = "`" * (longest + 1)
            found.append(f"{fence} {child.content} {fence}" if longest else f"`{child.content}`")
        elif child.type in ("softbreak", "hardbreak"):
            found.append(" ")
        else:
            found.append(_MARKS.get(child.type) or _SPECIAL.sub(r"\\\1", child.content))
    return _LEADING.sub(r"\1\\\2", "".join(found))


def _table(tokens: Sequence[Token]) -> list[str]:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_inline(token))
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]


MOST = 200  # events that are listed; of more, the first and the last half


def render(report: Report, *, utc: bool = True) -> str:
    """The text.

    Args:
        report: what to tell.
        utc: Show times in UTC rather than in local time.
    """
    return "\n".join(_lines(report, utc)) + "\n"


def _lines(report: Report, utc: bool) -> Iterator[str]:
    snapshot = report.snapshot
    yield f"# {plain(snapshot.name)}"
    yield ""
    if snapshot.objective:
        yield f"**Objective:** {plain(snapshot.objective)}"
        yield ""
    yield "## Outcome"
    yield ""
    for sentence in report.status_sentences:
        yield plain(sentence)
        yield ""
    for part in report.outcome:
        if isinstance(part, Panel) or not part.has_title:
            yield f"### {plain(part.title)}"
            yield ""
        yield from _panel(part) if isinstance(part, Panel) else _document(part)
        yield ""
    yield "## What happened"
    yield ""
    yield from _events(report, utc)
    yield ""
    for panel in report.panels:
        yield f"## {plain(panel.title)}"
        yield ""
        yield from _panel(panel)
        yield ""
    for text in report.other_texts:
        yield f"<details><summary>{plain(text.title)} ({plain(text.document)})</summary>"
        yield ""
        yield from _document(text)
        yield ""
        yield "</details>"
        yield ""
    yield from _figures(report.metrics)
    if snapshot.findings:
        yield "## Findings"
        yield ""
        for finding in snapshot.findings:
            yield f"- {finding.severity.value} {finding.code}: {plain(finding.message)}"
        yield ""
    for sentence in report.known:
        yield f"_{plain(sentence)}_"
    yield f"_Made by acp, {plain(format.exact(report.made, utc))}._"


def _panel(panel: Panel) -> Iterator[str]:
    columns = panel.columns or ("",) * max(len(row.cells) for row in panel.rows)
    yield f"| {' | '.join(map(plain, columns))} |"
    yield "|---" * len(columns) + "|"
    for row in panel.rows:
        filled = (*cells(row), *("" for _ in columns[len(row.cells) :]))
        yield f"| {' | '.join(map(plain, filled))} |"


def _document(text: Text) -> Iterator[str]:
    if text.kind == "markdown" and len(text.text) <= LONGEST:
        yield from to_markdown(text.text)
    else:
        yield from fenced(text.text, "json" if text.kind == "json" else "text")


def _figures(metrics: Metrics) -> Iterator[str]:
    yield "## Figures"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for title, value in summary_figures(metrics):
        yield f"| {plain(title)} | {plain(value)} |"
    yield ""
    yield "| phase | time |"
    yield "|---|---|"
    for phase in metrics.phases:
        yield f"| {plain(phase.label)} | {plain(describe_span(phase.total))} |"
    yield ""
    yield f"| {' | '.join(PEOPLE)} |"
    yield "|---" * len(PEOPLE) + "|"
    for row in people_figures(metrics):
        yield f"| {' | '.join(map(plain, row))} |"
    yield ""


def _events(report: Report, utc: bool) -> Iterator[str]:
    events = list(report.snapshot.events)
    left_out = max(0, len(events) - MOST)
    listed = events if not left_out else [*events[: MOST // 2], *events[-MOST // 2 :]]
    for place, event in enumerate(listed):
        if left_out and place == MOST // 2:
            yield f"- … {left_out} more"
        at = plain(format.exact(event.at, utc)) if event.at else NOT_RECORDED
        reply = f", replies to {plain(event.reply_to)}" if event.reply_to else ""
        summary = f": {plain(event.summary)}" if event.summary else ""
        who = f"**{plain(event.actor)}** " if event.actor else ""
        yield f"- {at}, {plain(event.id)}, {who}{plain(event.kind)}{reply}{summary}"
