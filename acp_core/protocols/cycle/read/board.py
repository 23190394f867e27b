"""The shared board: what agents found out about the project, so that the next one need not.

It is ``coordination/discoveries.ndjson``: a JSON object per line, with ``ts``, ``agent``, ``type``
and ``data``, only ever appended to. Source: development cycle specification, "Coordination Log",
its later form. Where it is silent: a discovery of the type ``blocker`` is a request to whoever can
answer it when its severity is ``high``, or none of the three that there are; one of ``medium`` or
``low`` severity is for the others to know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import LogRow, Object, parse_part

BOARD = "coordination/discoveries.ndjson"
# Each type of a discovery, with the key of its data that tells two of a type apart ("": there
# is one of the type) and all keys that its data must have.
DISCOVERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tech_stack": ("", ()),
    "architecture": ("", ()),
    "code_convention": ("", ()),
    "test_command": ("", ()),
    "test_baseline": ("", ()),
    "test_pattern": ("", ()),
    "project_config": ("path", ("path",)),
    "existing_feature": ("name", ("name",)),
    "code_pattern": ("name", ("name",)),
    "utility": ("name", ("name",)),
    "integration_point": ("file", ("file",)),
    "similar_impl": ("feature", ("feature",)),
    "blocker": ("issue", ("issue", "severity", "impact")),
}
SUPERSEDED = "test_baseline"  # a newer line of this type takes the place of an older one
WRITTEN = {
    "ra": ("tech_stack", "project_config", "existing_feature"),
    "ep": ("architecture", "code_pattern", "integration_point", "similar_impl"),
    "cd": ("code_convention", "utility", "test_command", "blocker"),
    "vas": ("test_baseline", "test_pattern", "test_command", "blocker"),
}
_LINES = 5_000
_LONG = 300  # characters of one discovery that are told to others


class Discovery(NamedTuple):
    """A row of the board: who found it, its type, and what it is about."""

    agent: str
    type: str
    data: Object


def row(line: str) -> Object | None:
    """A line's JSON object; None where it holds none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read(text: str) -> list[Discovery]:
    """The discoveries of known types that have what their type needs; other lines are findings."""
    found = []
    for line in text.split("\n")[:_LINES]:
        value = row(line) or {}
        entry = parse_part(LogRow, value)
        kind, data = entry.type, entry.data
        if kind not in DISCOVERIES or not data:
            continue
        key, _ = DISCOVERIES[kind]
        if key and not schema.text(data.get(key)).strip():
            continue
        found.append(Discovery(entry.agent.lower(), kind, data))
    return found


def distinct(found: Iterable[Discovery]) -> list[Discovery]:
    """Each discovery once: the first of those that tell the same, the last where it is superseded."""
    known: dict[tuple[str, str], Discovery] = {}
    for each in found:
        key, _ = DISCOVERIES[each.type]
        place = each.type, schema.text(each.data.get(key)) if key else ""
        if place not in known or each.type == SUPERSEDED:
            known[place] = each
    return list(known.values())


def describe(found: Discovery) -> str:
    """A discovery in one line."""
    values = "; ".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in found.data.items()
    )
    return " ".join(f"{found.type}: {values}".split())[:_LONG]


def blocks(found: Discovery) -> bool:
    """Whether it is a request, and not only for the others to know."""
    severity = schema.text(found.data.get("severity")).strip().lower()
    return found.type == "blocker" and severity not in ("medium", "low")
