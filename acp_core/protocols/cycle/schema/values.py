"""Single values of a cycle's files, in whichever form agents write them.

Source: development cycle specification, "Shared State" and "Versioning Strategy".
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

LOCAL = timezone(timedelta(hours=8))  # the specification's clock
MANY = 1_000  # entries of a list that are looked at
HEADER = 15  # lines of a document in which its version stands
Object = dict[str, object]
Version = tuple[int, int, int]

_VERSION = re.compile(r"(?<![\d.])[vV]?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?!\.?\d)", re.ASCII)
_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%?\s*", re.ASCII)
_SLASHED = re.compile(r"^(\d{4})/(\d\d)/(\d\d)", re.ASCII)


def is_text(value: object) -> bool:
    """Whether it is a string, or a number, which is as good as one."""
    return isinstance(value, str) or type(value) in (int, float)


def text(value: object) -> str:
    """A string, or a number as one; "" for anything else."""
    return str(value) if is_text(value) else ""


def obj(value: object) -> Object:
    """An object; {} for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """The objects among the first `MANY` of a list; [] for anything else."""
    items = value[:MANY] if isinstance(value, list) else []
    return [each for each in items if isinstance(each, dict)]


def words(value: object) -> list[str]:
    """The strings of a list; [] for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def count(value: object) -> int | None:
    """A whole number from 0 to a billion; None for anything else."""
    return value if type(value) is int and 0 <= value < 10**9 else None


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e12 else None


def percent(value: object) -> float | None:
    """A number, also one written as ``"92"`` or ``"92%"``; None for anything else."""
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        return float(match[1]) if match else None
    return number(value)


def version(value: object) -> Version | None:
    """A version such as ``1.2.0`` or ``v1.2.0``; None for anything else."""
    match = _VERSION.fullmatch(value.strip()) if isinstance(value, str) else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def version_in(head: str) -> Version | None:
    """The version in a document's first 15 lines, in whichever of its forms it stands there."""
    for line in head.split("\n", HEADER)[:HEADER]:
        match = _VERSION.search(line[:1_000])
        if match:
            return int(match[1]), int(match[2]), int(match[3])
    return None


def written(found: Version) -> str:
    """A version as text."""
    return ".".join(map(str, found))


def has_offset(value: object) -> bool:
    """Whether a time is ISO 8601 and says its offset from UTC."""
    try:
        return datetime.fromisoformat(text(value).strip()).tzinfo is not None
    except ValueError:
        return False


def moment(value: object, shifted: bool = False) -> datetime | None:
    """A time in UTC, None where it is none: ISO 8601, also with "/" in its date.

    Without an offset it is the specification's clock, UTC+8; with "Z" too where ``shifted`` says
    that the file's writer puts a "Z" behind that clock's time.
    """
    if not isinstance(value, str):
        return None
    value = value.strip()
    try:
        found = datetime.fromisoformat(_SLASHED.sub(r"\1-\2-\3", value))
        if found.tzinfo is None or (shifted and value.rstrip().upper().endswith("Z")):
            found = found.replace(tzinfo=LOCAL)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
