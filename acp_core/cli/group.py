"""Every command of `acp` under one click group: the map, and completion.

``acp --help`` is the map of everything, made without importing any of it. What the commands take is
described elsewhere (see `acp_core.model.action_spec`); shells are answered by click, which knows how
bash, zsh and fish ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import click
from click.shell_completion import CompletionItem

from acp_core import __version__
from acp_core.cli import table
from acp_core.cli.argparse_command import ArgparseCommand
from acp_core.model.errors import CommandError
from acp_core.protocols import registry

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
        entry = table.entry(cmd_name) or self._protocol_commands.get(cmd_name)
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
