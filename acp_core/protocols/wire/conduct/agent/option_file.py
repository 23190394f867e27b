"""Options of a command that stand in a TOML file, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.kit.values import Values, seconds
from acp_core.protocols.wire.schema import skills

_LARGEST = 1 << 20  # bytes
_READERS: dict[str, Callable[[object, str], Any]] = {"skills": skills.from_file}
"""What a file can say of an option beyond what its words can."""
_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.NUMBER: (int,),
    Kind.FLAG: (bool,),
    Kind.DURATION: (int, float, str),
}
_NEEDED = {
    Kind.NUMBER: "a whole number",
    Kind.FLAG: "true or false",
    Kind.DURATION: 'a number of seconds, or a duration such as "20m"',
}


def fill_in(values: Values) -> None:
    """Take what was not given as an option from the file that ``values.config`` names, if one is.

    Args:
        values: those of the command; ``spec`` describes it, ``said`` names what was given.

    Raises:
        Refused: the file cannot be read, or says what no option takes.
    """
    if not values.config:
        return
    known = {
        name: each
        for each in (*values.spec.fields, _JSON)
        for name in (each.name, *(old[2:].replace("-", "_") for old in each.old_options))
        if each.name != "config"
    }
    for name, value in _content(values.config).items():
        field = known.get(name.replace("-", "_"))
        if field is None:
            options = ", ".join(sorted(known))
            raise Refused(f"{values.config}: {name}: unknown option (options: {options})")
        read = _read(field, value, f"{values.config}: {name}")
        if field.name not in values.said:
            setattr(values, field.name, read)
        elif field.kind is Kind.LIST:
            setattr(values, field.name, [*read, *getattr(values, field.name)])


_JSON = Field("json", kind=Kind.FLAG)


def _content(path: str) -> dict[str, Any]:
    import tomllib

    from acp_core.files.reading import Unreadable, read_bounded

    try:
        return tomllib.loads(read_bounded(path, _LARGEST).decode())
    except Unreadable as error:
        raise Refused(f"{path}: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: not TOML: {error}") from None


def _read(field: Field, value: Any, where: str) -> Any:
    """The value of a field that a file gives; one of a list may stand alone."""
    reader = _READERS.get(field.name)
    if reader:
        return reader(value, where)
    several = field.kind is Kind.LIST
    each = value if several and isinstance(value, list) else [value]
    types = _TYPES.get(field.kind, (str,))
    if any(type(one) not in types for one in each):
        raise Refused(f"{where}: must be {_NEEDED.get(field.kind, 'a text in quotes')}")
    if field.choices and value not in field.choices:
        raise Refused(f"{where}: {value!r} is not one of {', '.join(field.choices)}")
    if several:
        return each
    try:
        return seconds(str(value)) if field.kind is Kind.DURATION else value
    except ValueError as error:
        raise Refused(f"{where}: {error}") from None
