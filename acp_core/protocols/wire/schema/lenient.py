"""Strangers' JSON read into types: what is missing, or not of its kind, is as if it were absent.

What has to be said of a message that somebody sent is checked elsewhere (`bodies`, `rules`); here
is what is read to be shown, or from what was stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from acp_core.files.decode import Decoder, integer
from acp_core.model.text import clean_line
from acp_core.protocols.wire.schema import Json

T = TypeVar("T")
Object = dict[str, object]
"""A JSON object in a field: its values are whatever stands there."""

_decoder = Decoder(most=100_000)


def read(kind: type[T], value: object) -> T:
    """A JSON value as a ``kind``; see `Decoder.decode`."""
    return _decoder.decode(kind, value)


def text_that(fits: Callable[[str], bool]) -> Callable[[object], str | None]:
    """A reader of a text of which something holds."""
    return lambda value: value if isinstance(value, str) and fits(value) else None


def fields_of(value: object) -> Json:
    """The fields of an object; none of what is no object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """The objects of a list; none of what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def inside(value: object, name: str, unless: str) -> Json:
    """The object in a field of an object that only wraps it; else the object itself.

    Args:
        value: the object; what is none is an empty one.
        name: the field.
        unless: a field that tells that it wraps nothing.
    """
    fields = fields_of(value)
    within = fields.get(name)
    return within if unless not in fields and isinstance(within, dict) else fields


def count(value: object) -> int | None:
    """A reader of a number that counts something, or of a place in a log."""
    number = integer(value)
    return number if number is not None and 0 <= number < 2**63 else None


def line(longest: int = 500) -> Callable[[object], str]:
    """A reader of a field that is shown in a line, whatever stands there."""
    return lambda value: clean_line(str(value), longest)
