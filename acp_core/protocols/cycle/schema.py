"""The words of the development cycle, and what one reading of its folder holds.

Source: development cycle specification, "Shared State" and "Agent Dependencies". What agents
wrote stands here unaltered; it is made safe where it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from acp_core.files.records import File, Record

HOME = (".workflow", ".cycle")
AGENTS = ("ra", "ep", "cd", "vas")
LABELS = {"ra": "RA requirements", "ep": "EP plan", "cd": "CD code", "vas": "VAS validation"}
DEPENDS = {"ra": "", "ep": "ra", "cd": "ep", "vas": "cd"}
STATUSES = ("created", "running", "paused", "completed", "failed")
AGENT_STATUSES = ("idle", "running", "waiting", "completed", "failed")
TASK_STATUSES = ("pending", "in_progress", "completed", "blocked")
ALIASES = {"done": "completed", "in_progress": "running", "todo": "pending"}
VOICES = (*AGENTS, "orchestrator", "user")
TORN_SECONDS = 2.0  # what cannot be parsed and is younger is still being written
STALL = timedelta(minutes=30)  # how long an agent is waited for
LOCAL = timezone(timedelta(hours=8))  # the specification's clock
MANY = 1_000  # entries of a list that are looked at
Object = dict[str, object]


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


def moment(value: object, shifted: bool = False) -> datetime | None:
    """An ISO 8601 time in UTC, None where it is none.

    Without an offset it is the specification's clock, UTC+8; with "Z" too where ``shifted`` says
    that the file's writer puts a "Z" behind that clock's time.
    """
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        if found.tzinfo is None or (shifted and value.rstrip().upper().endswith("Z")):
            found = found.replace(tzinfo=LOCAL)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle: its state, the files of its progress folder, and the plan and tests in them.

    ``texts`` are the logs and the coordination's documents by the name of their file; ``shifted``
    says that its stamps with "Z" are meant in UTC+8.
    """

    id: str
    record: Record
    now: datetime
    files: tuple[File, ...] = ()
    plan_file: Record | None = None
    tests_file: Record | None = None
    texts: dict[str, str] = field(default_factory=dict)
    shifted: bool = False

    @property
    def value(self) -> Object:
        """The state's object, {} where it cannot be read."""
        return self.record.value or {}

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

    def agent(self, name: str) -> Object:
        """What the state says of an agent."""
        return obj(obj(self.value.get("agents")).get(name))

    def coordination(self, key: str) -> list[Object]:
        """``pending_decisions``, ``blockers`` or ``feedback_log``."""
        return objects(obj(self.value.get("coordination")).get(key))

    def at(self, value: object) -> datetime | None:
        """A time that the state records."""
        return moment(value, self.shifted)


@dataclass(frozen=True, slots=True)
class Project:
    """One reading of all cycles of a project; ``shown`` is the one that is shown in full."""

    root: Path
    now: datetime
    shown: Cycle | None
    cycles: tuple[Cycle, ...] = ()
    orphans: tuple[str, ...] = ()
    prep: Record | None = None
    cut: bool = False
