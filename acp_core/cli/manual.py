"""Examples and exit codes of all commands: they stand in the descriptions of their acts and queries."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.cli import table
from acp_core.protocols import registry
from acp_core.protocols.kit.parser import Page, page_of

HELP = ("-h", "--help")


def asked(arguments: Sequence[str]) -> bool:
    """Whether the arguments of `acp` ask for help."""
    before = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    return any(word in HELP for word in before)


def page(arguments: Sequence[str]) -> Page | None:
    """The page of the command that these arguments of `acp` begin with."""
    words: list[str] = []
    for word in arguments:
        if word.startswith("-"):
            break
        words.append(word)
    if not words:
        return None
    entry = table.entry(words[0])
    if entry is not None:
        return page_of(tuple(words), registry.load(f"{entry.parser.rpartition('.')[0]}.manual"))
    for protocol in registry.installed():
        if protocol.manual and any(each.name == words[0] for each in protocol.commands):
            return page_of(tuple(words), registry.load(protocol.manual))
    return None
