"""A person's settings, read from ``config.toml`` in the user's configuration folder.

They are needed before the first picture: this imports nothing that is slow.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import InvalidInput
from acp_core.model.text import clean_line
from acp_core.person import paths as places

FILE = "config.toml"
LARGEST = 1 << 20  # bytes of the file


class SettingsError(InvalidInput):
    """The settings cannot be used; the message is one line: file, key, and what is wrong."""


class _Wrong(ValueError):
    """A value is not of its kind: where below the setting, and what is needed."""


def _text(value: object) -> None:
    if not isinstance(value, str):
        raise _Wrong("", "a text in quotes")


def _switch(value: object) -> None:
    if not isinstance(value, bool):
        raise _Wrong("", "true or false")


def _texts(value: object) -> None:
    if not isinstance(value, list):
        raise _Wrong("", "a list of texts")
    for place, item in enumerate(value):
        if not isinstance(item, str):
            raise _Wrong(f"[{place}]", "a text in quotes")


def _table(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table of texts")
    for name, item in value.items():
        if not isinstance(item, str):
            raise _Wrong(f".{name}", "a text in quotes")


def _tables(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table of tables")
    for name, item in value.items():
        if not isinstance(item, dict):
            raise _Wrong(f".{name}", "a table")


BUDGETS = ("turn", "participant", "collaboration", "day")
_AMOUNT = re.compile(r"(?!0*(?:\.0*)?[a-zA-Z])\d{1,9}(?:\.\d{1,6})?[kM]?(?:usd|tokens?)")
LOOPS = ("retries", "pause", "turn_minutes", "minutes")


def _loops(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    for name, item in value.items():
        if name not in LOOPS:
            raise _Wrong(f".{name}", f"one of {', '.join(LOOPS)}")
        number = isinstance(item, int | float) and not isinstance(item, bool)
        if not number or not 0 <= item < 1e6:
            raise _Wrong(f".{name}", "a number that is not negative")


def _budgets(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    for name, item in value.items():
        if name not in BUDGETS:
            raise _Wrong(f".{name}", f"one of {', '.join(BUDGETS)}")
        words = item.replace(",", " ").split() if isinstance(item, str) else []
        if not words or not all(map(_AMOUNT.fullmatch, words)):
            raise _Wrong(f".{name}", 'amounts such as "2.50usd" or "5usd, 500ktokens"')


def _recording(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    for name, item in value.items():
        if name == "on":
            if not isinstance(item, bool):
                raise _Wrong(".on", "true or false")
        elif name not in ("days", "megabytes"):
            raise _Wrong(f".{name}", "one of on, days, megabytes")
        elif isinstance(item, bool) or not isinstance(item, int | float) or not 0 < item < 1e9:
            raise _Wrong(f".{name}", "a number above zero")


def _working(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    from acp_core.person import working_hours as working

    checks = {"hours": working.hours, "days": working.days}
    for name, item in value.items():
        if name not in checks:
            raise _Wrong(f".{name}", "one of hours, days")
        try:
            checks[name](item if isinstance(item, str) else "")
        except ValueError as error:
            raise _Wrong(f".{name}", str(error)) from None


def _notify(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    from acp_core.person import notices

    try:
        notices.parse(value)
    except notices.WaysError as error:
        raise _Wrong(f".{error.where}", error.needed) from None


def _permissions(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    from acp_core.person import permissions

    try:
        permissions.parse(value)
    except permissions.WrongRule as error:
        raise _Wrong(error.where, error.needed) from None


def _fleet(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    from acp_core.person import views

    try:
        views.parse(value)
    except views.WrongView as error:
        raise _Wrong(error.where, error.needed) from None


REQUESTS = ("start", "stop", "nudge", "take", "decide", "permit")
"""What a person can let other hosts ask of this one."""


def _requests(value: object) -> None:
    _texts(value)
    assert isinstance(value, list)
    for place, item in enumerate(value):
        if item not in REQUESTS:
            raise _Wrong(f"[{place}]", f"one of {', '.join(REQUESTS)}")


_SHARE: dict[str, Callable[[object], None]] = {
    "host": _text,
    "follow": _texts,
    "accept": _requests,
    "deciders": _texts,
    "sign": _text,
}


def _share(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    for name, item in value.items():
        if name not in _SHARE:
            raise _Wrong(f".{name}", f"one of {', '.join(_SHARE)}")
        _below(_SHARE[name], item, f".{name}")


def _agents(value: object) -> None:
    if not isinstance(value, dict):
        raise _Wrong("", "a table")
    for name, item in value.items():
        if isinstance(item, str):
            continue
        if not isinstance(item, dict):
            raise _Wrong(f".{name}", "a link in quotes, or a table with link and token")
        for key, each in item.items():
            if key not in ("link", "token"):
                raise _Wrong(f".{name}.{key}", "one of link, token")
            _below(_text, each, f".{name}.{key}")
        if "link" not in item:
            raise _Wrong(f".{name}.link", "a link in quotes")


def _below(check: Callable[[object], None], value: object, where: str) -> None:
    try:
        check(value)
    except _Wrong as error:
        raise _Wrong(where + error.args[0], error.args[1]) from None


def _setting(check: Callable[[object], None], description: str) -> dict[str, Any]:
    return {"check": check, "description": description}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set; each value left out has a default.

    What a setting is for stands in the ``description`` of its field's metadata.
    """

    theme: str | None = field(
        default=None,
        metadata=_setting(_text, "Name of the dashboard's colour theme."),
    )
    keys: dict[str, str] = field(
        default_factory=dict,
        metadata=_setting(_table, "Key bindings to change, by the id of the binding."),
    )
    humans: list[str] = field(
        default_factory=list,
        metadata=_setting(_texts, "Ids of the participants that are people, not agents."),
    )
    utc: bool = field(
        default=False,
        metadata=_setting(_switch, "Show times in UTC instead of the local time zone."),
    )
    paths: list[str] = field(
        default_factory=list,
        metadata=_setting(_texts, "Folders to search for collaborations when no path is given."),
    )
    agents: dict[str, str | dict[str, str]] = field(
        default_factory=dict,
        metadata=_setting(_agents, "Links of remote agents to show in the fleet, by name."),
    )
    fleet: dict[str, object] = field(
        default_factory=dict,
        metadata=_setting(_fleet, "Saved views of the fleet: views by name, and the first view."),
    )
    bell: bool = field(
        default=True,
        metadata=_setting(_switch, "Ring the terminal's bell when something new needs you."),
    )
    notify: dict[str, object] = field(
        default_factory=dict,
        metadata=_setting(_notify, "Other ways to notify you: desktop, command, webhook, hours."),
    )
    editor: str | None = field(
        default=None,
        metadata=_setting(_text, "Command that opens a document, instead of $VISUAL or $EDITOR."),
    )
    presets: dict[str, dict[str, object]] = field(
        default_factory=dict,
        metadata=_setting(_tables, "Presets for the agents that take participants' turns."),
    )
    loops: dict[str, float] = field(
        default_factory=dict,
        metadata=_setting(_loops, "Retries, pause (s) and deadlines (min) of participants' loops."),
    )
    budgets: dict[str, str] = field(
        default_factory=dict,
        metadata=_setting(_budgets, "Budgets of loops: turn, participant, collaboration, day."),
    )
    permissions: dict[str, object] = field(
        default_factory=dict,
        metadata=_setting(_permissions, "What agents may do without asking: policy and rules."),
    )
    recording: dict[str, float] = field(
        default_factory=dict,
        metadata=_setting(_recording, "Recording of history: on, days, megabytes."),
    )
    share: dict[str, Any] = field(
        default_factory=dict,
        metadata=_setting(
            _share,
            "Shared collaborations: host, the name of this machine; follow, the stores to list; "
            "accept, the requests from other machines that acp follows; deciders, whose decisions "
            "count; sign, your ssh key for your own.",
        ),
    )
    working: dict[str, str] = field(
        default_factory=dict,
        metadata=_setting(_working, "Your working time, for statistics: hours and days."),
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
        except _Wrong as error:
            below, needed = error.args
            raise _error(place, f"{name}{below}: expected {needed}") from None
    return Settings(**content)


def _error(place: Path, what: str) -> SettingsError:
    return SettingsError(f"{clean_line(str(place), 4096)}: {clean_line(what)}")
