"""When a model service's limit is reset, as far as a program says so in what it printed.

No program promises to say it in these words: whatever is not understood gives no time at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from acp_core.agents.state import Run

LIMIT = re.compile(
    r"usage limit"
    r"|\bquota\b"
    r"|rate[ _-]?limit"
    r"|\b429\b(?!\d)"
    r"|too many requests"
    r"|credit balance is too low"
    r"|insufficient[ _](?:quota|credits|funds)"
    r"|limit (?:will )?resets? (?:at|in)\b",
    re.IGNORECASE,
)
"""A line that says that a program may not use its model service for now."""
LONGEST = timedelta(days=8)  # a weekly limit; what lies further ahead was misunderstood
_LINE = 2_000  # characters of a line that are looked at
_BEFORE = r"(?:resets?|try again|retry(?:ing)?|available(?: again)?|retry[- ]after)"
_EPOCH = re.compile(r"limit reached\s*\|\s*(\d{10})(?:\d{3})?(?!\d)", re.I)
_ISO = re.compile(
    _BEFORE
    + r"\D{0,20}(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)",
    re.I,
)
_SPAN = re.compile(
    _BEFORE + r"(?: +in| +after|:)? *((?:\d{1,6}(?:\.\d{1,6})? ?[a-z]+,? ?(?:and )?){1,4})", re.I
)
_PIECE = re.compile(
    r"(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s|ms)(?![a-z])",
    re.I,
)
_SECONDS = re.compile(r"retry[- ]after\"?[:=]? *\"?(\d{1,6})\b(?! ?[a-z])", re.I)
_CLOCK = re.compile(
    _BEFORE + r"\s+(?:at\s+)?(\d{1,2})(?::(\d\d))?\s*(am|pm)?\b(?:\s*\(([A-Za-z_/+-]{1,40})\))?",
    re.I,
)
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}


def reset_of(run: Run, now: datetime) -> datetime | None:
    """When the limit is reset because of which an attempt failed; None where it did not."""
    if not (run.exit_code or run.is_error):
        return None
    return reset_at((run.error, *reversed(run.lines)), now)


def reset_at(lines: Iterable[str], now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """When the limit that these lines speak of is reset; None where they do not tell.

    Args:
        lines: What a program printed last, in any order.
        now: The present time (aware).
        zone: Of a time of day that names none; by default this machine's.
    """
    listed = [line[:_LINE] for line in lines]
    if not any(LIMIT.search(line) for line in listed):
        return None
    for line in listed:
        found = _moment_in(line, now, zone)
        if found is not None and now < found <= now + LONGEST:
            return found
    return None


def _moment_in(line: str, now: datetime, zone: tzinfo | None) -> datetime | None:
    if match := _EPOCH.search(line):
        return datetime.fromtimestamp(int(match[1]), UTC)
    if match := _ISO.search(line):
        return _moment(match[1], zone)
    if match := _SPAN.search(line):
        seconds = sum(_length(*piece) for piece in _PIECE.findall(match[1]))
        if seconds:
            return now + timedelta(seconds=seconds)
    if match := _SECONDS.search(line):
        return now + timedelta(seconds=int(match[1]))
    if match := _CLOCK.search(line):
        return _next(match, now, zone)
    return None


def _moment(text: str, zone: tzinfo | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone) if zone else found.astimezone()
    return found.astimezone(UTC)


def _length(number: str, unit: str) -> float:
    return 0.0 if unit.lower() == "ms" else float(number) * _UNITS[unit[0].lower()]


def _next(match: re.Match[str], now: datetime, zone: tzinfo | None) -> datetime | None:
    """The next time that a clock shows this."""
    hour, minute = int(match[1]), int(match[2] or 0)
    half, name = (match[3] or "").lower(), match[4]
    if not half and match[2] is None:
        return None  # a bare number is no time of day
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    if name:
        try:
            zone = UTC if name.upper() in ("UTC", "GMT") else ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
    here = now.astimezone(zone)
    found = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if found <= here:
        found += timedelta(days=1)
    return found.astimezone(UTC)
