"""The inputs of an action filled in by rule, as the words of its command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT = "Golden text."
_RESERVED = frozenset({"help", "dry_run", "yes", "json", "as_json"})

Schema = Mapping[str, Any]


def words(schema: Schema, defaults: Mapping[str, Any]) -> list[str]:
    """What must be given is given; what has a default keeps it."""
    required = [
        name
        for name in schema.get("required", ())
        if name not in defaults or defaults[name] in ("", None, [])
    ]
    return [word for name in required for word in _option(name, schema["properties"][name], schema)]


def _option(name: str, described: Schema, schema: Schema) -> list[str]:
    flag = f"--{'input-' if name in _RESERVED else ''}{name.replace('_', '-')}"
    here = _resolved(described, schema)
    if here.get("type") == "boolean":
        return [flag]
    return [flag, _value(here, schema)]


def _value(here: Schema, schema: Schema) -> str:
    if "enum" in here:
        return str(here["enum"][0])
    if "const" in here:
        return str(here["const"])
    if here.get("type") == "array":
        return _value(_resolved(here.get("items", {}), schema), schema)
    if here.get("type") in ("integer", "number"):
        return str(here.get("default", here.get("minimum", 1)))
    return TEXT


def _resolved(described: Schema, schema: Schema) -> Schema:
    """A schema without its reference, and without null as a choice."""
    choices = [each for each in described.get("anyOf", ()) if each != {"type": "null"}]
    if choices:
        return _resolved(choices[0], schema)
    name = str(described.get("$ref", "")).rpartition("/")[2]
    found: Schema = schema.get("$defs", {}).get(name, described)
    return found
