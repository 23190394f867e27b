"""An action's inputs as options of `acp act`, made from its description."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from acp_core.model import Action
from acp_core.model.action_spec import ActionSpec, Field
from acp_core.protocols.kit import fast_args, schema
from acp_core.protocols.kit.schema import fields
from acp_core.protocols.kit.values import Values

RESERVED = frozenset({"help", "dry_run", "matter", "yes", "json"})
"""Names of options that every act has."""
_OWN = "input_"


def spec_of(action: Action) -> ActionSpec:
    """What the command of an action takes: its inputs, as they can be given now, and ``--yes``."""
    asked = (_field(each, action.defaults.get(each.name)) for each in fields(action))
    return ActionSpec(
        action.name,
        action.label,
        action.sentence,
        fields=(*asked, fast_args.MATTER, fast_args.YES),
        place=None,
    )


def given(action: Action, values: Values) -> dict[str, Any]:
    """The values that were typed, over the action's defaults; what was not typed is left out."""
    names = {_field(each, None).name: each.name for each in fields(action)}
    typed = {name: getattr(values, own) for own, name in names.items() if own in values.said}
    return dict(action.defaults) | typed


def problem(error: ValidationError) -> str:
    """What is wrong with the inputs, on one line."""
    said = schema.problems(error)
    return "; ".join(f"{_flag(name)}: {problem}" if name else problem for name, problem in said)


def _field(field: Field, default: object) -> Field:
    """An input as an option. It begins with the action's default; the model judges its bounds.

    What the action's own command calls it (``--to`` for the peer of a message) works, too.
    """
    name = f"{_OWN}{field.name}" if field.name in RESERVED else field.name
    now = field.default if default is None else default
    required = field.required and now in (None, "")
    return field._replace(
        name=name, flag=_flag(field.name), default=now, required=required, least=None, most=None,
        listed=True, aliases=(*filter(None, (field.flag,)), *field.aliases),
    )  # fmt: skip


def _flag(name: str) -> str:
    return f"--{_OWN if name in RESERVED else ''}{name}".replace("_", "-")
