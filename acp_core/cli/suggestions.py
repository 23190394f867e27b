"""What a shell offers after a command made from a description: verbs, options, and what can be chosen now.

Beside the choices of an input: names that acp reads where they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

import click
from click.shell_completion import CompletionItem

from acp_core.model import Snapshot
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
from acp_core.model.errors import AcpError, Refused
from acp_core.protocols import registry
from acp_core.protocols.kit.binding import bind, located
from acp_core.protocols.kit.command import GroupParser
from acp_core.protocols.kit.parser import Parser, fields_of


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
    from acp_core.model.clock import utc_now
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
