"""Strangers' JSON, bounded: whatever it holds, it is taken apart or refused, and never fails."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from acp_core.protocols.wire.schema import MAX_DEPTH, Json, invalid

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
