"""The words of the development cycle, and what one reading of its folder holds.

Source: development cycle specification, "Shared State" and "Agent Dependencies". What agents
wrote stands here unaltered; it is made safe where it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from acp_core.files.records import File, Record
from acp_core.model import Finding

HOME = (".workflow", ".cycle")
AGENTS = ("ra", "ep", "cd", "vas")
LABELS = {"ra": "RA requirements", "ep": "EP plan", "cd": "CD code", "vas": "VAS validation"}
DEPENDS = {"ra": "", "ep": "ra", "cd": "ep", "vas": "cd"}
OPEN = ("created", "running", "paused")  # what is not over
STATUSES = ("created", "running", "paused", "completed", "failed")
AGENT_STATUSES = ("idle", "running", "waiting", "completed", "failed")
TASK_STATUSES = ("pending", "in_progress", "completed", "blocked")
EFFORTS = ("small", "medium", "large")
ALIASES = {"done": "completed", "in_progress": "running", "todo": "pending"}
VOICES = (*AGENTS, "orchestrator", "user")
TORN_SECONDS = 2.0  # what cannot be parsed and is younger is still being written
STALL = timedelta(minutes=30)  # how long an agent is waited for
SKEW = timedelta(minutes=5)  # by how much clocks may differ
LOCAL = timezone(timedelta(hours=8))  # the specification's clock
MANY = 1_000  # entries of a list that are looked at
LOST = "is missing; only its progress folder is there"
HEADER = 15  # lines of a document in which its version stands
Object = dict[str, object]
Version = tuple[int, int, int]

_VERSION = re.compile(r"(?<![\d.])[vV]?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?!\.?\d)", re.ASCII)
ID_TIME = re.compile(r"cycle-v1-(\d{8}T\d{6})-.+", re.ASCII)
_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%?\s*", re.ASCII)
_SLASHED = re.compile(r"^(\d{4})/(\d\d)/(\d\d)", re.ASCII)


def text(value: object) -> str:
    """A string, or a number as one; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) in (int, float) else ""


def obj(value: object) -> Object:
    """An object; {} for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Object]:
    """The objects among the first `MANY` of a list; [] for anything else."""
    items = value[:MANY] if isinstance(value, list) else []
    return [each for each in items if isinstance(each, dict)]


def words(value: object) -> list[str]:
    """The strings of a list; [] for anything else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def count(value: object) -> int | None:
    """A whole number from 0 to a billion; None for anything else."""
    return value if type(value) is int and 0 <= value < 10**9 else None


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e12 else None


def percent(value: object) -> float | None:
    """A number, also one written as ``"92"`` or ``"92%"``; None for anything else."""
    if isinstance(value, str):
        match = _PERCENT.fullmatch(value)
        return float(match[1]) if match else None
    return number(value)


def version(value: object) -> Version | None:
    """A version such as ``1.2.0`` or ``v1.2.0``; None for anything else."""
    match = _VERSION.fullmatch(value.strip()) if isinstance(value, str) else None
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def version_in(head: str) -> Version | None:
    """The version in a document's first 15 lines, in whichever of its forms it stands there."""
    for line in head.split("\n", HEADER)[:HEADER]:
        match = _VERSION.search(line[:1_000])
        if match:
            return int(match[1]), int(match[2]), int(match[3])
    return None


def written(found: Version) -> str:
    """A version as text."""
    return ".".join(map(str, found))


def has_offset(value: object) -> bool:
    """Whether a time is ISO 8601 and says its offset from UTC."""
    try:
        return datetime.fromisoformat(text(value).strip()).tzinfo is not None
    except ValueError:
        return False


def moment(value: object, shifted: bool = False) -> datetime | None:
    """A time in UTC, None where it is none: ISO 8601, also with "/" in its date.

    Without an offset it is the specification's clock, UTC+8; with "Z" too where ``shifted`` says
    that the file's writer puts a "Z" behind that clock's time.
    """
    if not isinstance(value, str):
        return None
    value = value.strip()
    try:
        found = datetime.fromisoformat(_SLASHED.sub(r"\1-\2-\3", value))
        if found.tzinfo is None or (shifted and value.rstrip().upper().endswith("Z")):
            found = found.replace(tzinfo=LOCAL)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle: its state, the files of its progress folder, and the plan and tests in them.

    By the name of their file: ``texts`` are the logs and the coordination's documents, ``heads``
    how the agents' documents begin, ``results`` what agents reported. ``tests_past`` are earlier
    test results, oldest first. ``shifted`` says that its stamps with "Z" are meant in UTC+8,
    ``whole`` that its logs were read: those of a cycle that is not shown are not.
    """

    id: str
    record: Record
    now: datetime
    files: tuple[File, ...] = ()
    plan_file: Record | None = None
    tests_file: Record | None = None
    tests_past: tuple[Record, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    shifted: bool = False
    whole: bool = False

    @property
    def value(self) -> Object:
        """The state's object, {} where it cannot be read."""
        return self.record.value or {}

    @property
    def lost(self) -> bool:
        """Its state file is not there."""
        return self.record.problem == LOST

    @property
    def status(self) -> str:
        """The status that the file claims."""
        return text(self.value.get("status"))

    @property
    def progress(self) -> str:
        """The progress folder, as files are named."""
        return f"{'/'.join(HOME)}/{self.id}.progress/"

    @property
    def iteration(self) -> int:
        """The current iteration, 0 before the first."""
        return count(self.value.get("current_iteration")) or 0

    @property
    def last_write(self) -> datetime:
        """When the state or a file of the progress folder last changed."""
        return max((self.record.file.changed, *(each.changed for each in self.files)))

    @property
    def begun(self) -> datetime | None:
        """When it was created; by its id where the state does not tell it."""
        named = ID_TIME.fullmatch(self.id)
        return self.at(self.value.get("created_at")) or (moment(named[1]) if named else None)

    def agent(self, name: str) -> Object:
        """What the state says of an agent."""
        return obj(obj(self.value.get("agents")).get(name))

    def coordination(self, key: str) -> list[Object]:
        """``pending_decisions``, ``blockers`` or ``feedback_log``."""
        return objects(obj(self.value.get("coordination")).get(key))

    def head(self, inside: str) -> str:
        """How an agent's document begins, by its name in the progress folder; "" for none."""
        return self.heads.get(f"{self.progress}{inside}", "")

    def file(self, inside: str) -> File:
        """A file of the progress folder by its name in there; the state where it is not there."""
        name = f"{self.progress}{inside}"
        return next((each for each in self.files if each.name == name), self.record.file)

    def at(self, value: object) -> datetime | None:
        """A time that the state records."""
        return moment(value, self.shifted)

    def since(self, value: object) -> datetime | None:
        """As `at`; the last write in place of a time that lies ahead, of which no age is known."""
        found = self.at(value)
        return self.last_write if found and found > self.now + SKEW else found


@dataclass(frozen=True, slots=True)
class Project:
    """One reading of all cycles of a project; ``shown`` is the one that is shown in full.

    ``told`` is what went against the rules while we looked on, by cycle; ``gone`` the decisions
    of the shown one that stand in its state no more.
    """

    root: Path
    now: datetime
    shown: Cycle | None
    cycles: tuple[Cycle, ...] = ()
    orphans: tuple[str, ...] = ()
    prep: Record | None = None
    cut: bool = False
    told: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    gone: tuple[Object, ...] = ()
