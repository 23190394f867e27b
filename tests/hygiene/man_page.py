"""docs/acp.1: the manual page, made from the help of all commands, their examples and exit codes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from unittest import mock

from acp_core import __version__
from acp_core.cli import table
from tests.hygiene.commands import commands
from tests.hygiene.commands_page import CODES, headings
from tests.hygiene.sources import ROOT

PAGE = ROOT / "docs" / "acp.1"
_PARTS = re.compile(r"^(Options|Commands|Examples|Exit codes):\n", re.M)
_ROW = re.compile(r"^  (\S+(?: \S+)*)(?: {2,}(.*))?$")
"""A row of help: what it explains, and the first words of the text, if there is room for them."""
_DESCRIPTION = """\
acp shows, live, how AI agents work together: whom they wait for and since when, what changed, what is wrong, and what
needs you. It explains why a collaboration is stuck, fixes it, runs the agents, and shows afterwards what happened.

Without a COMMAND, acp opens the dashboard on what is in and below each PATH, which is a folder, or the address of an agent or
a store; without a PATH, on the current folder. A COMMAND wins over a path of the same name: acp ./status opens the path.

COMMAND --help prints what this page says about the command."""
_ENVIRONMENT = (
    ("ACP_CONFIG", "Settings folder, in place of ~/.config/acp."),
    ("ACP_STATE", "State folder (recordings, logs, acknowledgements), in place of ~/.local/state/acp."),
    ("ACP_CACHE", "Cache folder, in place of ~/.cache/acp."),
    ("ACP_SIGNS", "Signs that commands print: words (for screen readers) or ascii."),
    ("ACP_DEBUG", "Set to 1 to print a traceback for errors of acp itself."),
    ("NO_COLOR", "Set to 1 to print and draw without colours."),
    ("EDITOR, VISUAL", "Editor for documents, if config.toml names none."),
)  # fmt: skip
_FILES = (
    ("~/.config/acp/config.toml", "Settings."),
    ("~/.local/state/acp", "Recordings, logs of loops, acknowledgements, your acts."),
    ("~/.cache/acp", "What acp can make again; delete it at any time."),
    (".acp/run", "In the folder of a collaboration: who runs it, and who acts for whom."),
)


def page() -> str:
    """The text of the page, for man."""
    with mock.patch.dict(os.environ, {"COLUMNS": "110"}):
        return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" made by python -m tests.hygiene.references'
    yield f'.TH ACP 1 "{_date()}" "acp {__version__}" "User Commands"'
    yield from (".nh", ".ad l")
    yield from (".SH NAME", "acp \\- mission control for people who coordinate several AI agents")
    yield from (".SH SYNOPSIS", ".B acp", "[PATH...]", ".br", ".B acp", "COMMAND [ARGUMENT...]")
    yield ".SH DESCRIPTION"
    yield from _paragraphs(_DESCRIPTION)
    yield ".SH COMMANDS"
    for heading, rows in headings().items():
        yield f".SS {_escaped(heading)}"
        yield from _rows(((f"acp {each.name}", each.summary) for each in rows), 18)
    yield from _section("OPTIONS", [("--version", "Print the version."),
                                    ("-h, --help", "Print the list of commands.")])  # fmt: skip
    yield from _section("EXIT STATUS", CODES)
    yield from _section("ENVIRONMENT", _ENVIRONMENT)
    yield from _section("FILES", _FILES)
    yield ".SH THE COMMANDS IN DETAIL"
    order = [each.name for rows in headings().values() for each in rows]
    for words in sorted(commands(), key=lambda words: order.index(words[0])):
        yield from _command(words)
    yield ".SH SEE ALSO"
    yield "git(1), tmux(1)"


def _date() -> str:
    """When this version was published, as CHANGELOG.md says."""
    said = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(__version__)} — (\d{{4}}-\d\d-\d\d)$", said, re.M)
    return found[1] if found else ""


def _command(words: tuple[str, ...]) -> Iterator[str]:
    """One command: what its help says."""
    found = table.manual_page(list(words))
    said = commands()[words].format_help() + (found.text() if found else "")
    about, *parts = _PARTS.split(said)
    usage, _, description = about.partition("\n\n")
    yield f'.SS "acp {_escaped(" ".join(words))}"'
    yield _escaped(usage.removeprefix("Usage: ").strip())
    yield from (".PP", _escaped(" ".join(description.split())))
    for kind, text in zip(parts[::2], parts[1::2], strict=True):
        yield from (".PP", f"{kind}:")
        if kind == "Examples":
            yield from (".RS 4", ".nf", *_verbatim(text), ".fi", ".RE")
        else:
            yield from _rows(_parsed(text))


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    """The rows of a table of help: what each explains, and its text in one line."""
    name, said = "", [""]
    for line in filter(None, text.splitlines()):
        row = _ROW.match(line)
        if row is None:
            said.append(line.strip())
            continue
        if name:
            yield name, " ".join(filter(None, said))
        name, said = row[1], [row[2] or ""]
    if name:
        yield name, " ".join(filter(None, said))


def _section(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {title}"
    yield from _rows(rows)


def _rows(rows: Iterable[tuple[str, str]], column: int = 7) -> Iterator[str]:
    for name, said in rows:
        yield from (f".TP {column}", f".B {_escaped(name)}", _escaped(said))


def _paragraphs(text: str) -> Iterator[str]:
    for number, each in enumerate(text.split("\n\n")):
        yield from [".PP"] * bool(number)
        yield _escaped(" ".join(each.split()))


def _verbatim(text: str) -> Iterator[str]:
    """Lines as they are, without the indent of help, and their own indent kept."""
    for line in text.strip("\n").splitlines():
        own = line.removeprefix("  ")
        yield " " * (len(own) - len(own.lstrip())) + _escaped(own)


def _escaped(text: str) -> str:
    """Text as man prints it: no sign of it is a request, and a hyphen can be searched for."""
    signs = text.strip().replace("\\", "\\e").replace("-", "\\-")
    quotes = signs.replace("'", "\\(aq").replace('"', "\\(dq").replace("`", "\\(ga")
    return f"\\&{quotes}" if quotes.startswith((".", "\\(aq")) else quotes
