"""What a run's state file holds, as types.

Source: governed protocol specification, "Repo-local governed run"; the shapes are those that the
existing program writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from acp_core.files.decode import integer, key, whole
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.fields import dollars, line, lines

_BARRIER = "barrier:"


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn that is under way."""

    turn_id: str = line(200)
    role: str = line(80, "assigned_role", "role")
    status: str = line(40)
    attempt: int = key(read=lambda value: integer(value) or None, default=1)
    since: datetime | None = key("dispatched_at", "started_at", "assigned_at", default=None)
    deadline: datetime | None = key("deadline_at", default=None)
    runtime: str = line(80, "runtime_id")
    start_failure: str = line(300, "failed_start_reason")
    failure: str = line(4_000, "failure_reason")
    rejection: str = line(300, "last_rejection.reason")
    conflicts: tuple[str, ...] = lines(80, "conflict_state.conflict_error.conflicting_files")
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Block:
    """Why a run is blocked, and what is to be done about it."""

    detail: str = line(4_000, "recovery.detail")
    reason: str = line(300, "recovery.detail")
    action: str = line(300, "recovery.recovery_action")
    since: datetime | None = key("blocked_at", default=None)


@dataclass(frozen=True, slots=True)
class GateRequest:
    """A request to open a gate, which waits for a human."""

    gate: str = line(200)
    phase: str = line(80, "from")
    to: str = line(80)
    turn: str = line(80, "requested_by_turn")
    since: datetime | None = key("requested_at", default=None)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class GateFailure:
    """The gate that was asked for last and is not met."""

    phase: str = line(80)
    gate: str = line(120, "gate_id")
    reasons: tuple[str, ...] = lines(400)
    since: datetime | None = key("failed_at", default=None)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Reservation:
    """What of the budget is set aside for a turn."""

    role: str = line(80, "role_id")
    reserved: str = dollars("reserved_usd")


@dataclass(frozen=True, slots=True)
class Delegation:
    """A piece of work that one role gave to another."""

    id: str = line(40, "delegation_id", "id")
    parent_role: str = line(80)
    to_role: str = line(80)
    charter: str = line(300)
    status: str = line(40)


@dataclass(frozen=True, slots=True)
class RunState:
    """A run's state file."""

    schema_version: str = line(20)
    run_id: str = line(80)
    super_run_id: str = line(120)
    created_by: str = line(40, "provenance.created_by")
    status: str = line(80)
    phase: str = line(80)
    created_at: datetime | None = None
    phase_entered_at: datetime | None = None
    turn_sequence: int = 0
    non_progress_count: int = 1
    next_role: str = line(80, "next_recommended_role")
    blocked_on: str = line(200)
    block: Block = key("blocked_reason", default=Block())
    escalation: str = line(200, "escalation.detail")
    transition: GateRequest = key("pending_phase_transition", default=GateRequest())
    completion: GateRequest = key("pending_run_completion", default=GateRequest())
    gate_failure: GateFailure = key("last_gate_failure", default=GateFailure())
    spent: str = dollars("budget_status.spent_usd")
    budget_reservations: Mapping[str, Reservation] = field(default_factory=dict)
    delegations: tuple[Delegation, ...] = key("delegation_queue", default=())
    pending_delegation_review: Object = field(default_factory=dict)
    active_turns: Mapping[str, Object] = field(default_factory=dict)
    current_turn: Object = field(default_factory=dict)

    @property
    def barrier(self) -> str:
        """The barrier of its initiative at which it waits for others, "" where at none."""
        on = self.blocked_on
        return on.removeprefix(_BARRIER) if on.startswith(_BARRIER) else ""
