"""README.md and the pages of docs: their command lines, their running text, what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.hygiene.sources import ROOT

PAGES = (("README.md",), *(("docs", path.name) for path in sorted((ROOT / "docs").glob("*.md"))))
"""Each page as the parts of its path, for the names of tests."""
_BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
_SHELL = re.compile(r"^```(?:sh|bash|shell)?\n(.*?)^```", re.M | re.S)
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?=acp )")


def text(place: tuple[str, ...]) -> str:
    """What stands on a page."""
    return ROOT.joinpath(*place).read_text(encoding="utf-8")


def prose(place: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The lines of a page without its blocks of commands and code, each with its number."""
    blank = _BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text(place))
    yield from enumerate(blank.splitlines(), 1)


def quoted(place: tuple[str, ...]) -> Iterator[str]:
    """What stands between backticks in the running text of a page, each in one line."""
    yield from quoted_in(text(place))


def quoted_in(page: str) -> Iterator[str]:
    """What stands between backticks in running text, each in one line."""
    for found in re.findall(r"`([^`]+)`", _BLOCK.sub("", page)):
        yield re.sub(r"\n *", " ", found)


def lines(place: tuple[str, ...]) -> Iterator[str]:
    """The command lines of acp in the shell blocks of a page, and in its running text."""
    yield from block_lines(place)
    yield from lines_in(text(place))


def lines_in(page: str) -> Iterator[str]:
    """The command lines of acp in running text."""
    for each in quoted_in(page):
        if "..." not in each and "|" not in each and _COMMAND.match(each):
            yield _COMMAND.sub("", each)


def block_lines(place: tuple[str, ...]) -> Iterator[str]:
    """The command lines of acp in the shell blocks of a page."""
    for block in _SHELL.findall(text(place)):
        for line in block.replace("\\\n", " ").splitlines():
            yield from re.findall(r"\$\((acp [^)]+)\)", line)
            for part in re.split(r"&&|; ", line):
                if _COMMAND.match(part.strip()):
                    yield _COMMAND.sub("", part.strip())


def anchors(page: Path) -> set[str]:
    """What links can name on a page: its headings, as web pages write them."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", page.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
