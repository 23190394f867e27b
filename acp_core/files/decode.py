"""Strangers' JSON into frozen dataclasses, leniently.

The types of a class say what is wanted. What is missing or null gets the field's default; what is
of another kind gets it too, and is reported as `Odd`. Nothing raises::

    @dataclass(frozen=True, slots=True)
    class Task:
        id: str = ""
        number: int | None = key("number", "iteration", default=None)
        needs: tuple[str, ...] = key("depends_on", default=())
        raw: dict[str, object] = whole()

    odd: list[Odd] = []
    task = Decoder().decode(Task, json.loads(text), odd)

Libraries for this (cattrs, msgspec, pydantic) refuse the whole object for one wrong field.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

MOST = 1_000
"""Items of a list that are read."""


class Odd(NamedTuple):
    """A value that is not of its field's kind.

    Attributes:
        path: where it stands, such as ``plan.tasks[2].id``; "" for the whole.
        expected: what was expected, such as "a whole number".
        value: what stands there.
    """

    path: str
    expected: str
    value: object


class Scalar(NamedTuple):
    """A kind of value.

    Attributes:
        expected: what it is called in an `Odd`.
        read: makes it of a JSON value; None where that is not of this kind.
    """

    expected: str
    read: Callable[[Any], object | None]


class _Field(NamedTuple):
    name: str
    places: tuple[tuple[str, ...], ...]  # a place is a path of names; () is the whole object
    read: _Reader


_WRONG: Any = object()
_ANYTHING = (object, Any)
_Reader = Callable[[Any, list[Odd]], Any]


def key(*places: str, default: T, read: Callable[[Any], T | None] | None = None) -> T:
    """A field that stands elsewhere than under its own name, or is read in a way of its own.

    Args:
        places: where it may stand, the first that can be read counts; a dot leads inside an
            object. Its own name where none is given.
        default: its value where nothing can be read.
        read: makes the value; None where it cannot.
    """
    made: T = dataclasses.field(
        default=default,
        metadata={"places": tuple(tuple(each.split(".")) for each in places), "read": read},
    )
    return made


def whole() -> dict[str, object]:
    """A field for the whole JSON object: its fields that no class names are kept in it."""
    made: dict[str, object] = dataclasses.field(
        default_factory=dict, metadata={"places": ((),)}, repr=False
    )
    return made


def text(value: object) -> str | None:
    """A string."""
    return value if isinstance(value, str) else None


def integer(value: object) -> int | None:
    """A whole number; true and false are none."""
    return value if type(value) is int else None


def number(value: object) -> float | None:
    """A finite number; true and false are none."""
    try:
        made = float(value) if type(value) in (int, float) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return None
    return made if math.isfinite(made) else None


def flag(value: object) -> bool | None:
    """True or false."""
    return value if isinstance(value, bool) else None


def moment(value: object) -> datetime | None:
    """An ISO 8601 time in UTC; without an offset it is taken as UTC."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


SCALARS: Mapping[Any, Scalar] = {
    str: Scalar("a text", text),
    int: Scalar("a whole number", integer),
    float: Scalar("a number", number),
    bool: Scalar("true or false", flag),
    datetime: Scalar("a time", moment),
}


class Decoder:
    """Decodes dataclasses whose fields are scalars, other such classes, and tuples or mappings.

    Mappings have string keys; ``object`` and ``Any`` are whatever stands there.
    """

    def __init__(self, scalars: Mapping[Any, Scalar] | None = None, most: int = MOST) -> None:
        """Make one.

        Args:
            scalars: kinds that this protocol has besides or reads in another way, by their types.
            most: how many items of a list are read.
        """
        self._scalars = {**SCALARS, **(scalars or {})}
        self._most = most
        self._known: dict[type, tuple[_Field, ...]] = {}

    def decode(self, kind: type[T], value: object, odd: list[Odd] | None = None) -> T:
        """A value as a ``kind``, with the default of each field that cannot be read.

        Args:
            kind: a dataclass of which every field has a default.
            value: the JSON value.
            odd: what was not as expected is added to it.
        """
        wrong = odd if odd is not None else []
        if not isinstance(value, dict):
            if value is not None:
                wrong.append(Odd("", "an object", value))
            return kind()
        given = {}
        for name, places, read in self._known.get(kind) or self._fields(kind):
            for place in places:
                found: Any = value
                for step in place:
                    found = found.get(step) if isinstance(found, dict) else None
                if found is not None:
                    made = _at(place, read, found, wrong)
                    if made is not _WRONG:
                        given[name] = made
                        break
        return kind(**given)

    def _fields(self, kind: type) -> tuple[_Field, ...]:
        hints = get_type_hints(kind)
        made = []
        for field in dataclasses.fields(kind):
            own = field.metadata.get("read")
            reader = _scalar(Scalar("readable", own)) if own else self._reader(hints[field.name])
            made.append(
                _Field(field.name, field.metadata.get("places") or ((field.name,),), reader)
            )
        self._known[kind] = tuple(made)
        return self._known[kind]

    def _reader(self, hint: Any) -> _Reader:
        if hint in self._scalars:
            return _scalar(self._scalars[hint])
        if hint in _ANYTHING:
            return lambda value, odd: value
        origin, inside = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self._reader(next(each for each in inside if each is not NoneType))
        if origin is tuple:
            return self._items(self._reader(inside[0]))
        if origin in (dict, Mapping):
            return _OBJECT if inside[1] in _ANYTHING else self._members(self._reader(inside[1]))
        return self._object(hint)

    def _object(self, kind: type) -> _Reader:
        def read(value: Any, odd: list[Odd]) -> Any:
            return self.decode(kind, value, odd) if isinstance(value, dict) else _WRONG

        return _expected("an object", read)

    def _items(self, each: _Reader) -> _Reader:
        def read(value: Any, odd: list[Odd]) -> Any:
            if not isinstance(value, list):
                return _WRONG
            items = (_at((n,), each, item, odd) for n, item in enumerate(value[: self._most]))
            return tuple(item for item in items if item is not _WRONG)

        return _expected("a list", read)

    def _members(self, each: _Reader) -> _Reader:
        def read(value: Any, odd: list[Odd]) -> Any:
            if not isinstance(value, dict):
                return _WRONG
            members = {name: _at((name,), each, item, odd) for name, item in value.items()}
            return {name: item for name, item in members.items() if item is not _WRONG}

        return _expected("an object", read)


def _at(place: tuple[str | int, ...], read: _Reader, value: Any, odd: list[Odd]) -> Any:
    """What a reader makes of a value that stands at this place: names, or a number in a list."""
    before = len(odd)
    made = read(value, odd)
    for number in range(before, len(odd)):
        inside = odd[number].path
        dot = "." if inside and not inside.startswith("[") else ""
        path = ".".join(f"[{step}]" if isinstance(step, int) else step for step in place)
        odd[number] = odd[number]._replace(path=f"{path}{dot}{inside}")
    return made


def _scalar(scalar: Scalar) -> _Reader:
    def read(value: Any, odd: list[Odd]) -> Any:
        made = scalar.read(value)
        if made is None:
            odd.append(Odd("", scalar.expected, value))
            return _WRONG
        return made

    return read


def _expected(what: str, read: _Reader) -> _Reader:
    """A reader that reports what it cannot read."""

    def reporting(value: Any, odd: list[Odd]) -> Any:
        made = read(value, odd)
        if made is _WRONG:
            odd.append(Odd("", what, value))
        return made

    return reporting


_OBJECT = _expected("an object", lambda value, odd: value if isinstance(value, dict) else _WRONG)
