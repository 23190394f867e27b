"""An action's inputs as options of a command, made from its description."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import click
from pydantic import ValidationError

from acp_core.model import Action
from acp_core.model.action_spec import Field, Kind
from acp_core.protocols.kit import validation
from acp_core.protocols.kit.schema import fields
from acp_core.protocols.kit.values import chosen

RESERVED = frozenset({"help", "dry_run", "yes", "json", "as_json"})


class Chosen(click.Choice[str]):
    """One of some values, said as itself or as what it is called."""

    def __init__(self, field: Field) -> None:
        super().__init__([str(value) for value in field.choices])
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that is meant."""
        with contextlib.suppress(ValueError):  # said by the list of choices
            value = chosen(self._field, value)
        return super().convert(value, param, ctx)


def options(action: Action) -> list[click.Parameter]:
    """An option for each input: ``--by-name``; a switch for true or false; repeated for a list."""
    return [_option(each, action.defaults.get(each.name)) for each in fields(action)]


def given(action: Action, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were typed, over the action's defaults; what was not typed is left out."""
    typed = {
        name.removeprefix("input_"): list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != ()
    }
    return dict(action.defaults) | typed


def problem(error: ValidationError) -> str:
    """What is wrong with the inputs, on one line."""
    said = validation.problems(error)
    return "; ".join(f"{_flag(name)}: {problem}" if name else problem for name, problem in said)


def parameter(field: Field, names: list[str], help: str) -> click.Option:
    """A field as an option with these names."""
    return click.Option(
        names,
        type=_type(field),
        default=None,  # the model says what is missing, and its own default counts
        multiple=field.kind is Kind.LIST,
        help=help,
        metavar=field.metavar or None,
    )


def _option(field: Field, preset: object) -> click.Option:
    flag = _flag(field.name)
    names = [f"{flag}/--no-{flag[2:]}" if field.kind is Kind.FLAG else flag, f"input_{field.name}"]
    default = field.default if preset is None else preset
    required = field.required and default in (None, "")
    return parameter(field, names, _help(field, default) + ("  [required]" if required else ""))


def _flag(name: str) -> str:
    return f"--{'input-' if name in RESERVED else ''}{name.replace('_', '-')}"


def _help(field: Field, default: object) -> str:
    text = field.help or field.title
    if default in (None, "", [], ()):
        return text
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{text}  [default: {shown if len(shown) <= 60 else shown[:59] + '…'}]"


def _type(field: Field) -> click.ParamType[Any]:
    """The type of an option. What the model can judge better (bounds, patterns) stays text here."""
    if field.kind is Kind.CHOICE and field.choices:
        return Chosen(field)
    if field.kind in (Kind.FOLDER, Kind.FILE):
        return click.Path(file_okay=field.kind is Kind.FILE)
    return click.BOOL if field.kind is Kind.FLAG else click.STRING
