"""The parser of a command, made from its description; what is asked before it acts, and what it prints."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from acp_core.model.action import Change, Outcome, Preview
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec, Spec
from acp_core.model.errors import Refused
from acp_core.protocols.kit import command_line, values
from acp_core.protocols.kit.command_line import say, say_json, warn
from acp_core.protocols.kit.values import Values, metavar
from acp_core.protocols.kit.wording import safe

HELP = Field("help", help="Show this message and exit.", kind=Kind.FLAG)

_UNKNOWN = "unrecognized arguments: "

WORDS = "words"
"""The words that stand without an option, before they are given to the fields."""

_LEFT = 30  # columns of the options' names in help


def fields_of(spec: Spec) -> tuple[Field, ...]:
    """Everything that the command of an act or a query takes, its switches last."""
    json = (command_line.JSON,) if spec.json else ()
    if isinstance(spec, QuerySpec):
        return (*spec.fields, *json)
    dry_run = (command_line.DRY_RUN,) if spec.dry_run else ()
    return (*((spec.place,) if spec.place else ()), *spec.fields, *json, *dry_run)


class Parser(argparse.ArgumentParser):
    """Takes the arguments of one command apart; its complaint is one line."""

    def __init__(self, spec: Spec, prog: str) -> None:
        """Make it.

        Args:
            spec: what the command does.
            prog: how it is called.
        """
        said = f"{spec.sentence} {spec.help}".strip()
        super().__init__(prog=prog, usage=usage(spec, prog), description=said, add_help=False)
        self.spec = spec
        self.fields = fields_of(spec)
        self.add_argument("-h", "--help", action="help", help=HELP.help)
        taken = {each.option for each in self.fields}
        for each in self.fields:
            _add(self, each, [old for old in each.old_options if old not in taken])
        self.add_argument(WORDS, nargs="*", default=argparse.SUPPRESS)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The values of all fields, options and words in any order; ``said`` names what was given.

        Raises:
            Refused: they are not as they should be; one line says what is wrong.
        """
        words = list(args or ())
        end = words.index("--") if "--" in words else len(words)
        given = self.parse_intermixed_args(words[:end], namespace)
        self._place(given, [*vars(given).pop(WORDS, []), *words[end + 1 :]])
        given.said = frozenset(vars(given))
        for each in self.fields:
            if not hasattr(given, each.name):
                setattr(given, each.name, each.empty)
            elif [] in (value := getattr(given, each.name), *_several(each, value)):
                self.error(f"argument {each.option}: expected one argument")  # `--by=--`
        return given

    def completed(self, words: Sequence[str]) -> tuple[Spec, list[str]]:
        """What completes a command line after these words: a description, and its words."""
        return self.spec, list(words)

    def _place(self, given: argparse.Namespace, words: list[str]) -> None:
        """Give the words that stand without an option to the fields that take them by position."""
        for each in self.fields:
            if not each.position or not words or hasattr(given, each.name):
                continue
            several = each.kind is Kind.LIST
            taken, words = (words, []) if several else (words[:1], words[1:])
            try:
                read = [values.read(each, word) for word in taken]
            except ValueError as error:
                self.error(f"argument {metavar(each)}: {error}")
            setattr(given, each.name, read if several else read[0])
        if words:
            self.error(f"{_UNKNOWN}{' '.join(words)}")

    def format_help(self) -> str:
        """The whole help, in the style of all commands."""
        width = columns()
        about = "\n".join(_wrapped(self.description or "", width - 2, "  "))
        rows = [*(each for each in self.fields if each.listed), HELP]
        lines = [line for each in rows for line in _option_lines(each, width)]
        return (
            f"{usage_line(self.spec, self.prog)}\n\n{about}\n\nOptions:\n" + "\n".join(lines) + "\n"
        )

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            Refused: always.
        """
        raise Refused(f"{message}{self._near(message)} (see `{self.prog} --help`)")

    def _near(self, message: str) -> str:
        """The option that was meant, where one that there is not was given."""
        from difflib import get_close_matches

        if not message.startswith(_UNKNOWN):
            return ""
        given = message.removeprefix(_UNKNOWN).split(" ")[0].partition("=")[0]
        options = [each.option for each in self.fields if each.listed]
        near = get_close_matches(given, options, n=1) if given.startswith("--") else []
        return f"; did you mean {near[0]}?" if near else ""


def parse(spec: Spec, prog: str, arguments: Sequence[str]) -> values.Values:
    """The values of everything that a command takes.

    Args:
        spec: what the command does.
        prog: how it is called.
        arguments: what follows its name.

    Raises:
        Refused: they are not as they should be.
    """
    given: values.Values = Parser(spec, prog).parse_args(arguments)
    place = () if isinstance(spec, QuerySpec) else (spec.place,)
    values.require((*place, *spec.fields), given)
    return given


def _add(parser: Parser, field: Field, old_options: Sequence[str]) -> None:
    names = [field.option, *([field.short] if field.short else [])]
    more: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS}
    if field.kind is Kind.FLAG:
        more["action"] = argparse.BooleanOptionalAction if field.default else "store_true"
    else:
        more |= {"type": _typed(field), "metavar": metavar(field)}
        more["action"] = "append" if field.kind is Kind.LIST else "store"
        if field.bare is not None:
            more |= {"nargs": "?", "const": field.bare}
    help = field.help.replace("%", "%%")
    parser.add_argument(*names, help=help, **more)
    for old in old_options:
        parser.add_argument(old, help=argparse.SUPPRESS, **more)


def _several(field: Field, value: Any) -> Sequence[Any]:
    return value if field.kind is Kind.LIST else ()


def _typed(field: Field) -> Any:
    def convert(word: str) -> Any:
        try:
            return values.read(field, word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def usage(spec: Spec, prog: str) -> str:
    """How the command is called, without the word before it."""
    words = [prog, "[OPTIONS]"]
    for each in fields_of(spec):
        if each.position:
            many = "..." if each.kind is Kind.LIST else ""
            words.append(f"{metavar(each)}{many}" if each.required else f"[{metavar(each)}]{many}")
    if isinstance(spec, ActionSpec) and spec.words:
        words.append(f"[-- {spec.words}...]")
    return " ".join(words)


def usage_line(spec: Spec, prog: str) -> str:
    """The first line of help."""
    return f"Usage: {usage(spec, prog)}"


def columns() -> int:
    """The width of help; the terminal is not looked at, which takes 2 ms at each start."""
    said = os.environ.get("COLUMNS", "")
    known = int(said) if said.isascii() and said.isdigit() and len(said) < 5 else 80
    return min(max(known, 40), 110)


def _option_lines(field: Field, width: int) -> Iterator[str]:
    left, said = f"  {_names(field)}", _wrapped(_help(field), width - _LEFT - 2, "")
    if len(left) > _LEFT - 2:
        yield left
        left = ""
    for line in said or [""]:
        yield f"{left.ljust(_LEFT)}{line}".rstrip()
        left = ""


def _names(field: Field) -> str:
    names = field.option if field.name != "help" else "-h, --help"
    if field.short:
        names = f"{field.short}, {names}"
    if field.kind is Kind.FLAG:
        return f"{names} / --no-{field.option[2:]}" if field.default else names
    return f"{names} {metavar(field)}" if field.bare is None else f"{names} [{metavar(field)}]"


def _help(field: Field) -> str:
    parts = [field.help or field.title]
    if field.choices and len(field.choices) <= 12:
        between = ", " if field.names else "|"
        parts.append(f"[{between.join(map(str, field.choices))}]")
    if field.kind is Kind.LIST:
        parts.append("[repeatable]")
    if field.required:
        parts.append("[required]")
    if field.default not in (None, "", [], (), False, True):
        parts.append(f"[default: {_default_text(field.default)}]")
    return "  ".join(filter(None, parts))


def _default_text(default: Any) -> str:
    if isinstance(default, list | tuple):
        return ", ".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) else str(default)


def _wrapped(text: str, width: int, indent: str) -> Sequence[str]:
    import textwrap

    return textwrap.wrap(
        text, max(width, 20), initial_indent=indent, subsequent_indent=indent,
        break_on_hyphens=False,
    )  # fmt: skip


USUAL = ((0, "done"), (2, "refused, or invalid input"), (130, "interrupted"))
"""Exit codes of a command whose page names no others."""

Exits = tuple[tuple[int, str], ...]


class Page(NamedTuple):
    """Examples, each a whole command line, and the exit codes with their meanings.

    No exit codes: the command's own help names them.
    """

    examples: tuple[str, ...]
    exits: Exits = USUAL

    def text(self) -> str:
        """The page as lines of help."""
        lines = "\n".join(f"  {example}" for example in self.examples)
        codes = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in self.exits)
        return f"\nExamples:\n{lines}" + (f"\n\nExit codes:\n{codes}" if codes else "")


Manual = Mapping[str, Page]
"""Pages by the words of their command, such as ``governed step``."""


def page_of(words: tuple[str, ...], manual: Manual) -> Page | None:
    """The page of the command with which these words begin: the longest that there is."""
    for length in range(len(words), 0, -1):
        found = manual.get(" ".join(words[:length]))
        if found is not None:
            return found
    return None


def confirmed(preview: Preview, values: Values) -> bool:
    """Whether the human means it: asked at the terminal, or said beforehand with ``--yes``.

    Args:
        preview: what would be done.
        values: those of the command: ``json``, ``yes``, and ``by`` where it records who decides.

    Raises:
        Refused: it cannot be done, there is nobody to ask, or ``--yes`` leaves open who decides.
    """
    if preview.refused:
        raise Refused(preview.refused)
    at_terminal = sys.stdin.isatty() and not values.json
    if values.yes:
        if not at_terminal and getattr(values, "by", None) == "":
            raise Refused("no terminal to ask for confirmation: use --by NAME --yes")
        return True
    if not at_terminal:
        name = "--by NAME " if hasattr(values, "by") else ""
        raise Refused(f"no terminal to ask for confirmation: use {name}--yes")
    return _asked(preview)


def _asked(preview: Preview) -> bool:
    say(preview.sentence)
    say_remarks(preview)
    return agreed()


def agreed() -> bool:
    """Ask the human at the terminal whether to do it."""
    sys.stdout.write("Proceed? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


ERROR = "acp.error/1"


def say_object(schema: str, verb: str, /, **value: Any) -> None:
    """Print what a command did, or found, as one JSON object.

    Args:
        schema: the name and version of its shape, such as ``acp.governed/1``; comes first.
        verb: the command's, which stands under ``command``.
        value: everything else; a ``schema`` or ``command`` in it takes the place of those.
    """
    say_json({"schema": schema, "command": verb, **value})


def say_error(message: str, code: int) -> None:
    """Print as JSON why a command ends without success."""
    say_json({"schema": ERROR, "error": safe(message), "exit_code": code})


def show(schema: str, verb: str, preview: Preview, *, as_json: bool) -> int:
    """Print what an act would do, as a command with ``--dry-run`` does; the exit code.

    Raises:
        Refused: it would not do it.
    """
    if preview.refused:
        raise Refused(preview.refused)
    if as_json:
        say_object(schema, verb, done=False, **described(preview))
    else:
        say_preview(preview)
    return 0


def say_preview(preview: Preview) -> None:
    """Print what an act would do, with every change."""
    say(f"would do: {preview.sentence}")
    say_remarks(preview)
    for change in preview.changes:
        say(f"  {change.verb} {change.path}")
        for line in change.diff.split("\n") if change.diff else []:
            say(f"    {line}")


def say_outcome(outcome: Outcome) -> None:
    """Print how an act ended."""
    say(outcome.sentence)
    if outcome.done is not None:
        say_remarks(outcome.done)
    for each in outcome.failed:
        warn(f"failed: {each}")


def say_remarks(preview: Preview) -> None:
    """Print what is to be heeded of an act, and what it merely tells."""
    for warning in preview.warnings:
        say(f"  ! {warning}")
    for note in preview.notes:
        say(f"  · {note}")


def described(preview: Preview) -> dict[str, Any]:
    """What an act would do, or did, as JSON."""
    return {
        "sentence": safe(preview.sentence),
        "warnings": [safe(each) for each in preview.warnings],
        "notes": [safe(each) for each in preview.notes],
        "changes": [_change(each) for each in preview.changes],
        **preview.data,
    }


def ended(outcome: Outcome) -> Mapping[str, Any]:
    """How an act ended, as JSON."""
    known = described(outcome.done) if outcome.done is not None else {}
    failed = {"failed": [safe(each) for each in outcome.failed]} if outcome.failed else {}
    return known | {"sentence": safe(outcome.sentence)} | failed


def _change(change: Change) -> dict[str, str]:
    return {"path": change.path, "verb": change.verb, "diff": change.diff}
