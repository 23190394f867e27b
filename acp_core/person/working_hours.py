"""Which part of a span of time was working time: nights and weekends are told apart from waiting."""

from __future__ import annotations

import time as system
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from functools import lru_cache

from acp_core.files.decode import check_fields, check_read

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HOURS = "09:00-18:00"
WEEK = "mon-fri"


@dataclass(frozen=True, slots=True)
class Working:
    """Working hours: from ``begin`` to ``end`` on ``days`` (0: Monday), in a time zone.

    ``zone`` None: this machine's. ``chosen`` says whether the person set them: figures show working
    time only then.
    """

    begin: time = time(9)
    end: time = time(18)
    days: frozenset[int] = frozenset(range(5))
    zone: tzinfo | None = None
    chosen: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, str], zone: tzinfo | None = None) -> Working:
        """As the settings' ``[working]`` table says: ``hours`` and ``days``.

        Raises:
            ValueError: one of them is not what it should be; the message says how it is written.
        """
        begin, end = hours(settings.get("hours", HOURS))
        return cls(begin, end, days(settings.get("days", WEEK)), zone, chosen=bool(settings))

    def seconds(self, start: datetime, end: datetime) -> float:
        """How many seconds of working time lie between two times (aware)."""
        first, last = start.astimezone(UTC), end.astimezone(UTC)
        if last <= first:
            return 0.0
        here = (system.timezone, system.tzname) if self.zone is None else None
        total = 0.0
        # A day of the zone begins at most a day before or after that of UTC.
        for day in range(first.toordinal() - 1, last.toordinal() + 2):
            if (day - 1) % 7 not in self.days:
                continue
            hours = _hours(day, self.begin, self.end, self.zone, here)
            if hours is not None and hours[0] < last and hours[1] > first:
                total += (min(hours[1], last) - max(hours[0], first)).total_seconds()
        return total


@lru_cache(maxsize=1_000)  # a long log asks for the same few days again and again
def _hours(
    day: int, begin: time, end: time, zone: tzinfo | None, here: object
) -> tuple[datetime, datetime] | None:
    """When a clock of the zone showed two times on a day; None on a day that no calendar has.

    ``here`` tells this machine's zones apart, where it is that one.
    """
    try:
        shown = (datetime.combine(date.fromordinal(day), each, zone) for each in (begin, end))
        first, last = (each.astimezone(UTC) for each in shown)  # without a zone: this machine's
    except (OverflowError, ValueError):
        return None
    return first, last


def hours(text: str) -> tuple[time, time]:
    """``09:00-18:00``.

    Raises:
        ValueError: it is not written like that.
    """
    begin, dash, end = text.partition("-")
    try:
        first, last = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
    except ValueError:
        dash = ""
        first = last = time()
    if not dash or first >= last:
        raise ValueError('two times with a dash between them, the earlier first ("09:00-18:00")')
    return first, last


def days(text: str) -> frozenset[int]:
    """``mon-fri``, or days with commas between them.

    Raises:
        ValueError: it is not written like that.
    """
    found: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.strip().partition("-")
        if first not in DAYS or (last if dash else first) not in DAYS:
            raise ValueError('days such as "mon-fri" or "mon,wed,fri"')
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found.update(range(begin, (end if end >= begin else end + 7) + 1))
    return frozenset(day % 7 for day in found)


CHECK = check_fields({"hours": check_read(hours), "days": check_read(days)})
"""Of the table ``[working]``."""
