"""A person's settings, read from ``config.toml`` in the user's configuration folder.

They are needed before the first picture: this imports nothing that is slow.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from acp_core.files.decode import (
    ARE_TEXTS,
    IS_SWITCH,
    IS_TEXT,
    Check,
    WrongValue,
    check_fields,
    check_list,
    check_one_of,
    check_table,
    check_that,
)
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import InvalidInput
from acp_core.model.text import clean_line
from acp_core.person import paths as places

FILE = "config.toml"
LARGEST = 1 << 20  # bytes of the file


class SettingsError(InvalidInput):
    """The settings cannot be used; the message is one line: file, key, and what is wrong."""


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


def _working(value: object) -> None:
    from acp_core.person import working_hours

    working_hours.CHECK(value)


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
