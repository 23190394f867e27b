"""The help of every command, found by reading the help of what stands above it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.golden.capture import DATA
from tests.golden.sandbox import Sandbox

LIST = "help/commands.txt"
ALL = "acp"  # the name of the program's own help
_LISTED = re.compile(r"^ {2,4}([a-z][a-z-]*)(?: |$)", re.M)
_GROUP = re.compile(r"(?i:usage): [\w -]*(?:\[-h\] )?(?:COMMAND|VERB|[a-z-]+ \.\.\.)")


def kept() -> list[str]:
    """The names of the goldens that there are."""
    names = [f"help/{path.name}" for path in sorted((DATA / "help").glob("*.txt"))]
    return sorted({LIST, *names})


def found() -> list[str]:
    """The names of the goldens of today's commands."""
    return [LIST, *(_name(words) for words in _commands())]


def text(name: str) -> str:
    """A golden: the list of all commands, or the help of one; empty where there is none."""
    if name == LIST:
        return "".join(" ".join(words) + "\n" for words in _commands())
    words = name.removeprefix("help/").removesuffix(".txt").split("_")
    return _help(() if words == [ALL] else tuple(words))


def _name(words: tuple[str, ...]) -> str:
    return f"help/{'_'.join(words) or ALL}.txt"


def _commands() -> list[tuple[str, ...]]:
    return [(), *sorted(_below(()))]


def _below(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The commands that the help of a group names; options and files answer with another's help."""
    printed = _help(words)
    if words and not _GROUP.search(printed):
        return
    for listed in dict.fromkeys(_LISTED.findall(printed)):
        if _help((*words, listed)):
            yield (*words, listed)
            yield from _below((*words, listed))


def _help(words: tuple[str, ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="acp-golden-") as place:
        printed = Sandbox(Path(place) / "sandbox").acp(*words, "--help").stdout
    usage = printed.partition("\n")[0].lower()
    own = not words or re.match(rf"usage: acp {re.escape(' '.join(words))}(?: |$)", usage)
    return printed if own else ""
