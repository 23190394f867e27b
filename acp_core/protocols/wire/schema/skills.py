"""What an agent says that it can do, and finding a skill (core specification, section 9)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from acp_core.files.decode import integer
from acp_core.model.errors import Refused
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.lenient import fields_of

_WORD = re.compile(r"\w+")
_TEXTS, _LISTS = (
    ("id", "name", "description", "version"),
    ("tags", "examples", "input_modes", "output_modes"),
)
ENOUGH = 0.5  # the least score of a match


def from_option(text: str) -> list[Json]:
    """Skills from ``summarize,translate``."""
    ids = [each.strip() for each in text.split(",")]
    return [{"id": each, "name": each} for each in dict.fromkeys(ids) if each]


def from_file(given: object, where: str) -> list[Json]:
    """Skills from a list in a configuration file: ids, or tables with what is known of each.

    Args:
        given: what stands in the file.
        where: the file and the option, for the message.

    Raises:
        Refused: it is no such list.
    """
    if isinstance(given, str):
        return from_option(given)
    if not isinstance(given, list):
        raise Refused(f"{where}: must be a text, or a list of tables")
    made = [_from_table(each, f"{where}[{place}]") for place, each in enumerate(given)]
    return list({each["id"]: each for each in made}.values())


def _from_table(given: object, where: str) -> Json:
    table = {"id": given} if isinstance(given, str) else given
    if not isinstance(table, dict):
        raise Refused(f"{where}: must be a text, or a table with an id")
    for name, value in table.items():
        texts = value if name in _LISTS and isinstance(value, list) else [value]
        if name not in (*_TEXTS, *_LISTS):
            raise Refused(f"{where}: {name}: unknown (known: {', '.join((*_TEXTS, *_LISTS))})")
        if (name in _LISTS) is not isinstance(value, list) or not all(
            isinstance(each, str) and each.strip() for each in texts
        ):
            needed = "a list of texts" if name in _LISTS else "a text"
            raise Refused(f"{where}: {name}: must be {needed}")
    if "id" not in table:
        raise Refused(f"{where}: id is missing")
    return {"id": table["id"], "name": table["id"], **table}


def find(skills: Sequence[Json], query: str, limit: int) -> list[Json]:
    """The skills that fit ``query``, best first, each with its ``match_score`` from 0 to 1."""
    scored = [(score(skill, query), skill) for skill in skills]
    fitting = [pair for pair in scored if pair[0] >= ENOUGH]
    fitting.sort(key=lambda pair: -pair[0])
    return [{**skill, "match_score": value} for value, skill in fitting[:limit]]


def score(skill: Json, query: str) -> float:
    """How well a skill fits, from 0 to 1. Everything fits an empty query."""
    wanted = query.strip().casefold()
    if not wanted:
        return 1.0
    names = [str(skill.get("id", "")).casefold(), str(skill.get("name", "")).casefold()]
    if wanted in names:
        return 1.0
    tags = [str(tag).casefold() for tag in _list(skill.get("tags"))]
    if wanted in tags:
        return 0.9
    text = " ".join([*names, *tags, str(skill.get("description", "")).casefold()])
    words, asked = set(_WORD.findall(text)), set(_WORD.findall(wanted))
    found = len(words & asked) / len(asked) if asked else 0.0
    near = max(difflib.SequenceMatcher(None, wanted[:100], name[:100]).ratio() for name in names)
    return round(max(0.85 * found, 0.95 * near), 3)


def support(skills: Sequence[Json], wanted: str, agent: str, body: Json, largest: int) -> Json:
    """Whether one skill is supported: the older form of the question, with its constraints."""
    known = [str(skill.get("id")) for skill in skills]
    level = "supported" if wanted in known else "unsupported"
    reason = "" if level == "supported" else f"no skill with that id among {len(known)}"
    applied: Json = {}
    size = integer(fields_of(body.get("constraints")).get("file_size_bytes"))
    if size is not None:
        applied["file_size_bytes"] = size
        if level == "supported" and size > largest:
            level, reason = "partial", f"messages have at most {largest} bytes"
    return {
        "skill_id": wanted,
        "support_level": level,
        "reason": reason,
        "constraints_applied": applied,
        "known_skills": known,
        "agent": agent,
    }


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
