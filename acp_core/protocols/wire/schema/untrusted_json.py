"""Strangers' JSON, bounded: whatever it holds, it is taken apart or refused, and never fails."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from acp_core.files.decode import Decoder, integer
from acp_core.model.text import clean_line
from acp_core.protocols.wire.schema.basics import MAX_DEPTH, Json, invalid

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode(data: bytes | str) -> Any:
    """The JSON value in ``data``.

    Raises:
        Refusal: it is no JSON, is nested too deeply, or holds what no JSON text may hold
            (a number that is not finite, half of a surrogate pair).
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8 text") from None
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise invalid(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        reason = str(error)
        raise invalid(f"not JSON: {reason[:200]}") from None
    if too_deep(value):
        raise invalid(f"nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(text):
        try:
            encode(value)
        except UnicodeEncodeError:
            raise invalid("a text contains half of a surrogate pair") from None
    return value


def decode_object(data: bytes | str, *, empty: bool = False) -> Json:
    """The JSON object in ``data``; with ``empty``, no data at all is an empty object.

    Raises:
        Refusal: it is anything else.
    """
    if empty and not data.strip():
        return {}
    value = decode(data)
    if not isinstance(value, dict):
        raise invalid("expected a JSON object")
    return value


def encode(value: object) -> bytes:
    """JSON in UTF-8, on one line, in the order of the fields."""
    return _encoder.encode(value).encode()


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects stand in each other more than ``limit`` levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

T = TypeVar("T")

Object = dict[str, object]
"""A JSON object in a field: its values are whatever stands there."""

_lenient_decoder = Decoder(most=100_000)


def read_as(kind: type[T], value: object) -> T:
    """A JSON value as a ``kind``; see `Decoder.decode`."""
    return _lenient_decoder.decode(kind, value)


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


def line_of(longest: int = 500) -> Callable[[object], str]:
    """A reader of a field that is shown in a line, whatever stands there."""
    return lambda value: clean_line(str(value), longest)
