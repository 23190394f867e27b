"""A person's settings, read from ``config.toml`` in the user's configuration folder."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from acp_core import places
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.text import clean_line

FILE = "config.toml"
LARGEST = 1 << 20  # bytes of the file


_KINDS = {
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
}


class Settings(BaseModel):
    """Everything that can be set; each value left out has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    theme: str | None = Field(
        default=None,
        description="Name of the dashboard's colour theme; the terminal's own where left out.",
    )
    keys: dict[str, str] = Field(
        default_factory=dict,
        description='Other keys, by the id of the binding: `help = "f1,?"`.',
    )
    humans: list[str] = Field(
        default_factory=list, description="Ids of the participants that are people, not agents."
    )
    utc: bool = Field(
        default=False, description="Show times in UTC instead of the local time zone."
    )
    paths: list[str] = Field(
        default_factory=list,
        description="Where to look for collaborations when no path is given; `~` is the home folder.",
    )
    bell: bool = Field(
        default=True, description="Ring the terminal's bell when something new needs you."
    )
    editor: str | None = Field(
        default=None,
        description="Command that opens a document; $VISUAL or $EDITOR where left out.",
    )


class SettingsError(Exception):
    """The settings cannot be used; the message is one line: file, key, and what is wrong."""


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
        raise _wrong(place, error.reason) from None
    try:
        return Settings.model_validate(tomllib.loads(data.decode("utf-8")))
    except UnicodeDecodeError:
        raise _wrong(place, "not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise _wrong(place, f"not TOML: {error}") from None
    except RecursionError:
        raise _wrong(place, "not TOML: nested too deeply") from None
    except ValidationError as error:
        raise _wrong(place, _explain(error)) from None


def _explain(error: ValidationError) -> str:
    """The first thing that is wrong, by the name that it has in the file."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(Settings.model_fields))
        return f"{name}: there is no such setting (there are: {known})"
    return f"{name}: {_KINDS.get(first['type'], first['msg'])} is needed"


def _wrong(place: Path, what: str) -> SettingsError:
    return SettingsError(f"{clean_line(str(place), 4096)}: {clean_line(what)}")
