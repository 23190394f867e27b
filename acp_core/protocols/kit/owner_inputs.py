"""What only the owner of this machine may say: which programs run here, where, and within what limits.

Over a bridge, a store or a mirror others ask for acts. Allowing them an act does not let them name a
program, a command, a folder, a permission, a budget or a model: such inputs are marked in the
description of their act (`Field.owner`), and refused here, whichever way a request comes. What the
owner chose before is used in their place. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from acp_core.model.action import Action
from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.schema import fields, inputs
from acp_core.protocols.kit.values import Values

AS_BEFORE = "as before"
"""The choice of a program that stands for the one that the owner chose before."""
ONLY = "only the owner of this machine can"
_PATHS = frozenset({Kind.FOLDER, Kind.FILE})
_NAMES = frozenset(
    {
        "budget", "budgets", "command", "commands", "cwd", "deadline", "env", "environment", "model", "permissions",
        "preset", "presets", "program", "programs", "timeout", "workdir",
    }
)  # fmt: skip
"""Names that mean such an input also where nobody has marked it: in acts of protocols that are not ours."""
_LONGEST = 60


def is_owners(field: Field) -> bool:
    """Whether nobody but the owner of this machine gives a field its value.

    Of a list of ``NAME=CHOICE`` that is so marked, others give the names alone.
    """
    return field.owner or field.kind in _PATHS or field.items in _PATHS or field.name in _NAMES


def against(action: Action) -> str:
    """Why nobody but the owner can do an act at all; "" where others can be allowed to."""
    return f"{ONLY} do this" if action.owner else ""


def open_fields(action: Action) -> tuple[Field, ...]:
    """The inputs that others may give: what they are told of an act."""
    return tuple(_opened(each) for each in fields(action) if _is_open(each))


def open_to_others(action: Action) -> Action:
    """The act as others are told of it: with the inputs that they may give."""
    left = open_fields(action)
    return replace(action, fields=left, inputs=inputs(action.name, left))


def from_others(action: Action, given: Mapping[str, Any]) -> Any:
    """The inputs of an act that somebody else than the owner of this machine asks for.

    Args:
        action: the act as it can be done now.
        given: what was asked with, by name.

    Returns:
        What the act's ``preview`` and ``perform`` take.

    Raises:
        Refused: it names what only the owner may name, or what is not an input; the line says which.
        ValueError: a value is not what its field asks for (pydantic's ``ValidationError``).
    """
    known = fields(action)
    check(action.name, given, known)
    left = [each for each in known if _is_open(each)]
    for each in left:
        if is_owners(each) and (chosen := _with_choice(given, each)):
            raise Refused(
                f"{action.name}: {ONLY} choose the agent of a {each.name}: {_listed([chosen])}"
            )
    if reason := against(action):
        raise Refused(f"{action.name}: {reason}")
    if action.fields is None:
        return action.inputs.model_validate({**action.defaults, **given})
    opened = tuple(map(_opened, left))
    made = inputs(action.name, opened).model_validate(given)
    values = {each.name: getattr(made, each.name) for each in opened}
    for each in known:
        if not _is_open(each):
            values[each.name] = _settled(each)
        elif is_owners(each):
            values[each.name] = [f"{name}={AS_BEFORE}" for name in values[each.name]]
    return Values(said=frozenset(made.model_fields_set), **values)


def check(what: str, given: Iterable[str], known: Iterable[Field] = ()) -> None:
    """Refuse names of inputs that are the owner's, or not inputs at all.

    Args:
        what: the act or request, as the line calls it.
        given: the names, as they came.
        known: the fields of the act.

    Raises:
        Refused: one line that names them.
    """
    left = {name for each in known if _is_open(each) for name in _accepted(each)}
    others = [name for name in given if name not in left]
    if not others:
        return
    closed = {name for each in known if not _is_open(each) for name in _spellings(each)} | _NAMES
    owners = [name for name in others if _plain(name) in closed]
    if owners:
        raise Refused(f"{what}: {ONLY} set {_listed(owners)}")
    raise Refused(f"{what}: unknown input: {_listed(others)}")


def names_in(text: str) -> list[str]:
    """What a request's text names, where the request takes none: the names of a JSON object, or the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return list(value) if isinstance(value, dict) and value else [text]


def check_beside(what: str, given: Iterable[str]) -> None:
    """Refuse what is the owner's where it stands beside a request's inputs; the rest means nothing there.

    Args:
        what, given: as those of `check`.

    Raises:
        Refused: one line that names it.
    """
    if owners := [name for name in given if _plain(name) in _NAMES]:
        raise Refused(f"{what}: {ONLY} set {_listed(owners)}")


def _listed(names: Iterable[str]) -> str:
    return clean_line(", ".join(clean_line(str(each), _LONGEST) for each in names), 300)


def _is_open(field: Field) -> bool:
    return field.form and (not is_owners(field) or bool(field.names))


def _opened(field: Field) -> Field:
    """A field as others may fill it in: of names with a choice for each, the names."""
    if not is_owners(field):
        return field
    names = field.names
    labels = {name: field.labels[f"{name}="] for name in names if f"{name}=" in field.labels}
    return field._replace(
        names=(), names_from="", choices=names, labels=labels, default=None, bare=None, items=Kind.CHOICE,
        metavar="", suggests="", owner=False, help="Name the participants.",
    )  # fmt: skip


def _with_choice(given: Mapping[str, Any], field: Field) -> str:
    """What chooses beside a name: ``server=claude``; "" where nothing does."""
    for name in _accepted(field):
        value = given.get(name)
        several = value if isinstance(value, list) else [value]
        for each in several:
            if isinstance(each, str) and "=" in each:
                return each
    return ""


def _settled(field: Field) -> Any:
    """The value of a field that is the owner's: what was chosen before, and no program that is merely usual."""
    if field.kind is Kind.FLAG:
        return False
    if AS_BEFORE in field.choices:
        return AS_BEFORE
    if field.name == "program" or field.name.endswith("_program"):
        return None if field.optional else ""
    return field.empty


def _accepted(field: Field) -> list[str]:
    """The names under which a request gives a field its value (see `acp_core.protocols.kit.values`)."""
    return [field.name, *(_plain(each) for each in field.aliases)]


def _spellings(field: Field) -> list[str]:
    """All names that a field has anywhere, options included."""
    return [field.name, *map(_plain, (field.option, *field.old_options))]


def _plain(name: str) -> str:
    return str(name).strip().lstrip("-").replace("-", "_").replace(" ", "_").lower()
