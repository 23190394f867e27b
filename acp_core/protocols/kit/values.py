"""The values of an act's fields: read from words, checked, and completed. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused

Values = SimpleNamespace
"""The values of all fields by their names, as attributes."""

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{0,6})?|\.\d{1,6}) ?([smhd]?)")

_DECIMAL = re.compile(r"-?(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})")

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}

NUMBERS = frozenset({Kind.NUMBER, Kind.DURATION, Kind.DECIMAL})
"""Kinds of which the value is a number."""

_METAVARS = {
    Kind.NUMBER: "N",
    Kind.DECIMAL: "NUMBER",
    Kind.DURATION: "DURATION",
    Kind.FOLDER: "FOLDER",
    Kind.FILE: "FILE",
}


def seconds(word: str) -> float:
    """A duration: ``90``, ``0.5``, ``90s``, ``20m``, ``2h``, ``1d``.

    Raises:
        ValueError: it is none; the message says so.
    """
    found = _DURATION.fullmatch(word.strip())
    if not found:
        raise ValueError(f"{word!r} is not a duration (try 90s, 20m, 2h or 1d)")
    return float(found[1]) * _UNITS[found[2]]


def decimal(word: str) -> float:
    """A number: ``1``, ``0.5``, ``.5``.

    Raises:
        ValueError: it is none; the message says so.
    """
    if not _DECIMAL.fullmatch(word.strip()):
        raise ValueError("must be a number")
    return float(word)


def read(field: Field, word: str) -> Any:
    """What a word says for a field.

    Raises:
        ValueError: it cannot be said; the message is what is wrong.
    """
    if field.kind is Kind.NUMBER:
        try:
            return int(word)
        except ValueError:
            raise ValueError("must be a whole number") from None
    if field.kind is Kind.DURATION:
        return seconds(word)
    if field.kind is Kind.DECIMAL:
        return decimal(word)
    return chosen(field, word) if field.kind is Kind.CHOICE else word


def chosen(field: Field, word: str) -> str:
    """The choice that a word means: a value, or what one is called.

    Raises:
        ValueError: it is none of them.
    """
    if not field.choices or word in field.choices:
        return word
    called: list[str] = [each for each in field.choices if field.labels.get(each) == word]
    if len(called) == 1:
        return called[0]
    raise ValueError(f"{word!r} is not one of {', '.join(map(str, field.choices))}")


def problem(field: Field, value: Any) -> str:
    """What is wrong with a value; "" where nothing is."""
    if value in (None, "", []):
        return "is missing" if field.required else ""
    if field.kind in NUMBERS:
        if field.least is not None and value < field.least:
            return f"must be at least {field.least:g}"
        if field.most is not None and value > field.most:
            return f"must be at most {field.most:g}"
    return ""


def metavar(field: Field) -> str:
    """What stands for a field's value in help."""
    if field.metavar:
        return field.metavar
    if field.position and field.kind is not Kind.FOLDER:
        return field.name.upper()
    return _METAVARS.get(field.kind, "TEXT")


def require(fields: Iterable[Field], values: Values) -> None:
    """See to it that all values are as their fields ask.

    Raises:
        Refused: one is not; all that is wrong, on one line.
    """
    wrong = [(each, problem(each, getattr(values, each.name))) for each in fields]
    said = "; ".join(f"{_called(each)}: {what}" for each, what in wrong if what)
    if said:
        raise Refused(said)


def _called(field: Field) -> str:
    """What a message calls a field: its option, and that it goes by position, too."""
    return f"{metavar(field)} (or {field.option})" if field.position else field.option


def completed(fields: Iterable[Field], given: Any) -> Values:
    """The values of all fields, whatever was given.

    Args:
        fields: all fields of the act.
        given: a mapping, or an object with the fields as attributes: a pydantic model, or `Values`.
            What is not in it is what it is where nobody could say it.

    Returns:
        The values; ``said`` holds the names of those that somebody gave.
    """
    known = given if isinstance(given, Mapping) else vars(given)
    said = frozenset(getattr(given, "said", getattr(given, "model_fields_set", known)))
    return Values(said=said, **{each.name: _value(each, known) for each in fields})


def _value(field: Field, known: Mapping[str, Any]) -> Any:
    value = known.get(field.name)
    if value is not None:
        return getattr(value, "value", value)  # an enumeration's
    return field.empty if field.name in known or field.unasked is None else field.unasked
