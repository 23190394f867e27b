"""What the files of an initiative hold, as types, in both layouts.

Source: governed protocol specification, "Coordinator initiative"; the shapes of the other layout
are those that the existing program writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from acp_core.files.decode import key, whole
from acp_core.protocols.governed.schema import CONFIG, Object
from acp_core.protocols.governed.schema.fields import filled, line, lines
from acp_core.protocols.governed.schema.records import LedgerLine
from acp_core.protocols.governed.schema.state_file import GateRequest


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """A workstream, or a repository, as the configuration names it."""

    name: str = ""
    path: str | None = None
    config: str = filled("config_path", default=CONFIG)
    phase: str = line(80)
    repos: tuple[str, ...] = ()
    entry_repo: str = line(80)
    depends_on: tuple[str, ...] = ()
    barrier: str = line(80, "completion_barrier")


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """What the coordinator knows of a workstream."""

    path: str = ""
    run_id: str = ""
    phase: str = line(80)
    status: str = line(80)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class BarrierConfig:
    """A barrier, as the configuration names it."""

    name: str = line(80)
    phase: str = line(80)


@dataclass(frozen=True, slots=True)
class BarrierRecord:
    """Where a barrier stands."""

    status: str = line(40)
    reached_by: tuple[str, ...] = lines(80, "reached_by", "satisfied_repos")
    required: tuple[str, ...] = lines(80, "required_repos")
    reached_at: datetime | None = None
    approved_at: datetime | None = None
    comment: str = line(500)
    type: str = line(80)
    workstream: str = line(80, "workstream_id")
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """An initiative's configuration: a list of workstreams, or (existing program) repositories."""

    schema_version: str = line(20)
    super_run_id: str = line(120)
    description: str = line(500)
    project: str = line(120, "project.name")
    goal: str = line(500, "project.goal")
    workstreams: tuple[StreamConfig, ...] = ()
    barriers: tuple[BarrierConfig, ...] = ()
    repos: Mapping[str, StreamConfig] = field(default_factory=dict)
    context_folder: str = filled("context_generation.output_dir", default=".coordinator/context")


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The coordinator's state file; ``repo_runs`` is what the existing program keeps."""

    super_run_id: str = line(120)
    status: str = line(80)
    phase: str = line(80)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    blocked_reason: str = line(400)
    barriers: Mapping[str, BarrierRecord] = field(default_factory=dict)
    workstreams: Mapping[str, StreamRecord] = field(default_factory=dict)
    repo_runs: Mapping[str, StreamRecord] = field(default_factory=dict)
    pending_gate: GateRequest = key(default=GateRequest())

    def barrier(self, name: str) -> BarrierRecord:
        """What is recorded of a barrier."""
        return self.barriers.get(name) or BarrierRecord()


@dataclass(frozen=True, slots=True)
class Crossing:
    """A workstream that crossed a barrier."""

    workstream: str = line(80)
    origin: str = line(80, "from")
    to: str = line(80)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a workstream could not cross."""

    workstream: str = line(80)
    reason: str = line(500)


@dataclass(frozen=True, slots=True)
class CoordinatorLine(LedgerLine):
    """A line of the coordinator's ledger, or of the existing program's logs of an initiative."""

    by: str = line(120)
    workstream: str = line(80)
    workstreams: tuple[str, ...] = lines(80)
    crossings: tuple[Crossing, ...] = key("workstreams", default=())
    failures: tuple[Failure, ...] = ()
    crossed: bool = False
    run_id: str = line(80)
    status: str = line(80)
    description: str = line(500)
    hook: str = line(60)
    outcome: str = line(40)
    detail: str = line(200)
    barrier_id: str = line(120)
    repo_id: str = line(120)
    turn: str = line(80, "repo_turn_id")
    new_status: str = line(120)
    summary: str = line(120)
    origin: str = line(80, "from")
    to: str = line(120)
