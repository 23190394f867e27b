"""The words of the development cycle, the state file as types, and the names of acts.

Source: development cycle specification, "Shared State File" and "Shared State". What agents wrote
stands here unaltered; it is made safe where it is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property, partial
from pathlib import Path
from typing import TypeVar

from acp_core.files.decode import Decoder, Scalar, key, whole
from acp_core.files.records import File, Record
from acp_core.model import Finding

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
        return decoder_of(self.shifted).decode(kind, value)

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


START_ACT = "start"

RUN_ACT = "run"

DECIDE_ACT = "decide"

RESOLVE_ACT = "resolve"

FEEDBACK_ACT = "feedback"

EXTEND_ACT = "extend"

PAUSE_ACT = "pause"

RESUME_ACT = "resume"

STOP_ACT = "stop"

ACCEPT_ACT = "accept"

RERUN_ACT = "rerun"

LIMIT_ACT = "limit"

REBUILD_ACT = "rebuild"

SELECT_ACT = "select"

LOCAL = timezone(timedelta(hours=8))  # the specification's clock

MANY = 1_000  # entries of a list that are looked at

HEADER = 15  # lines of a document in which its version stands

Object = dict[str, object]

Version = tuple[int, int, int]

_VERSION = re.compile(r"(?<![\d.])[vV]?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?!\.?\d)", re.ASCII)

_PERCENT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*%?\s*", re.ASCII)

_SLASHED = re.compile(r"^(\d{4})/(\d\d)/(\d\d)", re.ASCII)


def is_text(value: object) -> bool:
    """Whether it is a string, or a number, which is as good as one."""
    return isinstance(value, str) or type(value) in (int, float)


def text(value: object) -> str:
    """A string, or a number as one; "" for anything else."""
    return str(value) if is_text(value) else ""


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


Parsed = TypeVar("Parsed")


def _word_tuple(value: object) -> tuple[str, ...] | None:
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
    criteria: tuple[str, ...] = key(read=_word_tuple, default=())
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
    issues_found: tuple[str, ...] = key(read=_word_tuple, default=())
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
    depends_on: tuple[str, ...] = key(read=_word_tuple, default=())
    files: tuple[str, ...] = key(read=_word_tuple, default=())
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
    critical_path: tuple[str, ...] = key(read=_word_tuple, default=())
    summary_path: tuple[str, ...] = key("summary.critical_path", read=_word_tuple, default=())


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
    completed_phases: tuple[str, ...] = key(read=_word_tuple, default=())
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


def decoder_of(shifted: bool = False) -> Decoder:
    """What decodes the files of a cycle.

    Args:
        shifted: their writer puts a "Z" behind a time of UTC+8.
    """
    return _DECODERS[shifted]


def parse_part(kind: type[Parsed], value: object) -> Parsed:
    """What a JSON value holds."""
    return _DECODERS[False].decode(kind, value)


def coordination_of(state: object) -> Coordination:
    """What a state tells of decisions, blockers, feedback and requests."""
    return parse_part(Coordination, state)


def plan_of(value: object) -> Plan:
    """A plan, of the state or of EP's own file."""
    return parse_part(Plan, value)


def iteration_of(state: Object) -> int:
    """The current iteration, 0 before the first."""
    return count(state.get("current_iteration")) or 0


def agent_in(state: Object, name: str) -> AgentState:
    """What a state says of an agent."""
    return parse_part(AgentState, obj(state.get("agents")).get(name))


_LONGEST_LINE = 2_000


def one_line(text: str) -> str:
    """A text as one line of a log."""
    return " ".join(text.split())[:_LONGEST_LINE]


DOCUMENT_NAMES = {
    "ra": ("requirements.md", "edge-cases.md"),
    "ep": ("exploration.md", "architecture.md", "plan.json"),
    "cd": ("implementation.md", "issues.md"),
    "vas": ("validation.md", "test-results.json", "coverage.md", "summary.md"),
}

LOG_NAMES = {
    "ra": "changes.log",
    "ep": "changes.log",
    "cd": "code-changes.log",
    "vas": "changes.log",
}

FIRST_VERSION = "1.0.0"


def encoded(state: Object) -> bytes:
    """A state as it stands in its file."""
    try:
        return json.dumps(state, ensure_ascii=False, indent=2).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(state, indent=2).encode() + b"\n"


def stamp_of(now: datetime) -> str:
    """A time as the state records it."""
    return now.astimezone(LOCAL).isoformat(timespec="seconds")


def parse_object(data: str | bytes) -> Object | None:
    """The JSON object of a line or a file; None where it holds none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def numbered_objects(content: str) -> Iterator[tuple[int, Object]]:
    """The rows of a log that are objects, each with the number of its line."""
    for number, line in enumerate(content.split("\n"), 1):
        if (row := parse_object(line)) is not None:
            yield number, row
