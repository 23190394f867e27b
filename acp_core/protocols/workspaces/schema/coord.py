"""What the files of a run's coordination hold, as types: dispatches, decisions and conflicts.

Source: agent workspaces specification, "File-Based Handoffs" and "Conflict Resolution Protocol".
``raw`` is an entry as it stands in its file: who changes it writes there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from acp_core.files.decode import Decoder, key, whole
from acp_core.files.records import Record

T = TypeVar("T")
Object = dict[str, object]
_DECODER = Decoder(most=10_000)


def decode(kind: type[T], record: Record | None) -> T:
    """What a file holds, as far as it is there and can be read."""
    return parse(kind, record.value if record else None)


def parse(kind: type[T], value: object) -> T:
    """What a JSON value holds."""
    return _DECODER.decode(kind, value)


def output(value: object) -> Output:
    """An output that is listed: an object, or its path alone."""
    return Output(value) if isinstance(value, str) else parse(Output, value)


def between(agents: Sequence[str]) -> str:
    """Agents, as the record sentence of a conflict names them."""
    *first, last = agents or ["?"]
    return f"{', '.join(first)} and {last}" if first else last


def _inputs(value: object) -> tuple[str, ...] | None:
    """The paths of inputs: texts, or objects with a path."""
    if not isinstance(value, list):
        return None
    paths = (each.get("path") if isinstance(each, dict) else each for each in value)
    return tuple(each for each in paths if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class Dispatch:
    """An agent's entry in the manifest."""

    agent: str = ""
    task_id: str = ""
    task: str = ""
    attempt: int = 0
    stamp: str = ""
    timeout_s: float = 0.0
    after: tuple[str, ...] = ()
    inputs: tuple[str, ...] = key(read=_inputs, default=())
    prompt_file: str = ""
    output: str = ""
    status_file: str = ""
    feedback: str = ""
    continue_from: str = ""
    dispatched_at: datetime | None = None
    dispatched: str = key("dispatched_at", default="")
    is_dispatched: bool = key("dispatched_at", read=bool, default=False)
    ended_at: datetime | None = None
    exit: str = ""
    outside: tuple[str, ...] = ()
    outside_while: tuple[str, ...] = ()
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent says of its work, in its status file or in what it returned."""

    agent: str = ""
    status: str = ""
    task_id: str = ""
    summary: str = ""
    notes: str = ""
    errors: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """An output that a status file lists."""

    file: str = ""
    description: str = ""
    size_estimate: object = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What the manifest, or the task specification, says of the whole run."""

    run_id: str = ""
    created: str = key("created_at", default="")
    task: str = ""
    scope: str = ""
    naming: str = ""
    format: str = ""
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest, as far as it can be read."""

    agents: tuple[Dispatch, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided on an agent that was partial, failed or gave no result."""

    agent: str = ""
    task_id: str = ""
    attempt: int | None = None
    decision: str = ""
    reason: str = ""
    by: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Triage:
    """The decisions, oldest first."""

    decisions: tuple[Decision, ...] = key("decisions", "triage", default=())


@dataclass(frozen=True, slots=True)
class Conflict:
    """Where outputs contradict each other, or a machine thinks that they may."""

    id: str = ""
    agents: tuple[str, ...] = ()
    topic: str = ""
    category: str = ""
    why: str = ""
    rule: str = ""
    sentence: str = ""
    is_dismissed: bool = key("dismissed", read=bool, default=False)
    reason: str = ""
    by: str = ""
    resolved_at: datetime | None = None
    hint: bool | None = None
    found_by: str = ""
    raw: Object = whole()

    @property
    def is_open(self) -> bool:
        """It is neither resolved nor dismissed."""
        return not self.sentence and not self.is_dismissed

    @property
    def is_hint(self) -> bool:
        """A machine wrote it down, and no person said that it is a conflict."""
        return self.found_by == "acp" if self.hint is None else self.hint

    @property
    def between(self) -> str:
        """Its agents, as its record sentence names them."""
        return between(self.agents)

    @property
    def question(self) -> str:
        """An open hint in a line."""
        return f"{self.between} may contradict each other on {self.why or self.topic or '?'}"


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The conflicts that are written down, and when the outputs were compared."""

    conflicts: tuple[Conflict, ...] = ()
    looked_at: datetime | None = None
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Integration:
    """The integration status: what was taken in, and what the final output lacks."""

    by: str = ""
    integrated: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    gaps_added: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
