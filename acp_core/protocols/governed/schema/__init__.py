"""The files of governed runs and initiatives, read safely: bounded, and of any content.

Whatever stands in a file, reading gives plain values and a reason where it could not be read.
File names are those of the governed protocol specification, "Files" and "File layout".
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import decode
from acp_core.files.reading import Unreadable, clause, read_bounded
from acp_core.files.transaction import below
from acp_core.model.text import clean_line

CONFIG = "agentxchain.json"
MULTI_CONFIG = "agentxchain-multi.json"
STATE = ".agentxchain/state.json"
HISTORY = ".agentxchain/history.jsonl"
LEDGER = ".agentxchain/decision-ledger.jsonl"
EVENTS = ".agentxchain/events.jsonl"
SESSION = ".agentxchain/session.json"
ESCALATIONS = ".agentxchain/human-escalations.jsonl"
REPO_DECISIONS = ".agentxchain/repo-decisions.jsonl"
TALK = "TALK.md"
AUTHORITATIVE, PROPOSED, REVIEW_ONLY = "authoritative", "proposed", "review_only"
"""What a role may write: ``write_authority``."""
LOCAL_PROGRAM = "local_cli"
"""The type of a runtime that starts a program on this machine."""
LONGEST_GOAL = 500  # characters
PHASES = ("planning", "implementation", "verification")
MARKS = ("acknowledged", "resolved_by_human", "escalated")
"""What a human may make of an objection."""
RESOLVED = ("resolved", "resolved_by_human", "resolved_by_director", "withdrawn")
JSON_LIMIT = 4 << 20  # bytes of a JSON file
LOG_LIMIT = 64 << 20  # bytes of an append-only log
_TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_PHASES = 100  # phases that are looked at

Object = dict[str, Any]

why = clause
inside = below


class Loaded(NamedTuple):
    """A JSON object; ``reason`` says why ``value`` is empty, "" where it was read.

    ``passing``: for a reason that says nothing of the file, see `Unreadable.passing`.
    """

    value: Object
    reason: str = ""
    missing: bool = False
    passing: bool = False


class Line(NamedTuple):
    """One object of a log, with its line counted from 1."""

    number: int
    value: Object


class Log(NamedTuple):
    """The objects of a log, and what is wrong with which line (0: with the file)."""

    lines: tuple[Line, ...]
    problems: tuple[tuple[int, str], ...] = ()


def read_object(path: Path, limit: int = JSON_LIMIT) -> Loaded:
    """The JSON object in a file of at most ``limit`` bytes; never raises."""
    try:
        value = _parse(read_bounded(path, limit))
    except Unreadable as error:
        return Loaded({}, error.reason, error.missing, error.passing)
    except ValueError as error:
        return Loaded({}, clean_line(str(error), 200))
    return Loaded(value)


def read_log(path: Path) -> Log:
    """The objects of a file with one JSON object a line; a missing file is an empty log."""
    try:
        data = read_bounded(path, LOG_LIMIT)
    except Unreadable as error:
        return Log((), () if error.missing else ((0, error.reason),))
    lines: list[Line] = []
    problems: list[tuple[int, str]] = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            lines.append(Line(number, _parse(raw)))
        except ValueError as error:
            problems.append((number, clean_line(str(error), 200)))
    return Log(tuple(lines), tuple(problems[:50]))


def _parse(data: bytes) -> Object:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        if not data.strip():
            raise ValueError("is empty") from None
        at = (
            f"line {error.lineno}, column {error.colno}"
            if b"\n" in data
            else f"column {error.colno}"
        )
        problem = error.msg.removesuffix(" starting at").lower()
        raise ValueError(f"is not valid JSON ({at}: {problem})") from None
    except ValueError as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def parsed(data: bytes) -> Object:
    """The JSON object that bytes are, empty where they are none."""
    try:
        return _parse(data)
    except ValueError:
        return {}


def objects(value: object) -> dict[str, Object]:
    """The members of an object that are objects themselves."""
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in value.items() if isinstance(item, dict)}


def obj(holder: Object, key: str) -> Object:
    """The object at ``key``, empty where there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def items(holder: Object, key: str) -> list[Object]:
    """The objects in the list at ``key``."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(holder: Object, key: str) -> list[str]:
    """The strings in the list at ``key``, as they are."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(holder: Object, key: str, limit: int = 500) -> str:
    """The string at ``key`` as one line safe to show, "" where there is none."""
    value = holder.get(key)
    return clean_line(value, limit) if isinstance(value, str) else ""


def phases(config: Object) -> tuple[str, ...]:
    """The phases that a configuration names, in order: the keys of its routing; () for none."""
    return tuple(clean_line(key, 80) for key in obj(config, "routing"))[:_PHASES]


def status(state: Loaded) -> str:
    """What a state file says of the status: "absent", "unreadable" or "unknown" without it."""
    if state.reason:
        return "absent" if state.missing else "unreadable"
    return text(state.value, "status", 80) or "unknown"


def is_id(value: str) -> bool:
    """Whether an id of a turn may become a folder's name."""
    return _TURN_ID.match(value) is not None


def number(holder: Object, key: str) -> int | None:
    """The integer at ``key``, or None."""
    return decode.integer(holder.get(key))


def moment(holder: Object, *keys: str) -> datetime | None:
    """The first time at one of ``keys``, in UTC, or None."""
    return next((at for key in keys if (at := decode.moment(holder.get(key)))), None)
