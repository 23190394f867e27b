"""Frozen dataclasses as JSON and back, tolerant of what another version wrote."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import InvalidInput

T = TypeVar("T")
_LARGEST = 4 << 20  # bytes of a file


class CodecError(InvalidInput, ValueError):
    """The JSON does not hold what it should; the message says where."""


def encode(value: object) -> bytes:
    """A dataclass as one line of JSON."""
    return json.dumps(_plain(value), ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def decode(kind: type[T], data: bytes) -> T:
    """A dataclass from its JSON. Unknown names are left out, missing ones get their defaults.

    Raises:
        CodecError: it is no such JSON.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise CodecError("is not JSON") from None
    found: T = _dataclass(kind, value, kind.__name__)
    return found


def write(path: Path, value: object) -> None:
    """Replace a file by a dataclass; only its owner may read it.

    Raises:
        OSError: it cannot be written.
    """
    atomic.replace(path, encode(value), sync=False, private=True)


def read(kind: type[T], path: Path) -> T:
    """A dataclass from a file.

    Raises:
        CodecError: it cannot be read, or holds no such thing.
    """
    try:
        return decode(kind, read_bounded(path, _LARGEST))
    except Unreadable as error:
        raise CodecError(str(error)) from None


def _dataclass(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise CodecError(f"{where}: must be an object")
    given = {}
    for each in fields(kind):
        if each.name in value:
            hint = _hints(kind)[each.name]
            given[each.name] = _value(hint, value[each.name], f"{where}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise CodecError(f"{where}.{each.name}: is missing")
    return kind(**given)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: object, where: str) -> Any:
    if isinstance(hint, UnionType):
        if value is None and type(None) in get_args(hint):
            return None
        hint = next(each for each in get_args(hint) if each is not type(None))
    origin = get_origin(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise CodecError(f"{where}: must be a list")
        item = get_args(hint)[0]
        return tuple(_value(item, each, where) for each in value)
    if origin is dict:
        if not isinstance(value, dict):
            raise CodecError(f"{where}: must be an object")
        return dict(value)
    if is_dataclass(hint):
        return _dataclass(hint, value, where)
    return _simple(hint, value, where)


def _simple(hint: Any, value: object, where: str) -> Any:
    try:
        if hint is datetime and isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return hint(value)
    except ValueError as error:
        raise CodecError(f"{where}: {error}") from None
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise CodecError(f"{where}: must be {getattr(hint, '__name__', hint)}")
    return value
