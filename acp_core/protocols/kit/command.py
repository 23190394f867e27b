"""The commands of a protocol, made from the descriptions of its acts and queries.

A command is parsed, its act bound to the collaboration, and then shown (``--dry-run``) or done; a
query is answered. Standard library only; what an act needs is loaded when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any

from acp_core.files import read_only
from acp_core.model.action import Outcome, OutcomeState
from acp_core.model.action_spec import ActionSpec, Answer, By, Field, Kind, QuerySpec, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols import registry
from acp_core.protocols.kit import command_line, values
from acp_core.protocols.kit.command_line import asks_for_json, program, run, say
from acp_core.protocols.kit.parser import (
    Manual,
    Page,
    Parser,
    columns,
    confirmed,
    ended,
    say_error,
    say_object,
    say_outcome,
    show,
)
from acp_core.protocols.registry import load

_ABOUT_MIRRORS = frozenset({"sync", "unshare", "ask", "share"})
"""Commands of acts that can be given a folder that only shows what another host conducts."""


class Commands:
    """A protocol's command with its verbs: ``acp NAME VERB ...``; or one act alone: ``acp NAME ...``."""

    def __init__(
        self,
        name: str,
        sentence: str,
        specs: Sequence[Spec],
        schema: str,
        groups: Sequence[Commands] = (),
    ) -> None:
        """Make it.

        Args:
            name: the word after `acp`, or the words of a group: ``governed coordinator``.
            sentence: what its help begins with.
            specs: every act and query that has a command, in the order of the help.
            schema: the schema that its JSON names, such as ``acp.workspaces/1``.
            groups: commands with verbs of their own below this one, listed after its verbs.
        """
        self.name, self.sentence, self.schema = name, sentence, schema
        self.groups = {each.name.removeprefix(f"{name} "): each for each in groups}
        self.specs = {
            verb: each for each in specs for verb in [_verb(each, name)] if verb is not None
        }

    def main(self, arguments: Sequence[str]) -> int:
        """Run the command; the exit code."""
        given = list(arguments)
        on_error = say_error if asks_for_json(given) else None
        return run(lambda: self._run(given), on_error=on_error)

    def _run(self, arguments: list[str]) -> int:
        below = self.groups.get(arguments[0]) if arguments else None
        if below is not None:
            return below._run(arguments[1:])
        words, command = _split(arguments)
        verb = "" if "" in self.specs else words.pop(0) if words else ""
        parser = self._parser_of(verb)
        if parser is not None and command is not None:
            parser = self._parser_of(_taker(parser.spec)) or parser
        if parser is None:
            return self._explain(verb)
        if isinstance(parser.spec, QuerySpec) and command is not None:
            words, command = [*words, "--", *command], None  # it takes words, and no command
        given = parser.parse_args(words)
        spec: Spec = given.spec
        given.words = _accepted(spec, command)
        if isinstance(spec, QuerySpec):
            values.require(spec.fields, given)
            return load(spec.run)(given) if spec.run else self._answer(verb, spec.answer, given)
        return self._act(verb, spec, given)

    def _explain(self, verb: str) -> int:
        if verb in ("-h", "--help"):
            print(self.parser().format_help(), end="")
            return 0
        known = ", ".join((*self.specs, *self.groups))
        if not verb:
            raise Refused(f"missing command (available: {known})")
        raise Refused(f"unknown command {verb!r} of `acp {self.name}` (available: {known})")

    def _answer(self, verb: str, answer: str, given: Any) -> int:
        found: Answer = load(answer)(given)
        if getattr(given, "json", False):
            say_object(self.schema, verb or self.name, **found.data)
        else:
            for line in found.lines:
                say(line)
        return found.code

    def _act(self, verb: str, spec: ActionSpec, given: Any) -> int:
        if spec.alone and all(getattr(given, each.name) == each.empty for each in spec.fields):
            return self._answer(verb, spec.alone, given)
        values.require((*([spec.place] if spec.place else []), *spec.fields), given)
        told = read_only.holder(getattr(given, spec.place.name)) if spec.place else ""
        if told and spec.command not in _ABOUT_MIRRORS:
            raise Refused(told)
        if spec.run:
            code: int | None = load(spec.run)(given)
            if code is not None:
                return code
        return perform(self.schema, verb or self.name, spec, given)

    # help

    def find(self, verb: str) -> Parser | GroupParser | None:
        """The parser of a verb, new or old, or of a group; None where there is none."""
        return self.groups[verb].parser() if verb in self.groups else self._parser_of(verb)

    def _parser_of(self, verb: str) -> Parser | None:
        old = verb.replace("-", "_")
        spec = self.specs.get(verb) or next(
            (each for each in self.specs.values() if verb and old in each.aliases), None
        )
        if spec is None:
            return None
        return MovedParser(spec, f"{program(self.name)} {verb}".rstrip(), self)

    def parser(self) -> Parser | GroupParser:
        """What takes the arguments apart: for help, and for completion."""
        return self._parser_of("") or GroupParser(self)

    @cached_property
    def manual(self) -> Manual:
        """Examples and exit codes, by the words of their command."""
        pages: dict[str, Page] = {} if "" in self.specs else {self.name: self._page()}
        for verb, spec in self.specs.items():
            pages[f"{self.name} {verb}".rstrip()] = Page(spec.examples, spec.exits)
        for each in self.groups.values():
            pages |= each.manual
        return pages

    def _page(self) -> Page:
        examples = [each for spec in self.specs.values() for each in spec.examples[:1]]
        return Page(tuple(examples[:3]))


def perform(schema: str, verb: str, spec: ActionSpec, given: Any) -> int:
    """Show what an act would do, or do it, and print that; the exit code.

    Args:
        schema: what its JSON names.
        verb: how the command was called.
        spec: the act.
        given: the values of all fields.

    Raises:
        Refused: it cannot be done, or not now.
    """
    from acp_core.protocols.kit.binding import bind, located

    place = getattr(given, spec.place.name) if spec.place else ""
    where = located(spec, place)
    action = bind(spec, where, utc_now())
    if action is None:
        raise Refused(f"{spec.label} is not available now")
    if given.dry_run:
        return show(schema, verb, action.preview(given), as_json=given.json)
    if command_line.YES in spec.fields and not confirmed(action.preview(given), given):
        say("not done")
        return 1
    outcome = action.perform(given)
    note(where.key, spec, given, outcome)
    _say_end(schema, verb, outcome, given.json)
    if outcome.failed:
        return 1
    return spec.unknown if outcome.state is OutcomeState.UNKNOWN else 0


def note(key: str, spec: ActionSpec, given: Any, outcome: Outcome) -> None:
    """Keep a person's act in that person's journal, as those of the screen are kept."""
    if spec.by is not By.HUMAN or spec.personal:
        return
    from acp_core.person import journal

    inputs = {
        each.name: getattr(given, each.name) for each in spec.fields if each.name in given.said
    }
    journal.note(key, spec.name, inputs, outcome.state.value, outcome.sentence, utc_now())


def _say_end(schema: str, verb: str, outcome: Outcome, as_json: bool) -> None:
    if outcome.state is OutcomeState.REFUSED and not outcome.failed:
        raise Refused(outcome.sentence)
    if as_json:
        done = outcome.state is OutcomeState.DONE
        say_object(schema, verb, done=done, **ended(outcome))
    else:
        say_outcome(outcome)


class MovedParser(Parser):
    """Hands a switch that has become a verb of its own to that verb's parser."""

    def __init__(self, spec: Spec, prog: str, commands: Commands) -> None:
        """Make it for a command of a protocol."""
        super().__init__(spec, prog)
        self._commands = commands

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The values, with the ``spec`` that they are for."""
        words = list(args or ())
        for verb, rewritten in _moved(self.spec, words):
            other = self._commands.find(verb)
            if isinstance(other, Parser):
                return other.parse_args(rewritten)
        given = super().parse_args(words, namespace)
        given.spec = self.spec
        return given


class GroupParser:
    """The help of a command with verbs."""

    def __init__(self, commands: Commands) -> None:
        """Make it."""
        self.commands = commands
        self.prog = f"acp {commands.name}"
        self.description = commands.sentence

    def format_help(self) -> str:
        """The whole help."""
        import textwrap

        width = columns()
        lines = [f"Usage: {self.prog} COMMAND ...", ""]
        lines += textwrap.wrap(
            self.description, width - 2, initial_indent="  ", subsequent_indent="  "
        )
        lines += ["", "Commands:", *self._rows(width), "", "Options:"]
        return "\n".join([*lines, "  -h, --help  Show this message and exit."]) + "\n"

    def _rows(self, width: int) -> Iterator[str]:
        import textwrap

        rows = {**self.commands.specs, **self.commands.groups}
        widest = max(map(len, rows)) + 4
        for verb, each in rows.items():
            said = textwrap.wrap(each.sentence, max(width - widest - 2, 20))
            yield f"  {verb.ljust(widest - 2)}{said[0]}"
            yield from (" " * widest + line for line in said[1:])


def _verb(spec: Spec, name: str) -> str | None:
    """The verb of an act or a query below this command; "" for the command itself."""
    words, own = spec.command.split(), name.split()
    return " ".join(words[len(own) :]) if words[: len(own)] == own else None


def _split(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """The arguments, and after ``--`` the words of a command."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _accepted(spec: Spec, words: list[str] | None) -> list[str]:
    if words is not None and isinstance(spec, ActionSpec) and not spec.words:
        raise Refused("this command takes no program after --")
    return words or []


def _taker(spec: Spec) -> str:
    """The verb that takes the words of a command instead of a query."""
    moved = spec.moved if isinstance(spec, QuerySpec) else ()
    return next((each.verb for each in moved if each.switch == "--"), "--")


def _moved(spec: Spec, words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The verb that a switch has become, with the words as it takes them."""
    for switch, verb, option in spec.moved:
        for place, word in enumerate(words):
            name, sign, value = word.partition("=")
            if name == switch:
                instead = [f"{option}{sign}{value}"] if option else []
                yield verb, [*words[:place], *instead, *words[place + 1 :]]
                return


def act(protocol: str, name: str) -> ActionSpec | None:
    """The description of an act by its name; None where it has none that its protocol names."""
    return _acts(protocol).get(name)


def unsaid(spec: ActionSpec, given: Iterable[str]) -> tuple[Field, ...]:
    """The fields that must be said, have no usual value, and are not given."""
    said = set(given)
    return tuple(
        each
        for each in spec.fields
        if each.form
        and (each.required or each.needed)
        and each.default in (None, "")
        and each.name not in said
    )


def placeholder(field: Field) -> str:
    """What stands for a value that is left to choose."""
    return field.metavar or ("TEXT" if field.kind is Kind.LINES else field.name.upper())


@cache
def _acts(protocol: str) -> dict[str, ActionSpec]:
    known = next((each for each in registry.installed() if each.name == protocol), None)
    found: dict[str, ActionSpec] = {}
    for command in known.commands if known else ():
        try:
            held = registry.load(command.target.removesuffix(".main"))
        except (ImportError, AttributeError):
            continue
        if isinstance(held, Commands):
            found |= _of(held)
    if known and known.acts:
        found |= {each.name: each for each in registry.load(known.acts)}
    return found


def _of(commands: Commands) -> dict[str, ActionSpec]:
    own = [each for each in commands.specs.values() if isinstance(each, ActionSpec)]
    found = {each.name: each for each in own}
    for group in commands.groups.values():
        found |= _of(group)
    return found
