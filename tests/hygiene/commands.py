"""Every command of `acp`, with its sub-commands: what it accepts, and what its help says."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from acp_core.cli import table
from acp_core.model.errors import Refused
from acp_core.protocols import registry
from acp_core.protocols.kit.command import GroupParser

Parsed = argparse.ArgumentParser | GroupParser


def _sub(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def _below(words: tuple[str, ...], parser: argparse.ArgumentParser | GroupParser) -> Iterator[
    tuple[tuple[str, ...], Parsed]
]:  # fmt: skip
    yield words, parser
    if isinstance(parser, GroupParser):
        for verb in (*parser.commands.specs, *parser.commands.groups):
            made = parser.commands.find(verb)
            assert made is not None
            yield from _below((*words, verb), made)
        return
    seen: set[int] = set()
    for name, each in _sub(parser).items():
        if id(each) in seen:  # another name for the same
            continue
        seen.add(id(each))
        yield from _below((*words, name), each)


@cache
def commands() -> dict[tuple[str, ...], Parsed]:
    """Each command by its words, ``("governed", "step")``, and what takes its arguments apart."""
    found: dict[tuple[str, ...], Parsed] = {}
    for entry in table.ENTRIES:
        found |= _below((entry.name,), registry.load(entry.parser)())
    for protocol in registry.bundled():
        for command in protocol.commands:
            parser = registry.load(command.parser)()
            found |= _below((command.name,), parser)
            for verb in _verbs(command):
                found |= _below((command.name, verb.name), registry.load(verb.parser)())
    return found


def _verbs(command: registry.Command) -> tuple[Any, ...]:
    """The verbs of a command that finds them by itself: a table beside it, of entries like these."""
    module = importlib.import_module(command.target.partition(":")[0])
    return getattr(module, "VERBS", ())


def problem(words: Sequence[str]) -> str | None:
    """What is wrong with a command line (its words after ``acp``); None where nothing is.

    A line may leave out at its end what a command needs: it then names the command only.
    """
    known = commands()
    named = [w for w in known if tuple(words[: len(w)]) == w]
    if not named:
        return None if not words or words[0].startswith("-") or _is_path(words[0]) else "no command"
    command = max(named, key=len)
    rest, parsed = list(words[len(command) :]), known[command]
    if not rest:
        return None
    try:
        with (
            contextlib.redirect_stderr(io.StringIO()) as said,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            if isinstance(parsed, GroupParser):
                return None if rest[0] in ("-h", "--help") else "no command"
            before = rest[: rest.index("--")] if "--" in rest else rest
            parsed.parse_args(before)
    except SystemExit as end:
        return said.getvalue() if end.code else None
    except Refused as error:
        return str(error)
    return None


def _is_path(word: str) -> bool:
    return word[0] in "./~" or "/" in word or word.isupper()
