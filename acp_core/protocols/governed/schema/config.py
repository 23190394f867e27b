"""What the configuration of a run holds, as types.

Source: governed protocol specification, "Repo-local governed run"; the shapes are those that the
existing program writes. Whether a configuration is sound is said by `rules.config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_core.files.decode import integer, key, whole
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import dollars, line

_LONGEST = 300_000  # milliseconds that a hook may take


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
    runtime: str = line(200)


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

    default: str = line(60)
    action: str = line(60)
    rules: tuple[ApprovalRule, ...] = ()


def _command(value: object) -> tuple[str, ...] | None:
    """A program and its arguments: a text alone is a program without any."""
    if isinstance(value, list):
        return tuple(each for each in value if isinstance(each, str))
    return (value,) if isinstance(value, str) and value else None


def _seconds(value: object) -> float | None:
    milliseconds = integer(value)
    within = milliseconds is not None and 0 < milliseconds <= _LONGEST
    return milliseconds / 1000 if milliseconds is not None and within else None


@dataclass(frozen=True, slots=True)
class Hook:
    """A program, or an address, that is told or asked what happens in a run."""

    name: str = line(80)
    type: str = line(20)
    mode: str = ""
    command: tuple[str, ...] = key(read=_command, default=())
    url: str = line(2_000)
    seconds: float = key("timeout_ms", read=_seconds, default=30.0)
    env: Mapping[str, str] = field(default_factory=dict)
    config: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Who takes a turn: a human, a program on this machine, or a model's service."""

    type: str = line(40)
    command: tuple[str, ...] = key(read=_command, default=())
    args: tuple[str, ...] = ()
    cwd: str = line(1_000)
    prompt_transport: str = line(40)
    provider: str = line(80)
    base_url: str = line(500)
    model: str = line(200)
    auth_env: str = line(200)
    max_output_tokens: int | None = None

    @property
    def adapter(self) -> str:
        """Its type; by hand where it names none."""
        return self.type or "manual"


@dataclass(frozen=True, slots=True)
class Programs:
    """What a configuration has run or asked: hooks by their phase, and runtimes."""

    hooks: Mapping[str, tuple[Hook, ...]] = field(default_factory=dict)
    runtimes: Mapping[str, Runtime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config(Programs):
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
