"""How the files of governed runs become types: texts are lines that are safe to show.

Who writes a file takes what stands in it from its JSON, never from here: a line may be cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from acp_core.files.decode import Decoder, key, number
from acp_core.model.text import clean_line

T = TypeVar("T")
_DECODER = Decoder(most=10_000)
_RICHEST = 1e12  # a sum beyond it is none


def decode(kind: type[T], value: object) -> T:
    """What a JSON value holds; the default of each field that is not there."""
    return _DECODER.decode(kind, value)


def line(limit: int, *places: str) -> str:
    """A field for a text of one line.

    Args:
        limit: how many characters of it are read.
        places: where it may stand; the first that is not empty counts.
    """
    return key(*places, default="", read=_reader(limit))


def filled(*places: str, default: str = "") -> str:
    """A field for a text as it stands, such as a path; the default where it is empty."""
    return key(
        *places, default=default, read=lambda value: (isinstance(value, str) and value) or None
    )


def lines(limit: int, *places: str) -> tuple[str, ...]:
    """A field for a list of such texts; what else stands in the list is left out."""
    read = _reader(limit)

    def read_all(value: object) -> tuple[str, ...] | None:
        if not isinstance(value, list):
            return None
        return tuple(read(each) or "" for each in value if isinstance(each, str))

    return key(*places, default=(), read=read_all)


def dollars(*places: str) -> str:
    """A field for a sum of money as text, "" where it is none."""

    def read(value: object) -> str | None:
        sum = number(value)
        return None if sum is None or abs(sum) > _RICHEST else f"{sum:g}"

    return key(*places, default="", read=read)


def _reader(limit: int) -> Callable[[object], str | None]:
    def read(value: object) -> str | None:
        return clean_line(value, limit) or None if isinstance(value, str) else None

    return read
