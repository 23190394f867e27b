"""One entry in a program's settings: put in as text, so that all else stays as it is, and taken out again."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from acp_core.model.errors import Refused


class Insertion(NamedTuple):
    """The settings with the entry, and the piece of text that was added."""

    text: str
    added: str


def insert(
    text: str, section: str, name: str, value: Mapping[str, Any], *, toml: bool
) -> Insertion:
    """Put an entry into settings.

    Args:
        text: the settings; "" where there are none.
        section: the table that gets it, made where it is missing.
        name: the entry's.
        value: what it holds.
        toml: whether the settings are TOML, not JSON.

    Raises:
        Refused: the settings cannot be read, or have another entry of that name.
    """
    known = _read(text, toml)
    table = known.get(section, {})
    if not isinstance(table, dict):
        raise Refused(f"{section} is not a table there")
    if name in table:
        raise Refused(
            f"they have an entry {section}.{name} that acp did not write: remove it first"
        )
    made = (
        _in_toml(text, section, name, value)
        if toml
        else _in_json(text, known, section, name, value)
    )
    try:
        right = _read(made.text, toml).get(section, {}).get(name) == value
    except Refused:
        right = False
    if not right:
        raise Refused(f"acp cannot add {section}.{name} to them: add it by hand")
    return made


def take_out(text: str, added: str, section: str, name: str, *, toml: bool) -> str | None:
    """The settings without the piece that was added; None where somebody changed that since.

    Args:
        text: the settings now.
        added: what `insert` added.
        section, name, toml: as those of `insert`.
    """
    if text.count(added) != 1:
        return None
    left = text.replace(added, "", 1)
    try:
        table = _read(left, toml).get(section, {})
    except Refused:
        return None
    return None if name in table else left


def _read(text: str, toml: bool) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = tomllib.loads(text) if toml else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if toml else "JSON without comments"
        raise Refused(f"they are not {kind} ({error}): add the server by hand") from None
    if not isinstance(value, dict):
        raise Refused("they hold no table: add the server by hand")
    return value


def _in_toml(text: str, section: str, name: str, value: Mapping[str, Any]) -> Insertion:
    lines = [f"[{section}.{name}]"]
    for key, each in value.items():
        if isinstance(each, dict):
            inner = ", ".join(f"{json.dumps(k)} = {_quoted(v)}" for k, v in each.items())
            lines.append(f"{key} = {{ {inner} }}")
        else:
            lines.append(f"{key} = {_quoted(each)}")
    before = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    added = before + "\n".join(lines) + "\n"
    return Insertion(text + added, added)


def _quoted(value: Any) -> str:
    """A text, or a list of texts, which TOML writes as JSON does where nothing is beyond ASCII."""
    return json.dumps(value, ensure_ascii=False)


def _in_json(
    text: str, known: dict[str, Any], section: str, name: str, value: Mapping[str, Any]
) -> Insertion:
    if not text.strip():
        made = json.dumps({section: {name: value}}, indent=2, ensure_ascii=False) + "\n"
        return Insertion(made, made)
    shown = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n    ")
    entry = f'\n    "{name}": {shown}'
    if section in known:
        at, more = _opening(text, section), bool(known[section])
    else:
        at, more = text.index("{") + 1, bool(known)
        entry = f'\n  "{section}": {{{entry}\n  }}'
    comma = "," if text[at : at + 1] in "\r\n" else ", "
    added = entry + (comma if more else "\n  " if section in known else "\n")
    return Insertion(text[:at] + added + text[at:], added)


def _opening(text: str, section: str) -> int:
    """Where the table of a section begins: after its brace, at the top level of an object."""
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    while True:
        at = _after(text, at, ", \t\r\n")
        key, at = decoder.raw_decode(text, at)
        at = _after(text, at, ": \t\r\n")
        if key == section:
            return at + 1
        _, at = decoder.raw_decode(text, at)


def _after(text: str, at: int, signs: str) -> int:
    while text[at] in signs:
        at += 1
    return at
