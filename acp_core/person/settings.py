"""A person's settings, read from ``config.toml`` in the user's configuration folder, and the hours that they set.

Each setting stands once, in `Settings`: its name, its kind, its default and what it is for. They are
needed before the first picture: this imports nothing that is slow. Working time tells nights and
weekends apart from waiting.
"""

from __future__ import annotations

import re
import time as system
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, time, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import InvalidInput
from acp_core.model.text import clean_line
from acp_core.person import paths as places
from acp_core.person.kinds import (
    ARE_TEXTS,
    IS_SWITCH,
    IS_TEXT,
    Check,
    WrongValue,
    check_fields,
    check_list,
    check_one_of,
    check_read,
    check_table,
    check_that,
)

FILE = "config.toml"

LARGEST = 1 << 20  # bytes of the file


class SettingsError(InvalidInput):
    """The settings cannot be used; the message is one line: file, key, and what is wrong."""


DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
USUAL_HOURS = "09:00-18:00"
USUAL_DAYS = "mon-fri"


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
        begin, end = working_times(settings.get("hours", USUAL_HOURS))
        return cls(
            begin, end, working_days(settings.get("days", USUAL_DAYS)), zone, chosen=bool(settings)
        )

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
            hours = _hours_of(day, self.begin, self.end, self.zone, here)
            if hours is not None and hours[0] < last and hours[1] > first:
                total += (min(hours[1], last) - max(hours[0], first)).total_seconds()
        return total


@lru_cache(maxsize=1_000)  # a long log asks for the same few days again and again
def _hours_of(
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


def working_times(text: str) -> tuple[time, time]:
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


def working_days(text: str) -> frozenset[int]:
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


_AMOUNT = re.compile(r"(?!0*(?:\.0*)?[a-zA-Z])\d{1,9}(?:\.\d{1,6})?[kM]?(?:usd|tokens?)")

REQUESTS = ("start", "stop", "nudge", "take", "decide", "permit")
"""What a person can let other hosts ask of this one."""


def _number(value: object) -> float:
    """The number; one below every bound where it is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1.0


def _are_amounts(value: object) -> bool:
    words = value.replace(",", " ").split() if isinstance(value, str) else []
    return bool(words) and all(map(_AMOUNT.fullmatch, words))


def _agent(value: Any) -> None:
    if isinstance(value, str):
        return
    fields = {"link": IS_TEXT, "token": IS_TEXT}
    check_fields(fields, "a link in quotes, or a table with link and token")(value)
    if "link" not in value:
        raise WrongValue(".link", "a link in quotes")


def _requests(value: object) -> None:
    ARE_TEXTS(value)
    check_list(check_one_of(REQUESTS), "")(value)


def _notify(value: object) -> None:
    from acp_core.person import notices

    notices.CHECK(value)


def _permissions(value: object) -> None:
    from acp_core.person import permissions

    permissions.CHECK(value)


def _fleet(value: object) -> None:
    from acp_core.person import views

    views.check(value)


_is_positive = check_that(lambda value: 0 < _number(value) < 1e9, "a number above zero")
_not_negative = check_that(lambda value: 0 <= _number(value) < 1e6, "a number that is not negative")
_amounts = check_that(_are_amounts, 'amounts such as "2.50usd" or "5usd, 500ktokens"')
_names_to_texts = check_table(IS_TEXT, "a table of texts")
_presets = check_table(
    check_that(lambda value: isinstance(value, dict), "a table"), "a table of tables"
)
_agents = check_table(_agent)
_loops = check_fields(dict.fromkeys(("retries", "pause", "turn_minutes", "minutes"), _not_negative))
_budgets = check_fields(dict.fromkeys(("turn", "participant", "collaboration", "day"), _amounts))
_recording = check_fields({"on": IS_SWITCH, "days": _is_positive, "megabytes": _is_positive})
_working = check_fields({"hours": check_read(working_times), "days": check_read(working_days)})
_share = check_fields(
    {
        "host": IS_TEXT,
        "follow": ARE_TEXTS,
        "accept": _requests,
        "deciders": ARE_TEXTS,
        "sign": IS_TEXT,
    }
)


def setting(check: Check, default: Any, description: str) -> Any:
    """One setting.

    Args:
        check: its kind.
        default: its value where it is left out; what makes one, where that can be changed.
        description: what it is for, in a sentence.
    """
    metadata = {"check": check, "description": description}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set, each with its kind, its default and what it is for."""

    theme: str | None = setting(IS_TEXT, None, "Name of the dashboard's colour theme.")
    keys: dict[str, str] = setting(
        _names_to_texts, dict, "Key bindings to change, by the id of the binding."
    )
    humans: list[str] = setting(
        ARE_TEXTS, list, "Ids of the participants that are people, not agents."
    )
    utc: bool = setting(IS_SWITCH, False, "Show times in UTC instead of the local time zone.")
    paths: list[str] = setting(
        ARE_TEXTS, list, "Folders to search for collaborations when no path is given."
    )
    agents: dict[str, str | dict[str, str]] = setting(
        _agents, dict, "Links of remote agents to show in the fleet, by name."
    )
    fleet: dict[str, object] = setting(
        _fleet, dict, "Saved views of the fleet: views by name, and the first view."
    )
    bell: bool = setting(IS_SWITCH, True, "Ring the terminal's bell when something new needs you.")
    notify: dict[str, object] = setting(
        _notify, dict, "Other ways to notify you: desktop, command, webhook, hours."
    )
    editor: str | None = setting(
        IS_TEXT, None, "Command that opens a document, instead of $VISUAL or $EDITOR."
    )
    presets: dict[str, dict[str, object]] = setting(
        _presets, dict, "Presets for the agents that take participants' turns."
    )
    loops: dict[str, float] = setting(
        _loops, dict, "Retries, pause (s) and deadlines (min) of participants' loops."
    )
    budgets: dict[str, str] = setting(
        _budgets, dict, "Budgets of loops: turn, participant, collaboration, day."
    )
    permissions: dict[str, object] = setting(
        _permissions, dict, "What agents may do without asking: policy and rules."
    )
    recording: dict[str, float] = setting(
        _recording, dict, "Recording of history: on, days, megabytes."
    )
    share: dict[str, Any] = setting(
        _share,
        dict,
        "Shared collaborations: host, the name of this machine; follow, the stores to list; "
        "accept, the requests from other machines that acp follows; deciders, whose decisions "
        "count; sign, your ssh key for your own.",
    )
    working: dict[str, str] = setting(
        _working, dict, "Your working time, for statistics: hours and days."
    )


def path() -> Path:
    """Where the settings stand (the file need not exist)."""
    return places.config_folder() / FILE


def load(file: Path | None = None) -> Settings:
    """The settings in ``file`` (default: `path`); the defaults where there is no such file.

    Raises:
        SettingsError: the file cannot be read, is no TOML, or holds what is no setting.
    """
    place = file or path()
    try:
        data = read_bounded(place, LARGEST)
    except Unreadable as error:
        if error.missing:
            return Settings()
        raise _error(place, error.reason) from None
    try:
        content = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise _error(place, "not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise _error(place, f"not TOML: {error}") from None
    except RecursionError:
        raise _error(place, "not TOML: nested too deeply") from None
    known = {setting.name: setting for setting in fields(Settings)}
    for name, value in content.items():
        if name not in known:
            names = ", ".join(sorted(known))
            raise _error(place, f"{name}: unknown setting (available: {names})")
        try:
            known[name].metadata["check"](value)
        except WrongValue as error:
            raise _error(place, f"{name}{error.where}: expected {error.needed}") from None
    return Settings(**content)


def _error(place: Path, what: str) -> SettingsError:
    return SettingsError(f"{clean_line(str(place), 4096)}: {clean_line(what)}")
