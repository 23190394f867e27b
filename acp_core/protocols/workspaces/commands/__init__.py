"""``acp workspaces``: a run of sub-agents prepared, dispatched, judged and integrated."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from acp_core.agents.presets import PresetError
from acp_core.protocols.kit.command_line import Parser, run

Verb = Callable[[argparse.Namespace], int]


def parser() -> argparse.ArgumentParser:
    """The arguments of ``acp workspaces``."""
    from acp_core.protocols.workspaces.commands import (
        dispatching,
        integrating,
        judging,
        looking,
        preparing,
    )

    made = Parser(
        prog="acp workspaces",
        description="An orchestrator's sub-agents: prepare their workspaces, dispatch them, decide "
        "on what comes back, and integrate it. Exit codes: 0 done; 1 something is left for you; "
        "2 refused, nothing was done.",
    )
    verbs = made.add_subparsers(dest="verb", metavar="COMMAND", required=True, parser_class=Parser)
    for room in (preparing, dispatching, looking, judging, integrating):
        room.add(verbs)
    return made


def main(arguments: Sequence[str]) -> int:
    """``acp workspaces``: the exit code."""

    def perform() -> int:
        own, rest = _split(list(arguments))
        options = parser().parse_args(own)
        if rest is not None and not hasattr(options, "words"):
            parser().error("no command can be given here")
        options.words = rest or []
        verb: Verb = options.perform
        return verb(options)

    return run(perform, PresetError)


def _split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """The arguments, and after ``--`` the words of a command."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]
