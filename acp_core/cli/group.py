"""Every command of `acp` under one click group: the map, and completion.

``acp --help`` is the map of everything, made without importing any of it. What the commands take is
described elsewhere (see `acp_core.model.action_spec`); shells are answered by click, which knows how
bash, zsh and fish ask. ``acp completion SHELL`` prints the script that makes a shell ask.

The commands get their arguments as they were typed; parsers are only read, to complete what
they accept.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from acp_core import __version__
from acp_core.cli import table
from acp_core.cli.context import COMPLETE
from acp_core.model.errors import CommandError
from acp_core.protocols import registry
from acp_core.protocols.kit.values import Values

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
            from acp_core.cli import suggestions  # late: the map of commands needs none of these
            from acp_core.protocols.kit.command import GroupParser
            from acp_core.protocols.kit.parser import Parser

            if isinstance(parser, Parser | GroupParser):
                self.params, rest = suggestions.described_parameters(parser, args)
                return super().parse_args(ctx, rest)
            rest = list(args)
            for place, word in enumerate(args, 1):  # a sub-command has a parser of its own
                if word in _subparsers(parser):
                    parser, rest = _subparsers(parser)[word], args[place:]
            self.params = parameters_of_argparse(parser)
            return super().parse_args(ctx, rest)
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> int:
        """Call the function and return its exit code."""
        code: int = registry.load(self._target)(ctx.args)
        return code


def parameters_of_argparse(parser: argparse.ArgumentParser) -> list[click.Parameter]:
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


USAGE = """\
Usage:
  acp [PATH...]    Open the dashboard on what is below PATH (default: here)
  acp COMMAND ...  Run a command; `acp COMMAND --help` says more

A command wins over a path of the same name: `acp ./status` opens the path."""


class Commands(click.Group):
    """The commands of the table and of the installed protocols."""

    @cached_property
    def _protocol_commands(self) -> dict[str, registry.Command]:
        found: dict[str, registry.Command] = {}
        for protocol in registry.installed():
            for command in protocol.commands:
                found.setdefault(command.name, command)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the map."""
        return [row.name for _, rows in self.headings() for row in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; it is imported when it is used."""
        entry = table.entry_named(cmd_name) or self._protocol_commands.get(cmd_name)
        return ArgparseCommand(entry) if entry else None

    def headings(self) -> Iterator[tuple[str, list[registry.Command]]]:
        """The map: each heading with its commands."""
        groups: dict[str, list[registry.Command]] = {heading: [] for heading in table.HEADINGS}
        taken = {entry.name for entry in table.ENTRIES}
        added = [c for name, c in self._protocol_commands.items() if name not in taken]
        rows = [*table.ENTRIES, *added]
        for row in rows:
            groups.setdefault(row.group, []).append(row)
        return ((heading, listed) for heading, listed in groups.items() if listed)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the map."""
        formatter.write("acp: mission control for people who coordinate several AI agents.\n\n")
        formatter.write(f"{USAGE}\n")
        widest = max(len(name) for name in self.list_commands(ctx))
        for heading, rows in self.headings():
            with formatter.section(heading):
                formatter.write_dl([(row.name.ljust(widest), row.summary) for row in rows])
        click.Command.format_options(self, ctx, formatter)  # a group's would list commands again

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, or folders: ``acp PATH`` opens the dashboard."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        rows = [row for _, rows in self.headings() for row in rows]
        names = [
            CompletionItem(row.name, help=row.summary)
            for row in rows
            if row.name.startswith(incomplete)
        ]
        return names or [CompletionItem(incomplete, type="dir")]


def group() -> Commands:
    """The group, with its options."""
    commands = Commands(
        name="acp",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
        options_metavar="",
        subcommand_metavar="COMMAND ...",
    )
    version = click.version_option(__version__, prog_name="acp", message="%(prog)s %(version)s")
    decorated: Commands = version(commands)
    return decorated


def invoke(arguments: Sequence[str]) -> int:
    """Print the map or the version, or run a command of another distribution; the exit code.

    Raises:
        CommandError: the command was called in a wrong way, or cannot go on.
    """
    commands = group()
    try:
        with commands.make_context("acp", list(arguments)) as context:
            code = commands.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        raise CommandError(_sentence(error)) from None
    return code if isinstance(code, int) else 0


def _sentence(error: click.ClickException) -> str:
    """What is wrong, and where to read more, on one line."""
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    if isinstance(error, click.UsageError) and context is not None:
        message += f" (see `{context.command_path} --help`)"
    return message


PROGRAM = "acp"
BREAKS = ("=", ":")
"""Signs at which bash takes a word apart before it asks."""


class Bash(BashComplete):
    """Answers bash, which sends `reviewer=cl` as three words and replaces only the last of them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is typed, and that one, as a person typed them."""
        words = split_arg_string(os.environ["COMP_WORDS"])
        at = int(os.environ["COMP_CWORD"])
        words = [*words[:at], words[at] if at < len(words) else ""]
        self._kept, whole = "", words[:1]
        for before, word in pairwise(words):
            if word in BREAKS or (before in BREAKS and len(whole) > 1):
                whole[-1] += word
            else:
                whole.append(word)
        if words[-1] in BREAKS:
            self._kept = whole[-1]
        elif words[-2:-1] and words[-2] in BREAKS:
            self._kept = whole[-1].removesuffix(words[-1])
        return whole[1:-1], whole[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """One answer, without the words that bash keeps."""
        return f"{item.type},{item.value.removeprefix(self._kept)}"


add_completion_class(Bash)


def completion(given: Values) -> int:
    """Print the script.

    Raises:
        CommandError: the installed click knows no such shell.
    """

    kind = get_completion_class(given.shell)
    if kind is None:
        raise CommandError(f"the installed version of click cannot complete for {given.shell}")
    # not the class's own `source`: bash's would start a bash to look at its version
    script = kind(group(), {}, PROGRAM, COMPLETE)
    print(kind.source_template % script.source_vars())
    return 0


def complete(instruction: str) -> int:
    """Answer a completion script; ``instruction`` is what it put into the environment."""

    return shell_complete(group(), {}, PROGRAM, COMPLETE, instruction)
