"""When a model service's limit is reset, as far as a program prints it.

No program promises to print it in these words: whatever is not understood gives no time at all. A
time is read relative to the moment when it was printed, and as precisely as it was printed: a
printed minute may be any moment of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LONGEST = timedelta(days=32)  # a monthly limit; what lies further ahead was misunderstood
RECENT = timedelta(minutes=15)  # so long after it, a printed time of day is still today's
STALE = timedelta(days=1)  # a whole date that is further past tells nothing
_LINE = 2_000  # characters of a line that are read
_BEFORE = r"(?:resets?|try again|retry(?:ing)?|available(?: again)?|retry[- ]after)"
_FIELD = re.compile(r"\bresets_?at\W{1,3}\s*(\d{10})(?:\d{3})?(?!\d)", re.I)
_FIELD_IN = re.compile(r"\bresets_?in_?seconds\W{1,3}\s*(\d{1,7})(?!\d)", re.I)
_EPOCH = re.compile(r"limit reached\s*\|\s*(\d{10})(?:\d{3})?(?!\d)", re.I)
_SPAN = re.compile(
    rf"(?:{_BEFORE}|\bwait)"
    r"(?: +in| +after|:)? *((?:\d{1,6}(?:\.\d{1,9})? ?[a-z]+,? ?(?:and )?){1,4})",
    re.I,
)
_PIECE = re.compile(
    r"(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s|ms)(?![a-z])",
    re.I,
)
_MINUTES = re.compile(r"m(?:in|$)", re.I)
_SECONDS = re.compile(r"retry[- ]after\"?[:=]? *\"?(\d{1,6})\b(?! ?[a-z:-])", re.I)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_NAMED = f"{_WEEKDAY}|{_MONTH}"
_WORD = (
    rf"(?:{_NAMED}|\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?)?"
    r"|\d{1,2}:\d\d(?::\d\d)?|20\d\d\b|\d{1,2}(?:st|nd|rd|th)?(?!\d)"
    r"|[ap]m\b|at\b|on\b|z\b|[+-]\d\d:?\d\d\b)"
)
_DATE = re.compile(
    rf"{_BEFORE}\W{{0,3}}({_WORD}(?:[ ,]{{0,2}}{_WORD}){{0,8}})"
    r"(?:\s*\(([A-Za-z_/+-]{1,40})\)|\s+((?-i:[A-Z]{2,4})|utc|gmt)\b)?",
    re.I,
)
_EXACT = re.compile(rf"{_NAMED}|:\d\d|[ap]m\b|\d-\d", re.I)
_CLOCK = re.compile(r"(?<![+-])\b\d{1,2}:\d\d(:\d\d(\.\d)?)?")  # no offset of a zone
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_ZONES = {"UTC": "UTC", "GMT": "UTC", "Z": "UTC"} | {
    name: zone
    for letter, zone in {
        "E": "America/New_York",
        "C": "America/Chicago",
        "M": "America/Denver",
        "P": "America/Los_Angeles",
    }.items()
    for name in (f"{letter}T", f"{letter}ST", f"{letter}DT")
}


class Reset(NamedTuple):
    """When a limit is reset.

    Attributes:
        at: the moment that was printed; it may have just passed.
        width: seconds from there to the end of what was printed: 60 for a minute, 1 for a second;
            0 for a whole hour or a day, which begins then, and for what is exact.
        readings: every moment that the same words may mean, ``at`` among them; none where they count
            from when they were printed ("in 5 minutes").
        is_field: it stood in a field that is made for it, not in a text for people.
    """

    at: datetime
    width: float = 0.0
    readings: tuple[datetime, ...] = ()
    is_field: bool = False


def reset_at(lines: Iterable[str], printed: datetime, zone: tzinfo | None = None) -> Reset | None:
    """When the limit that these lines are about is reset; None where they do not say so.

    Args:
        lines: What a program printed, what is most telling first. Fields in them go before texts.
        printed: When that was printed (aware).
        zone: Of a time of day that names none; by default this machine's.
    """
    read = [line[:_LINE] for line in lines]
    for line in read:
        for reset in _fields_in(line, printed):
            if is_near(reset.at, printed):
                return reset
    for line in read:
        for reset in _texts_in(line, printed, zone):
            if is_near(reset.at, printed):
                return reset
    return None


def is_near(at: datetime, printed: datetime) -> bool:
    """Whether a limit may be reset at this moment, or was a short time ago."""
    return -STALE <= at - printed <= LONGEST


def _fields_in(line: str, printed: datetime) -> Iterator[Reset]:
    if match := _FIELD.search(line):
        at = datetime.fromtimestamp(int(match[1]), UTC)
        yield Reset(at, 0.0, (at,), True)
    if match := _FIELD_IN.search(line):
        yield Reset(printed + timedelta(seconds=int(match[1])), is_field=True)


def _texts_in(line: str, printed: datetime, zone: tzinfo | None) -> Iterator[Reset]:
    if match := _EPOCH.search(line):
        at = datetime.fromtimestamp(int(match[1]), UTC)
        yield Reset(at, 1.0, (at,))
    if match := _DATE.search(line):
        readings = _dates(match, printed, zone)
        if meant := nearest(readings, printed):
            yield Reset(meant, _width(match[1]), readings)
    if match := _SPAN.search(line):
        pieces = _PIECE.findall(match[1])
        if seconds := sum(_length(*piece) for piece in pieces):
            at = printed + timedelta(seconds=seconds)
            yield Reset(at, 60.0 if _MINUTES.match(pieces[-1][1]) else 0.0)
    if match := _SECONDS.search(line):
        yield Reset(printed + timedelta(seconds=int(match[1])))


def _length(number: str, unit: str) -> float:
    return 0.0 if unit.lower() == "ms" else float(number) * _UNITS[unit[0].lower()]


def _width(text: str) -> float:
    """Seconds that the last printed field of a date lasts, where it is a minute or a second."""
    clock = _CLOCK.search(text.upper().replace("T", " "))
    if clock is None or clock[2]:
        return 0.0
    return 1.0 if clock[1] else 60.0


def nearest(readings: Iterable[datetime], printed: datetime) -> datetime | None:
    """The one of several readings that is meant: the next, or one that has just passed."""
    near = [each for each in sorted(readings) if is_near(each, printed)]
    ahead = [each for each in near if each >= printed - RECENT]
    return ahead[0] if ahead else near[-1] if near else None


def _dates(match: re.Match[str], printed: datetime, zone: tzinfo | None) -> tuple[datetime, ...]:
    """The moments that a printed date may be, in order: the day or the year may be missing."""
    from dateutil import parser  # late: only where a limit was reached

    text, name = match[1], match[2] or match[3]
    if not _EXACT.search(text):
        return ()  # a bare number is no date
    if name:
        try:
            zone = ZoneInfo(_ZONES.get(name.upper(), name))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return ()
    found = set()
    for day in _days(text, printed.astimezone(zone)):
        try:
            read = parser.parse(text, default=day, tzinfos={"Z": UTC})
        except (ValueError, OverflowError):
            continue
        for fold in (0, 1):  # an hour of the night may come twice
            try:
                local = read.replace(fold=fold) if read.tzinfo is None else read
                aware = local.replace(tzinfo=zone) if zone and not local.tzinfo else local
                found.add(aware.astimezone(UTC))
            except (ValueError, OverflowError, OSError):
                continue
    return tuple(sorted(found))


def _days(text: str, printed: datetime) -> Iterator[datetime]:
    """The days from which a date takes the fields that it lacks."""
    today = printed.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    yield today
    if re.search(rf"{_MONTH}|\d-\d", text, re.I):
        for years in (-1, 1):
            yield today.replace(year=today.year + years, day=min(today.day, 28))
        return
    for days in (-1, 1, 7) if re.search(_WEEKDAY, text, re.I) else (-1, 1):
        yield today + timedelta(days=days)
