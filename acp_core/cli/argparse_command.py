"""A protocol's argparse command, as a click command: for the map, and for completion.

The command itself always gets its arguments as they were typed; its parser is only
read, to complete what it accepts.
"""

from __future__ import annotations

import argparse
from typing import Any

import click

from acp_core.protocols import registry

PLACES = frozenset({"folder", "dir", "directory"})  # names of arguments that take a folder
FILES = frozenset({"file", "path"})


class ArgparseCommand(click.Command):
    """Hands everything after its name to the function of a `protocols.Command`."""

    def __init__(self, command: registry.Command) -> None:
        super().__init__(command.name, short_help=command.summary, add_help_option=False)
        self._target = command.target
        self._parser = command.parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they are; take them apart only in order to complete them."""
        if ctx.resilient_parsing:
            parser: argparse.ArgumentParser = registry.load(self._parser)()
            from acp_core.cli import described  # late: the map of commands needs none of these
            from acp_core.protocols.kit.command import GroupParser
            from acp_core.protocols.kit.parser import Parser

            if isinstance(parser, Parser | GroupParser):
                self.params, rest = described.parameters(parser, args)
                return super().parse_args(ctx, rest)
            rest = list(args)
            for place, word in enumerate(args, 1):  # a sub-command has a parser of its own
                if word in _subparsers(parser):
                    parser, rest = _subparsers(parser)[word], args[place:]
            self.params = parameters(parser)
            return super().parse_args(ctx, rest)
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> int:
        """Call the function and return its exit code."""
        code: int = registry.load(self._target)(ctx.args)
        return code


def parameters(parser: argparse.ArgumentParser) -> list[click.Parameter]:
    """What a parser accepts, as click parameters that complete it."""
    return [_parameter(action) for action in parser._actions]


def _parameter(action: argparse.Action) -> click.Parameter:
    text = action.help if action.help and action.help is not argparse.SUPPRESS else None
    if not action.option_strings:
        return click.Argument([action.dest], type=_type(action), required=False, nargs=1)
    flag = action.nargs == 0
    return click.Option(
        [f"p_{action.dest}", *action.option_strings],
        type=None if flag else _type(action),
        is_flag=flag,
        multiple=not flag,  # so that it stays on offer where it may be repeated
        help=text,
        hidden=action.help is argparse.SUPPRESS,
    )


def _type(action: argparse.Action) -> click.ParamType[Any]:
    if action.choices is not None:
        return click.Choice([str(choice) for choice in action.choices])
    words = set(action.dest.lower().split("_"))
    if words & PLACES:
        return click.Path(file_okay=False)
    return click.Path() if words & FILES else click.STRING


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}
