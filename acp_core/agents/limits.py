"""When a model service's limit is reset, as far as a program prints it.

No program promises to print it in these words: whatever is not understood gives no time at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LONGEST = timedelta(days=32)  # a monthly limit; what lies further ahead was misunderstood
_LINE = 2_000  # characters of a line that are read
_BEFORE = r"(?:resets?|try again|retry(?:ing)?|available(?: again)?|retry[- ]after)"
_EPOCH = re.compile(r"(?:limit reached\s*\||\bresets_?at\W{1,3})\s*(\d{10})(?:\d{3})?(?!\d)", re.I)
_SPAN = re.compile(
    _BEFORE + r"(?: +in| +after|:)? *((?:\d{1,6}(?:\.\d{1,6})? ?[a-z]+,? ?(?:and )?){1,4})", re.I
)
_PIECE = re.compile(
    r"(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s|ms)(?![a-z])",
    re.I,
)
_SECONDS = re.compile(r"retry[- ]after\"?[:=]? *\"?(\d{1,6})\b(?! ?[a-z:-])", re.I)
_NAMED = (
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
_WORD = (
    rf"(?:{_NAMED}|\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?)?"
    r"|\d{1,2}:\d\d(?::\d\d)?|20\d\d\b|\d{1,2}(?:st|nd|rd|th)?(?!\d)"
    r"|[ap]m\b|at\b|on\b|z\b|[+-]\d\d:?\d\d\b)"
)
_DATE = re.compile(
    rf"{_BEFORE}\W{{0,3}}({_WORD}(?:[ ,]{{0,2}}{_WORD}){{0,8}})"
    r"(?:\s*\(([A-Za-z_/+-]{1,40})\)|\s+([A-Z]{2,4})\b)?",
    re.I,
)
_EXACT = re.compile(rf"{_NAMED}|:\d\d|[ap]m\b|\d-\d", re.I)
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


def reset_at(lines: Iterable[str], now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """When the limit that these lines are about is reset; None where they do not say so.

    Args:
        lines: What a program printed, what is most telling first.
        now: The present time (aware).
        zone: Of a time of day that names none; by default this machine's.
    """
    for line in lines:
        for moment in _moments_in(line[:_LINE], now, zone):
            if now < moment <= now + LONGEST:
                return moment
    return None


def _moments_in(line: str, now: datetime, zone: tzinfo | None) -> Iterator[datetime]:
    if match := _EPOCH.search(line):
        yield datetime.fromtimestamp(int(match[1]), UTC)
    if match := _DATE.search(line):
        yield from _dates(match, now, zone)
    if match := _SPAN.search(line):
        seconds = sum(_length(*piece) for piece in _PIECE.findall(match[1]))
        if seconds:
            yield now + timedelta(seconds=seconds)
    if match := _SECONDS.search(line):
        yield now + timedelta(seconds=int(match[1]))


def _length(number: str, unit: str) -> float:
    return 0.0 if unit.lower() == "ms" else float(number) * _UNITS[unit[0].lower()]


def _dates(match: re.Match[str], now: datetime, zone: tzinfo | None) -> Iterator[datetime]:
    """The moments that a printed date may be, the nearest first: the day or year may be missing."""
    from dateutil import parser  # late: only where a limit was reached

    text, name = match[1], match[2] or match[3]
    if not _EXACT.search(text):
        return  # a bare number is no date
    if name:
        try:
            zone = ZoneInfo(_ZONES.get(name.upper(), name))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return
    today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for days in (0, 1, 365):
        try:
            read = parser.parse(text, default=today + timedelta(days=days), tzinfos={"Z": UTC})
            if read.tzinfo is None:
                read = read.replace(tzinfo=zone) if zone else read.astimezone()
            read = read.astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            return
        if read > now:
            yield read
