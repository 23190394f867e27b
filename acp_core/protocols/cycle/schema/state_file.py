"""What a cycle's state file holds, as types.

Source: development cycle specification, "Shared State" and "Message Formats". ``raw`` is an entry
as it stands in the file: who changes the state writes there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from acp_core.files.decode import Decoder, Scalar, key, whole
from acp_core.protocols.cycle.schema.values import (
    MANY,
    Object,
    count,
    is_text,
    moment,
    number,
    obj,
    text,
    words,
)

T = TypeVar("T")


def _words(value: object) -> tuple[str, ...] | None:
    return tuple(words(value)) if isinstance(value, list) else None


def _options(value: object) -> tuple[str, ...] | None:
    """The options of a decision: texts, or objects with a label."""
    if not isinstance(value, list):
        return None
    held = ((each, obj(each)) for each in value)
    labels = (text(each) or text(o.get("label") or o.get("description")) for each, o in held)
    return tuple(filter(None, labels))


@dataclass(frozen=True, slots=True)
class AgentState:
    """What the state says of an agent."""

    status: str = ""
    version: str = ""
    target_version: str = ""
    run: str = ""
    attempts: int = 0
    error: str = ""
    last_message: str = ""
    message: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    iterations_completed: int | None = None
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Decision:
    """Something that a person is asked to decide, or has decided."""

    id: str = ""
    description: str = ""
    kind: str = ""
    status: str = ""
    agent: str = ""
    blocker: str = ""
    options: tuple[str, ...] = key(read=_options, default=())
    chosen_option: str = ""
    rationale: str = ""
    made_by: str = ""
    is_made: bool = key("made_by", read=bool, default=False)
    iteration: int | None = None
    asked_at: datetime | None = None
    raw: Object = whole()

    @property
    def is_open(self) -> bool:
        """Nobody has made it yet."""
        return self.status.lower() in ("", "pending") and not self.is_made


@dataclass(frozen=True, slots=True)
class Blocker:
    """What keeps an agent from its work."""

    id: str = ""
    description: str = ""
    status: str = ""
    reported_by: str = ""
    routed_to: str = ""
    target: str = ""
    resolution: str = ""
    is_resolved: bool = key("resolution", read=bool, default=False)
    reported_at: datetime | None = None
    raw: Object = whole()

    @property
    def is_open(self) -> bool:
        """Nobody has resolved it yet."""
        return self.status.lower() in ("", "open")


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an agent is told by another, or by a person."""

    id: str = ""
    source: str = ""
    target: str = ""
    type: str = ""
    content: str = ""
    criteria: tuple[str, ...] = key(read=_words, default=())
    iteration: int = 0
    asks: bool = key(read=bool, default=False)
    run: str = ""
    timestamp: datetime | None = None
    sent_at: datetime | None = None
    is_sent: bool = key("sent_at", read=bool, default=False)
    is_answered: bool = key("answered_at", read=bool, default=False)
    raw: Object = whole()

    @property
    def waits(self) -> bool:
        """Our orchestrator, which names each, has not sent it yet."""
        return bool(self.id) and not self.is_sent

    @property
    def reached(self) -> datetime | None:
        """When the agent got it; None while it has not."""
        return self.sent_at if self.id else self.timestamp


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked the orchestrator for."""

    action: str = ""
    detail: str = ""
    at: datetime | None = None
    is_picked_up: bool = key("picked_up_at", read=bool, default=False)
    raw: Object = whole()

    @property
    def sentence(self) -> str:
        """What is asked for."""
        return f"{self.action} {self.detail}".strip()


@dataclass(frozen=True, slots=True)
class Result:
    """What an agent reported in an iteration."""

    status: str = ""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The record of an iteration."""

    number: int | None = key("number", "iteration", default=None)
    label: str = key("number", "iteration", default="")
    started_at: datetime | None = None
    completed_at: datetime | None = None
    extension: str = ""
    note: str = ""
    issues_found: tuple[str, ...] = key(read=_words, default=())
    agent_results: Mapping[str, Result] = field(default_factory=dict)
    test_results: Object = field(default_factory=dict)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of an agent's log, or of the changes that the state records."""

    agent: str = ""
    by: str = ""
    action: str = ""
    file: str = ""
    owner: str = ""
    type: str = ""
    data: Object = field(default_factory=dict)
    iteration: int = 0
    is_put_back: bool = key("put_back", default=False)


@dataclass(frozen=True, slots=True)
class PhaseError:
    """A run that came to nothing."""

    phase: str = ""
    error: str = ""
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the state that an agent's work is told in."""

    version: str = ""
    last_updated: datetime | None = None
    last_run: datetime | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the plan."""

    id: str = ""
    title: str = ""
    description: str = ""
    status: str = ""
    effort: str = ""
    estimated_hours: float | None = None
    assigned_to: str = ""
    depends_on: tuple[str, ...] = key(read=_words, default=())
    files: tuple[str, ...] = key(read=_words, default=())
    blocked_reason: str = ""
    blocked_by: str = ""
    reason: str = ""

    @property
    def state(self) -> str:
        """Its status in the schema's words; "" where none is told."""
        said = self.status.lower()
        return "completed" if said == "done" else "pending" if said == "todo" else said

    def entry(self, status: str) -> Object:
        """What the state tells of a task of EP's plan."""
        return {
            "id": self.id,
            "description": self.title or self.description,
            "effort": self.effort,
            "depends_on": [*self.depends_on],
            "status": status or "pending",
        }

    @property
    def is_undone(self) -> bool:
        """It is told that it is not completed."""
        return self.state not in ("", "completed")


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan, in the state or in EP's own file."""

    version: str = ""
    tasks: tuple[Task, ...] = ()
    critical_path: tuple[str, ...] = key(read=_words, default=())
    summary_path: tuple[str, ...] = key("summary.critical_path", read=_words, default=())


@dataclass(frozen=True, slots=True)
class Coordination:
    """What a state tells of decisions, blockers, feedback and requests."""

    decisions: tuple[Decision, ...] = key("coordination.pending_decisions", default=())
    blockers: tuple[Blocker, ...] = key("coordination.blockers", default=())
    feedback: tuple[Feedback, ...] = key("coordination.feedback_log", default=())
    requests: tuple[Request, ...] = key("coordination.requests", default=())

    @property
    def open_decisions(self) -> list[Decision]:
        """The decisions that nobody has made yet."""
        return [each for each in self.decisions if each.is_open]

    @property
    def open_blockers(self) -> list[Blocker]:
        """The blockers that nobody has resolved yet."""
        return [each for each in self.blockers if each.is_open]

    @property
    def open_requests(self) -> list[Request]:
        """What people asked for that no orchestrator has picked up."""
        return [each for each in self.requests if not each.is_picked_up]


@dataclass(frozen=True, slots=True)
class State(Coordination):
    """A state file."""

    cycle_id: str = ""
    title: str = ""
    description: str = ""
    status: str = ""
    failure_reason: str = ""
    current_phase: str = ""
    current_iteration: int = 0
    max_iterations: int | None = None
    completed_phases: tuple[str, ...] = key(read=_words, default=())
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    agents: Mapping[str, AgentState] = field(default_factory=dict)
    iterations: tuple[Iteration, ...] = ()
    phase_errors: tuple[PhaseError, ...] = ()
    plan: Plan = Plan()
    test_results: Object = field(default_factory=dict)


_SCALARS = {
    str: Scalar("a text", lambda value: text(value) if is_text(value) else None),
    int: Scalar("a whole number from 0", count),
    float: Scalar("a number", number),
}
_DECODERS = {
    shifted: Decoder(
        {**_SCALARS, datetime: Scalar("a time", partial(moment, shifted=shifted))}, MANY
    )
    for shifted in (False, True)
}


def decoder(shifted: bool = False) -> Decoder:
    """What decodes the files of a cycle.

    Args:
        shifted: their writer puts a "Z" behind a time of UTC+8.
    """
    return _DECODERS[shifted]


def parse(kind: type[T], value: object) -> T:
    """What a JSON value holds."""
    return _DECODERS[False].decode(kind, value)


def coordination(state: object) -> Coordination:
    """What a state tells of decisions, blockers, feedback and requests."""
    return parse(Coordination, state)


def plan(value: object) -> Plan:
    """A plan, of the state or of EP's own file."""
    return parse(Plan, value)


def iteration(state: Object) -> int:
    """The current iteration, 0 before the first."""
    return count(state.get("current_iteration")) or 0


def agent_in(state: Object, name: str) -> AgentState:
    """What a state says of an agent."""
    return parse(AgentState, obj(state.get("agents")).get(name))
