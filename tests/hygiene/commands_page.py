"""docs/commands.md: every command with its options, examples and exit codes, made from the commands themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from unittest import mock

from acp_core.cli import table
from acp_core.protocols import registry
from acp_core.protocols.kit.command import GroupParser
from acp_core.protocols.kit.parser import USUAL
from tests.hygiene.commands import Parsed, commands
from tests.hygiene.sources import ROOT

PAGE = ROOT / "docs" / "commands.md"
_INTRODUCTION = """\
# Commands

<!-- made by python -m tests.hygiene.references -->

Every command of acp, with its options, examples and exit codes: what `acp COMMAND --help` prints. To find the command for a
task, see [index.md](index.md).

`acp` without a command opens the dashboard on the folders and addresses that you name, or on this folder. A command
wins over a path of the same name: `acp ./status` opens the path.

"""
CODES = (
    ("0", "done; also for an action that is queued, because another process must apply it"),
    ("1", "something is left to do, or the result is unknown"),
    ("2", "refused, or invalid input: one line on the standard error says why"),
    ("130", "interrupted"),
    ("141", "the program that read the output ended"),
)
"""The exit codes that mean the same for every command."""
_CODES = f"""\
## Exit codes

These codes mean the same for every command:

| code | meaning |
|---|---|
{"".join(f"| {code} | {meaning} |{chr(10)}" for code, meaning in CODES)}
`acp act` ends as the command of the action would. These commands say more by their codes:

| command | codes |
|---|---|
"""


def page() -> str:
    """The text of the page."""
    with mock.patch.dict(os.environ, {"COLUMNS": "100"}):
        return "".join((_INTRODUCTION, *_map(), _CODES, *_codes(), *_sections()))


def headings() -> dict[str, list[registry.Command]]:
    """The map of `acp --help`: its headings with the commands of acp and its own protocols."""
    found: dict[str, list[registry.Command]] = {heading: [] for heading in table.HEADINGS}
    added = [each for protocol in registry.bundled() for each in protocol.commands]
    for each in (*table.ENTRIES, *added):
        found.setdefault(each.group, []).append(each)
    return found


def _map() -> Iterator[str]:
    """What each command is for, with a link to its section."""
    yield "## All commands\n\n| command | does |\n|---|---|\n"
    for heading, rows in headings().items():
        yield f"| **{heading}** | |\n"
        for each in rows:
            yield f"| [acp {each.name}](#acp-{each.name}) | {each.summary} |\n"
    yield "\n"


def _codes() -> Iterator[str]:
    """The exit codes that mean more than the usual ones, with the commands that have them."""
    found: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for words in commands():
        known = table.manual_page(list(words))
        if known and not _is_group(words) and set(known.exits) - set(USUAL):
            own = tuple(each for each in known.exits if each not in USUAL)
            found.setdefault(own, []).append(" ".join(words))
    for codes, names in found.items():
        meanings = "; ".join(f"{code} {meaning}" for code, meaning in codes)
        yield f"| acp {', '.join(names)} | {meanings} |\n"


def _is_group(words: tuple[str, ...]) -> bool:
    return isinstance(commands()[words], GroupParser)


def _sections() -> Iterator[str]:
    names = [each.name for rows in headings().values() for each in rows]
    for name in names:
        for words, parsed in commands().items():
            if words[0] == name:
                level = "##" if len(words) == 1 else "###"
                yield f"\n{level} acp {' '.join(words)}\n\n```text\n{_help(words, parsed)}\n```\n"


def _help(words: tuple[str, ...], parsed: Parsed) -> str:
    """What `--help` prints."""
    found = table.manual_page(list(words))
    said = parsed.format_help() + (found.text() if found else "")
    return re.sub(r"[ \t]+$", "", said, flags=re.M).strip()
