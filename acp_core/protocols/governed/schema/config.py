"""What the configuration of a run holds, as types.

Source: governed protocol specification, "Repo-local governed run"; the shapes are those that the
existing program writes. Whether a configuration is sound is said by `rules.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_core.files.decode import key, whole
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import dollars, line


@dataclass(frozen=True, slots=True)
class Route:
    """A phase."""

    entry_role: str = line(80)
    exit_gate: str = line(120)
    timeout_minutes: int | None = None
    timeout_action: str = line(60)
    max_concurrent_turns: int = 1


@dataclass(frozen=True, slots=True)
class Gate:
    """What a gate demands."""

    requires_files: tuple[str, ...] = ()
    requires_verification_pass: bool = False
    requires_human_approval: bool = False


@dataclass(frozen=True, slots=True)
class Role:
    """Who takes turns."""

    title: str = line(80)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may cost."""

    of_run: str = dollars("per_run_max_usd")
    of_turn: str = dollars("per_turn_max_usd")
    on_exceed: str = line(60)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, which only the existing program carries out."""

    name: str = line(80, "id", "rule")
    action: str = line(60)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """How the gate between two phases is approved."""

    from_phase: str = line(80)
    to_phase: str = line(80)
    action: str = line(60)


@dataclass(frozen=True, slots=True)
class Approval:
    """How gates of a kind are approved, as only the existing program does; ``rules`` per phase."""

    default: str = line(60, "default", "action")
    rules: tuple[ApprovalRule, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """A run's configuration."""

    schema_version: str = line(20)
    project: str = line(120, "project.name", "project")
    goal: str = line(500, "project.goal")
    roles: Mapping[str, Role] = field(default_factory=dict)
    routing: Mapping[str, Route] = field(default_factory=dict)
    gates: Mapping[str, Gate] = field(default_factory=dict)
    budget: Budget = Budget()
    max_turn_retries: int | None = key("rules.max_turn_retries", default=None)
    mandatory_objections: bool = key("rules.mandatory_objections", default=False)
    timeouts: Object = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()
    phase_approval: Approval = key("approval_policy.phase_transitions", default=Approval())
    completion_approval: Approval = key("approval_policy.run_completion", default=Approval())

    def route(self, phase: str) -> Route:
        """What it says of a phase."""
        return self.routing.get(phase) or Route()
