"""The words of the development cycle, and what one reading of its folder holds.

Source: development cycle specification, "Shared State" and "Agent Dependencies". What agents
wrote stands here unaltered; it is made safe where it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from acp_core.files.records import File, Record
from acp_core.model import Finding
from acp_core.protocols.cycle.schema.state_file import AgentState, Part, Plan, State, decoder
from acp_core.protocols.cycle.schema.values import LOCAL as LOCAL
from acp_core.protocols.cycle.schema.values import MANY as MANY
from acp_core.protocols.cycle.schema.values import Object as Object
from acp_core.protocols.cycle.schema.values import Version as Version
from acp_core.protocols.cycle.schema.values import count as count
from acp_core.protocols.cycle.schema.values import has_offset as has_offset
from acp_core.protocols.cycle.schema.values import moment as moment
from acp_core.protocols.cycle.schema.values import number as number
from acp_core.protocols.cycle.schema.values import obj as obj
from acp_core.protocols.cycle.schema.values import objects as objects
from acp_core.protocols.cycle.schema.values import percent as percent
from acp_core.protocols.cycle.schema.values import text as text
from acp_core.protocols.cycle.schema.values import version as version
from acp_core.protocols.cycle.schema.values import version_in as version_in
from acp_core.protocols.cycle.schema.values import words as words
from acp_core.protocols.cycle.schema.values import written as written

T = TypeVar("T")

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
LOST = "is missing; only its progress folder is there"

ID_TIME = re.compile(r"cycle-v1-(\d{8}T\d{6})-.+", re.ASCII)


@dataclass(frozen=True)
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

    @cached_property
    def state(self) -> State:
        """What the state tells."""
        return self._decode(State, self.value)

    @property
    def lost(self) -> bool:
        """Its state file is not there."""
        return self.record.problem == LOST

    @property
    def status(self) -> str:
        """The status that the file claims."""
        return self.state.status

    @property
    def progress(self) -> str:
        """The progress folder, as files are named."""
        return f"{'/'.join(HOME)}/{self.id}.progress/"

    @property
    def iteration(self) -> int:
        """The current iteration, 0 before the first."""
        return self.state.current_iteration

    @property
    def last_write(self) -> datetime:
        """When the state or a file of the progress folder last changed."""
        return max((self.record.file.changed, *(each.changed for each in self.files)))

    @property
    def begun(self) -> datetime | None:
        """When it was created; by its id where the state does not tell it."""
        named = ID_TIME.fullmatch(self.id)
        return self.state.created_at or (moment(named[1]) if named else None)

    def agent(self, name: str) -> AgentState:
        """What the state says of an agent."""
        return self.state.agents.get(name) or AgentState()

    def part(self, name: str) -> Part:
        """What the state says of a part of the work, such as ``requirements``."""
        return self._decode(Part, self.value.get(name))

    @cached_property
    def own_plan(self) -> Plan:
        """The plan in EP's own file."""
        return self._decode(Plan, self.plan_file.value if self.plan_file else None)

    def _decode(self, kind: type[T], value: object) -> T:
        return decoder(self.shifted).decode(kind, value)

    def coordination(self, key: str) -> list[Object]:
        """The entries of a list of the coordination, as they stand in the file."""
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

    def since(self, at: datetime | None) -> datetime | None:
        """A time; the last write in place of one that lies ahead, of which no age is known."""
        return self.last_write if at and at > self.now + SKEW else at


@dataclass(frozen=True, slots=True)
class Project:
    """One reading of all cycles of a project; ``selected`` is the one that is shown in full.

    ``violations`` are what went against the rules while we looked on, by cycle; ``gone`` the decisions
    of the shown one that stand in its state no more.
    """

    root: Path
    now: datetime
    selected: Cycle | None
    cycles: tuple[Cycle, ...] = ()
    orphans: tuple[str, ...] = ()
    prep: Record | None = None
    cut: bool = False
    violations: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    gone: tuple[Object, ...] = ()
