"""The descriptions of a protocol's acts, without a collaboration: what of an act must be said.

Source of what `acp why` prints: a command that is complete, or that says what is left to choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from acp_core.model.action_spec import ActionSpec, Field, Kind
from acp_core.protocols import registry
from acp_core.protocols.kit.command import Commands


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
