"""Every command of `acp` under one click group: the map, and completion.

``acp --help`` is the map of everything, made without importing any of it. What the commands take is
described elsewhere (see `acp_core.model.action_spec`); shells are answered by click, which knows how
bash, zsh and fish ask. ``acp completion SHELL`` prints the script that makes a shell ask.

The commands get their arguments as they were typed; parsers are only read, to complete what
they accept: verbs, options, and what can be chosen now. Beside the choices of an input these are names
that acp reads where they are.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

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
from acp_core.model.action_field import (
    DOCUMENTS,
    PARTICIPANTS,
    PRESETS,
    STORIES,
    VIEWS,
    Field,
    Kind,
)
from acp_core.model.action_spec import ActionSpec, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError, CommandError, Refused
from acp_core.protocols import registry
from acp_core.protocols.kit.command import GroupParser
from acp_core.protocols.kit.parser import Parser, fields_of
from acp_core.protocols.kit.values import Values

if TYPE_CHECKING:
    from acp_core.model import Snapshot


def suggested(field: Field, place: str, incomplete: str) -> Iterator[str]:
    """What can be written for an input now, as far as it begins like what was typed.

    Args:
        field: the input.
        place: the collaboration that the command line names; "" if it names none.
        incomplete: what was typed of it.
    """
    names = _SOURCES.get(field.suggests, _nothing)
    given, equals, _ = incomplete.partition("=")
    if field.suggests == PRESETS and equals:  # NAME=PRESET
        names, place = (lambda place: (f"{given}={each}" for each in _presets(place))), ""
    elif field.suggests == PRESETS and field.metavar.startswith(("PARTICIPANT", "ROLE")):
        return  # its first half is a name that is made up
    yield from (each for each in names(place) if each.startswith(incomplete))


def _snapshot(place: str) -> Snapshot | None:
    from acp_core.protocols import locations

    found = locations.find(os.path.realpath(place)) if place and os.path.isdir(place) else None
    return found.open().refresh(utc_now()) if found is not None else None


def _participants(place: str) -> Iterator[str]:
    snapshot = _snapshot(place)
    yield from (each.id for each in snapshot.participants if each.id) if snapshot else ()


def _documents(place: str) -> Iterator[str]:
    snapshot = _snapshot(place)
    yield from (each.id for each in snapshot.documents) if snapshot else ()


def _presets(place: str) -> Iterator[str]:
    from acp_core.agents import presets
    from acp_core.person import settings

    yield from presets.load(settings.load().presets)


def _views(place: str) -> Iterator[str]:
    from acp_core.person import settings, views

    yield from views.parse(settings.load().fleet).saved


def _stories(place: str) -> Iterator[str]:
    from acp_core.cli import demo

    yield from demo.causes_to_play(next(known for known in registry.bundled() if known.rehearse))


def _nothing(place: str) -> Iterator[str]:
    yield from ()


_SOURCES: Mapping[str, Callable[[str], Iterator[str]]] = {
    PARTICIPANTS: _participants,
    DOCUMENTS: _documents,
    PRESETS: _presets,
    VIEWS: _views,
    STORIES: _stories,
}

_PLACES = ("folder", "folders", "collaboration", "paths")
"""Inputs that name the collaboration; other folders are where something else is."""


def described_parameters(
    parser: Parser | GroupParser, words: Sequence[str]
) -> tuple[list[click.Parameter], list[str]]:
    """What a command accepts after ``words``, and those of them that its parameters take."""
    if isinstance(parser, Parser):
        spec, rest = parser.completed(words)
        return of_spec(spec), rest
    verb = parser.commands.find(words[0]) if words else None
    if isinstance(verb, GroupParser):
        return described_parameters(verb, words[1:])
    if verb is None:
        verbs = click.Choice([*parser.commands.specs, *parser.commands.groups])
        return [click.Argument(["verb"], type=verbs, required=False), _help()], list(words)
    return of_spec(verb.spec), list(words[1:])


def of_spec(spec: Spec) -> list[click.Parameter]:
    """What the command of an act or a query accepts."""
    fields = fields_of(spec)
    found: list[click.Parameter] = [_argument(spec, each) for each in fields if each.position]
    return [*found, *(_option(spec, each) for each in fields if each.listed), _help()]


def _argument(spec: Spec, field: Field) -> click.Argument:
    return click.Argument(
        [field.name],
        type=_type(field),
        required=False,
        nargs=-1 if field.kind is Kind.LIST else 1,
        shell_complete=_completed(spec, field),
    )


def _option(spec: Spec, field: Field) -> click.Option:
    flag = field.kind is Kind.FLAG
    return click.Option(
        [f"p_{field.name}", field.option, *filter(None, [field.short])],
        type=None if flag else _type(field),
        is_flag=flag,
        multiple=not flag,  # so that it stays on offer where it may be repeated
        help=field.help or field.title,
        shell_complete=None if flag else _completed(spec, field),
    )


def _help() -> click.Option:
    return click.Option(
        ["p_help", "--help", "-h"], is_flag=True, help="Show this message and exit."
    )


def _type(field: Field) -> click.ParamType[object]:
    kind = field.items if field.kind is Kind.LIST else field.kind
    if kind in (Kind.FOLDER, Kind.FILE):
        return click.Path(file_okay=kind is Kind.FILE)
    chosen = field.choices and field.kind is Kind.CHOICE
    return click.Choice(list(map(str, field.choices))) if chosen else click.STRING


def _completed(spec: Spec, field: Field) -> object:
    """What completes an input: what can be chosen in the collaboration that is named, or given there."""
    choice = Kind.CHOICE in (field.kind, field.items) and isinstance(spec, ActionSpec)
    if not choice and not field.suggests:
        return None

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        chosen = _choices(spec, field, context) if isinstance(spec, ActionSpec) and choice else []
        found = [each for each in chosen if each.value and each.value.startswith(incomplete)]
        return found or _suggested(field, _place(spec, context), incomplete)

    return complete


def _choices(spec: ActionSpec, field: Field, context: click.Context) -> list[CompletionItem]:
    now = _now(spec, field, context)
    given = [*now.names, *(f"{name}={v}" for name in now.names for v in now.choices)]
    return [CompletionItem(str(v), help=now.labels.get(v)) for v in given or now.choices]


def _suggested(field: Field, place: str, incomplete: str) -> list[CompletionItem]:

    try:
        return [CompletionItem(each) for each in suggested(field, place, incomplete)]
    except (AcpError, OSError, ValueError):
        return []


def _now(spec: ActionSpec, field: Field, context: click.Context) -> Field:
    """The field as it can be given now; as described where the act cannot be done."""
    from acp_core.protocols.kit.binding import bind, located  # late: the map needs none of it

    try:
        action = bind(spec, located(spec, _place(spec, context)), utc_now())
    except (Refused, OSError):
        return field
    fields = action.fields if action is not None else ()
    return next((each for each in fields or () if each.name == field.name), field)


def _place(spec: Spec, context: click.Context) -> str:
    """The collaboration that is named so far; the one that is taken where none is."""
    places = [each for each in fields_of(spec) if Kind.FOLDER in (each.kind, each.items)]
    own = spec.place if isinstance(spec, ActionSpec) else None
    told = [each for each in places if each.name == "collaboration"]  # of what has another place
    for each in [*told, *([own] if own else places)]:
        named = context.params.get(f"p_{each.name}") or ()
        place = context.params.get(each.name) or (named[0] if named else each.default)
        if place and (own or each.name in _PLACES):
            return str(place if isinstance(place, str) else place[0])
    return "." if (own.kind is Kind.FOLDER if own else places) else ""


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
            if isinstance(parser, Parser | GroupParser):
                self.params, rest = described_parameters(parser, args)
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
        return click.Argument([action.dest], type=_argparse_type(action), required=False, nargs=1)
    flag = action.nargs == 0
    return click.Option(
        [f"p_{action.dest}", *action.option_strings],
        type=None if flag else _argparse_type(action),
        is_flag=flag,
        multiple=not flag,  # so that it stays on offer where it may be repeated
        help=text,
        hidden=action.help is argparse.SUPPRESS,
    )


def _argparse_type(action: argparse.Action) -> click.ParamType[Any]:
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
