"""An action's inputs (a pydantic model) as options of a command, made from its JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from pydantic import ValidationError

from acp_core.model import Action
from acp_core.protocols.kit import validation

RESERVED = frozenset({"help", "dry_run", "yes", "json", "as_json"})

Schema = Mapping[str, Any]


def options(action: Action) -> list[click.Parameter]:
    """An option for each input: ``--by-name``; a switch for true or false; repeated for a list."""
    schema = action.inputs.model_json_schema()
    required = set(schema.get("required", ()))
    return [
        _option(name, each, schema, name in required and name not in action.defaults, action)
        for name, each in schema.get("properties", {}).items()
    ]


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


def _option(
    name: str, described: Schema, schema: Schema, required: bool, action: Action
) -> click.Option:
    kind, several = _kind(described, schema)
    default = action.defaults.get(name, described.get("default"))
    flag = _flag(name)
    return click.Option(
        [f"{flag}/--no-{flag[2:]}" if kind is click.BOOL else flag, f"input_{name}"],
        type=kind,
        default=None,  # the model says what is missing, and its own default counts
        multiple=several,
        help=_help(described, default) + ("  [required]" if required else ""),
    )


def _flag(name: str) -> str:
    return f"--{'input-' if name in RESERVED else ''}{name.replace('_', '-')}"


def _help(described: Schema, default: object) -> str:
    text = str(described.get("description") or described.get("title") or "")
    if default in (None, "", [], ()):
        return text
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"{text}  [default: {shown if len(shown) <= 60 else shown[:59] + '…'}]"


def _kind(described: Schema, schema: Schema) -> tuple[click.ParamType[Any], bool]:
    """The type of an input, and whether it may be given several times.

    What pydantic can judge better (lengths, patterns, numbers in words) stays text here.
    """
    here = _resolved(described, schema)
    choices = [
        _resolved(each, schema) for each in here.get("anyOf", ()) if each != {"type": "null"}
    ]
    if len(choices) == 1:
        here = choices[0]
    if "enum" in here:
        return click.Choice([str(value) for value in here["enum"]]), False
    if "const" in here:
        return click.Choice([str(here["const"])]), False
    if here.get("type") == "array":
        return _kind(here.get("items", {}), schema)[0], True
    return (click.BOOL, False) if here.get("type") == "boolean" else (click.STRING, False)


def _resolved(described: Schema, schema: Schema) -> Schema:
    reference = described.get("$ref")
    if not isinstance(reference, str):
        return described
    found: Schema = schema.get("$defs", {}).get(reference.rpartition("/")[2], {})
    return found
