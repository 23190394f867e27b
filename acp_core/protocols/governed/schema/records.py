"""What the lines of a run's logs hold, as types: accepted turns, decisions, events, escalations.

Source: governed protocol specification, "Files"; the shapes are those of acp and of the existing
program. What a line must have is said by `rules.records`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from acp_core.files.decode import key
from acp_core.model.text import clean_line
from acp_core.protocols.governed.schema.fields import line, lines


def _paths(value: object) -> tuple[str, ...] | None:
    """The files of a turn: texts, or objects with a path."""
    if not isinstance(value, list):
        return None
    paths = (each.get("path") if isinstance(each, dict) else each for each in value)
    return tuple(clean_line(each, 300) for each in paths if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class Raised:
    """An objection, as the line of a turn mentions it."""

    id: str = line(40)
    severity: str = line(40)
    statement: str = line(500)
    status: str = line(40)


@dataclass(frozen=True, slots=True)
class ObjectionChange(Raised):
    """What a human made of an objection: a line of the ledger."""

    id: str = line(40, "objection_id")
    by: str = line(80)
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """A line of the history."""

    turn_id: str = line(80)
    role: str = line(80)
    phase: str = line(80)
    summary: str = line(500)
    at: datetime | None = key("accepted_at", "at", default=None)
    objections: tuple[Raised, ...] = ()
    verification: str = line(40, "verification.status")
    normalized_verification: str = line(40, "normalized_verification.status")
    evidence: str = line(500, "verification.evidence_summary")
    observed_files: tuple[str, ...] = lines(300, "observed_artifact.files_changed")
    files: tuple[str, ...] = key("files_changed", read=_paths, default=())


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A line of a decision ledger, of a run or of an initiative: a decision, or what became of it.

    ``kind`` is "" for a decision, which has an ``id`` and a ``category``.
    """

    type: str = line(60)
    kind: str = line(60, "type", "decision")
    id: str = line(80)
    gate_id: str = line(120)
    objection_id: str = line(120)
    turn_id: str = line(120)
    blocked_on: str = line(120)
    barrier: str = line(80)
    workstream_id: str = line(80)
    category: str = line(60)
    phase: str = line(80)
    role: str = line(80)
    who: str = line(80, "by", "role")
    statement: str = line(500)
    rationale: str = line(500)
    comment: str = line(500)
    reason: str = line(500)
    reasons: tuple[str, ...] = lines(500)
    conflicts: tuple[str, ...] = lines(500, "conflict.conflicting_files")
    escalation: str = line(500, "escalation.detail")
    at: datetime | None = key("at", "created_at", "timestamp", "failed_at", default=None)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A line of the event log."""

    kind: str = line(60, "event_type")
    turn_id: str = line(80, "turn.turn_id", "turn_id")
    role: str = line(80, "turn.role_id")
    at: datetime | None = key("timestamp", default=None)
    gate: str = line(200, "payload.gate_id")
    origin: str = line(200, "payload.from")
    to: str = line(200, "payload.to")
    reason: str = line(200, "payload.reason")
    category: str = line(200, "payload.category")
    blocked_on: str = line(200, "payload.blocked_on")

    @property
    def is_at_barrier(self) -> bool:
        """Whether it tells of a run that waits at a barrier."""
        return self.blocked_on.startswith("barrier:") or self.category == "barrier"


@dataclass(frozen=True, slots=True)
class HookAudit:
    """A line about a hook that has ended."""

    hook: str = line(80, "hook_name")
    action: str = line(60, "orchestrator_action")
    message: str = line(300, "message", "stderr_excerpt")
    verdict: str = line(40)
    at: datetime | None = key("timestamp", default=None)

    @property
    def is_veto(self) -> bool:
        """Whether the hook blocked: a block that was downgraded to a warning is none."""
        stopped = self.action.startswith(("blocked", "aborted"))
        return stopped or (self.verdict == "block" and not self.action)


@dataclass(frozen=True, slots=True)
class Escalation:
    """A line of the escalations to a human."""

    id: str = line(80, "escalation_id")
    type: str = line(60)
    detail: str = line(300, "detail", "action")


@dataclass(frozen=True, slots=True)
class RepoDecision:
    """A decision that holds for all runs of a repository."""

    id: str = line(40)
    status: str = line(40)
    statement: str = line(500)
