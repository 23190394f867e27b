"""What is in the files of governed runs and initiatives: their names, their content as types, their words.

The files are read safely: bounded, and of any content. Whatever stands in a file, reading gives
plain values and a reason where it could not be read. File names are those of the governed protocol
specification, "Files" and "File layout"; the types are those of "Repo-local governed run" and
"Coordinator initiative", in the shapes that acp and the existing program write. Whether a
configuration is sound is for the rules to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_core.files import decode as json_values
from acp_core.files.decode import Decoder, integer, key, whole
from acp_core.files.reading import Unreadable, clause, read_bounded
from acp_core.files.transaction import below
from acp_core.model.text import clean_line

CONFIG = "agentxchain.json"
MULTI_CONFIG = "agentxchain-multi.json"
STATE = ".agentxchain/state.json"
HISTORY = ".agentxchain/history.jsonl"
LEDGER = ".agentxchain/decision-ledger.jsonl"
EVENTS = ".agentxchain/events.jsonl"
SESSION = ".agentxchain/session.json"
RUN_HISTORY = ".agentxchain/run-history.jsonl"
ESCALATIONS = ".agentxchain/human-escalations.jsonl"
REPO_DECISIONS = ".agentxchain/repo-decisions.jsonl"
TALK = "TALK.md"
AUTHORITATIVE, PROPOSED, REVIEW_ONLY = "authoritative", "proposed", "review_only"
"""What a role may write: ``write_authority``."""
LOCAL_PROGRAM = "local_cli"
"""The type of a runtime that starts a program on this machine."""
LONGEST_GOAL = 500  # characters
PHASES = ("planning", "implementation", "verification")
MARKS = ("acknowledged", "resolved_by_human", "escalated")
"""What a human may make of an objection."""
RESOLVED = ("resolved", "resolved_by_human", "resolved_by_director", "withdrawn")
JSON_LIMIT = 4 << 20  # bytes of a JSON file
LOG_LIMIT = 64 << 20  # bytes of an append-only log
_TURN_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_PHASES = 100  # phases that are looked at
Object = dict[str, Any]
why = clause
inside = below


class Loaded(NamedTuple):
    """A JSON object; ``reason`` says why ``value`` is empty, "" where it was read.

    ``passing``: for a reason that says nothing of the file, see `Unreadable.passing`.
    """

    value: Object
    reason: str = ""
    missing: bool = False
    passing: bool = False


class Line(NamedTuple):
    """One object of a log, with its line counted from 1."""

    number: int
    value: Object


class Log(NamedTuple):
    """The objects of a log, and what is wrong with which line (0: with the file)."""

    lines: tuple[Line, ...]
    problems: tuple[tuple[int, str], ...] = ()


def read_object(path: Path, limit: int = JSON_LIMIT) -> Loaded:
    """The JSON object in a file of at most ``limit`` bytes; never raises."""
    try:
        value = _parse(read_bounded(path, limit))
    except Unreadable as error:
        return Loaded({}, error.reason, error.missing, error.passing)
    except ValueError as error:
        return Loaded({}, clean_line(str(error), 200))
    return Loaded(value)


def read_log(path: Path) -> Log:
    """The objects of a file with one JSON object a line; a missing file is an empty log."""
    try:
        data = read_bounded(path, LOG_LIMIT)
    except Unreadable as error:
        return Log((), () if error.missing else ((0, error.reason),))
    lines: list[Line] = []
    problems: list[tuple[int, str]] = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        try:
            lines.append(Line(number, _parse(raw)))
        except ValueError as error:
            problems.append((number, clean_line(str(error), 200)))
    return Log(tuple(lines), tuple(problems[:50]))


def _parse(data: bytes) -> Object:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        if not data.strip():
            raise ValueError("is empty") from None
        at = (
            f"line {error.lineno}, column {error.colno}"
            if b"\n" in data
            else f"column {error.colno}"
        )
        problem = error.msg.removesuffix(" starting at").lower()
        raise ValueError(f"is not valid JSON ({at}: {problem})") from None
    except ValueError as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("is not a JSON object")
    return value


def parsed(data: bytes) -> Object:
    """The JSON object that bytes are, empty where they are none."""
    try:
        return _parse(data)
    except ValueError:
        return {}


def objects(value: object) -> dict[str, Object]:
    """The members of an object that are objects themselves."""
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in value.items() if isinstance(item, dict)}


def obj(holder: Object, key: str) -> Object:
    """The object at ``key``, empty where there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def items(holder: Object, key: str) -> list[Object]:
    """The objects in the list at ``key``."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(holder: Object, key: str) -> list[str]:
    """The strings in the list at ``key``, as they are."""
    value = holder.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(holder: Object, key: str, limit: int = 500) -> str:
    """The string at ``key`` as one line safe to show, "" where there is none."""
    value = holder.get(key)
    return clean_line(value, limit) if isinstance(value, str) else ""


def phases(config: Object) -> tuple[str, ...]:
    """The phases that a configuration names, in order: the keys of its routing; () for none."""
    return tuple(clean_line(key, 80) for key in obj(config, "routing"))[:_PHASES]


def routing(config: Object, phase: object) -> Object:
    """What the configuration says of a phase."""
    return objects(config.get("routing")).get(str(phase), {})


def exit_gate(config: Object, phase: str) -> str:
    """The gate that ends a phase; a phase without one ends through a gate named after it."""
    raw = routing(config, phase).get("exit_gate")
    return raw if isinstance(raw, str) and raw else f"{phase}_exit"


def roles_of(config: Object, phase: str) -> tuple[str, ...]:
    """The roles that may take a turn in a phase: its entry role first; all where none is named."""
    defined = objects(config.get("roles"))
    route = routing(config, phase)
    entry = route.get("entry_role")
    named = ([entry] if isinstance(entry, str) else []) + strings(route, "allowed_next_roles")
    found = tuple(dict.fromkeys(name for name in named if name in defined))
    return found or tuple(defined)


def allowed_next(config: Object, phase: str) -> list[str]:
    """The roles that a turn in this phase may propose to come next."""
    return strings(routing(config, phase), "allowed_next_roles")


def status(state: Loaded) -> str:
    """What a state file says of the status: "absent", "unreadable" or "unknown" without it."""
    if state.reason:
        return "absent" if state.missing else "unreadable"
    return text(state.value, "status", 80) or "unknown"


def is_id(value: str) -> bool:
    """Whether an id of a turn may become a folder's name."""
    return _TURN_ID.match(value) is not None


def number(holder: Object, key: str) -> int | None:
    """The integer at ``key``, or None."""
    return json_values.integer(holder.get(key))


def moment(holder: Object, *keys: str) -> datetime | None:
    """The first time at one of ``keys``, in UTC, or None."""
    return next((at for key in keys if (at := json_values.moment(holder.get(key)))), None)


# --- the names of the acts, by which needs, rows, causes and findings name them

CREATE = "create"
STEP = "step"
STOP = "stop_turn"
CORRECT = "correct_result"
ACCEPT = "accept_turn"
REJECT = "reject_turn"
APPROVE_GATE = "approve_gate"
REJECT_GATE = "reject_gate"
ESCALATE = "escalate"
UNBLOCK = "unblock"
OBJECTION = "mark_objection"
LEAVE_MESSAGE = "talk"
RECOVER = "recover"
BRING_BACK = "bring_back"
TAKE_FILES = "take_files"
SET_ASIDE = "set_aside"
TRUST = "trust"
MIGRATE = "migrate"
START = "start_initiative"
COORDINATE = "coordinate"
POLL = "poll"
APPROVE_BARRIER = "approve_barrier"
REJECT_BARRIER = "reject_barrier"
RESYNC = "resync"
MEND = "mend_workstream"
MEND_STATE = "mend_state"
TRUST_HOOKS = "trust_hooks"

ACTS = frozenset(
    {
        CREATE,
        STEP,
        STOP,
        CORRECT,
        ACCEPT,
        REJECT,
        APPROVE_GATE,
        REJECT_GATE,
        ESCALATE,
        UNBLOCK,
        OBJECTION,
        LEAVE_MESSAGE,
        RECOVER,
        BRING_BACK,
        TAKE_FILES,
        SET_ASIDE,
        TRUST,
        MIGRATE,
        START,
        COORDINATE,
        POLL,
        APPROVE_BARRIER,
        REJECT_BARRIER,
        RESYNC,
        MEND,
        MEND_STATE,
        TRUST_HOOKS,
    }
)
"""The names of all acts."""


# --- how content becomes types: texts are lines that are safe to show
# Who writes a file takes what stands in it from its JSON, never from here: a line may be cut.

T = TypeVar("T")
_DECODER = Decoder(most=10_000)
_RICHEST = 1e12  # a sum beyond it is none


def decode(kind: type[T], value: object) -> T:
    """What a JSON value holds; the default of each field that is not there."""
    return _DECODER.decode(kind, value)


def line_field(limit: int, *places: str) -> str:
    """A field for a text of one line.

    Args:
        limit: how many characters of it are read.
        places: where it may stand; the first that is not empty counts.
    """
    return key(*places, default="", read=_line_reader(limit))


def text_field(*places: str, default: str = "") -> str:
    """A field for a text as it stands, such as a path; the default where it is empty."""
    return key(
        *places, default=default, read=lambda value: (isinstance(value, str) and value) or None
    )


def lines_field(limit: int, *places: str) -> tuple[str, ...]:
    """A field for a list of such texts; what else stands in the list is left out."""
    read = _line_reader(limit)

    def read_all(value: object) -> tuple[str, ...] | None:
        if not isinstance(value, list):
            return None
        return tuple(read(each) or "" for each in value if isinstance(each, str))

    return key(*places, default=(), read=read_all)


def dollars_field(*places: str) -> str:
    """A field for a sum of money as text, "" where it is none."""

    def read(value: object) -> str | None:
        sum = json_values.number(value)
        return None if sum is None or abs(sum) > _RICHEST else f"{sum:g}"

    return key(*places, default="", read=read)


def _line_reader(limit: int) -> Callable[[object], str | None]:
    def read(value: object) -> str | None:
        return clean_line(value, limit) or None if isinstance(value, str) else None

    return read


_LONGEST = 300_000  # milliseconds that a hook may take


@dataclass(frozen=True, slots=True)
class Route:
    """A phase."""

    entry_role: str = line_field(80)
    exit_gate: str = line_field(120)
    timeout_minutes: int | None = None
    timeout_action: str = line_field(60)
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

    title: str = line_field(80)
    runtime: str = line_field(200)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may cost."""

    of_run: str = dollars_field("per_run_max_usd")
    of_turn: str = dollars_field("per_turn_max_usd")
    on_exceed: str = line_field(60)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, which only the existing program carries out."""

    name: str = line_field(80, "id", "rule")
    action: str = line_field(60)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """How the gate between two phases is approved."""

    from_phase: str = line_field(80)
    to_phase: str = line_field(80)
    action: str = line_field(60)


@dataclass(frozen=True, slots=True)
class Approval:
    """How gates of a kind are approved, as only the existing program does; ``rules`` per phase."""

    default: str = line_field(60)
    action: str = line_field(60)
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

    name: str = line_field(80)
    type: str = line_field(20)
    mode: str = ""
    command: tuple[str, ...] = key(read=_command, default=())
    url: str = line_field(2_000)
    seconds: float = key("timeout_ms", read=_seconds, default=30.0)
    env: Mapping[str, str] = field(default_factory=dict)
    config: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Who takes a turn: a human, a program on this machine, or a model's service."""

    type: str = line_field(40)
    command: tuple[str, ...] = key(read=_command, default=())
    args: tuple[str, ...] = ()
    cwd: str = line_field(1_000)
    prompt_transport: str = line_field(40)
    provider: str = line_field(80)
    base_url: str = line_field(500)
    model: str = line_field(200)
    auth_env: str = line_field(200)
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

    schema_version: str = line_field(20)
    project: str = line_field(120, "project.name", "project")
    goal: str = line_field(500, "project.goal")
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


HOOK_AUDIT = ".agentxchain/hook-audit.jsonl"
HOOK_PHASES = ("after_dispatch", "after_acceptance", "before_gate", "on_escalation")
MOST_HOOKS = 8  # hooks of one phase


ASKED_BEFORE = {
    "before_assignment": STEP,
    "before_validation": ACCEPT,
    "after_validation": ACCEPT,
    "before_acceptance": ACCEPT,
    "before_gate": APPROVE_GATE,
}
"""The phases in which a blocking hook is asked before an act, and that act."""
BLOCKING = "blocking"


def is_asked(phase: str, hook: Hook) -> bool:
    """Whether a hook is one that is asked before an act, and may stop it."""
    return phase in ASKED_BEFORE and hook.mode == BLOCKING


def asked_before(config: Object, act: str) -> list[tuple[str, Hook]]:
    """The hooks that are asked before an act, each with its phase, in the order in which they are."""
    hooks = decode(Programs, config).hooks
    return [
        (phase, hook)
        for phase, before in ASKED_BEFORE.items()
        if before == act
        for hook in hooks.get(phase, ())[:MOST_HOOKS]
        if is_asked(phase, hook)
    ]


_BARRIER = "barrier:"


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn that is under way."""

    turn_id: str = line_field(200)
    role: str = line_field(80, "assigned_role", "role")
    status: str = line_field(40)
    attempt: int = key(read=lambda value: integer(value) or None, default=1)
    since: datetime | None = key("dispatched_at", "started_at", "assigned_at", default=None)
    deadline: datetime | None = key("deadline_at", default=None)
    runtime: str = line_field(80, "runtime_id")
    start_failure: str = line_field(300, "failed_start_reason")
    failure: str = line_field(4_000, "failure_reason")
    rejection: str = line_field(300, "last_rejection.reason")
    conflicts: tuple[str, ...] = lines_field(80, "conflict_state.conflict_error.conflicting_files")
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Block:
    """Why a run is blocked, and what is to be done about it."""

    detail: str = line_field(4_000, "recovery.detail")
    reason: str = line_field(300, "recovery.detail")
    action: str = line_field(300, "recovery.recovery_action")
    since: datetime | None = key("blocked_at", default=None)


@dataclass(frozen=True, slots=True)
class GateRequest:
    """A request to open a gate, which waits for a human."""

    gate: str = line_field(200)
    phase: str = line_field(80, "from")
    to: str = line_field(80)
    turn: str = line_field(80, "requested_by_turn")
    since: datetime | None = key("requested_at", default=None)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class GateFailure:
    """The gate that was asked for last and is not met."""

    phase: str = line_field(80)
    gate: str = line_field(120, "gate_id")
    reasons: tuple[str, ...] = lines_field(400)
    since: datetime | None = key("failed_at", default=None)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class Reservation:
    """What of the budget is set aside for a turn."""

    role: str = line_field(80, "role_id")
    reserved: str = dollars_field("reserved_usd")


@dataclass(frozen=True, slots=True)
class Delegation:
    """A piece of work that one role gave to another."""

    id: str = line_field(40, "delegation_id", "id")
    parent_role: str = line_field(80)
    to_role: str = line_field(80)
    charter: str = line_field(300)
    status: str = line_field(40)


@dataclass(frozen=True, slots=True)
class RunState:
    """A run's state file."""

    schema_version: str = line_field(20)
    run_id: str = line_field(80)
    super_run_id: str = line_field(120)
    created_by: str = line_field(40, "provenance.created_by")
    status: str = line_field(80)
    phase: str = line_field(80)
    created_at: datetime | None = None
    phase_entered_at: datetime | None = None
    turn_sequence: int = 0
    non_progress_count: int = 1
    next_role: str = line_field(80, "next_recommended_role")
    blocked_on: str = line_field(200)
    block: Block = key("blocked_reason", default=Block())
    escalation: str = line_field(200, "escalation.detail")
    transition: GateRequest = key("pending_phase_transition", default=GateRequest())
    completion: GateRequest = key("pending_run_completion", default=GateRequest())
    gate_failure: GateFailure = key("last_gate_failure", default=GateFailure())
    spent: str = dollars_field("budget_status.spent_usd")
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


def _paths(value: object) -> tuple[str, ...] | None:
    """The files of a turn: texts, or objects with a path."""
    if not isinstance(value, list):
        return None
    paths = (each.get("path") if isinstance(each, dict) else each for each in value)
    return tuple(clean_line(each, 300) for each in paths if isinstance(each, str))


@dataclass(frozen=True, slots=True)
class Raised:
    """An objection, as the line of a turn mentions it."""

    id: str = line_field(40)
    severity: str = line_field(40)
    statement: str = line_field(500)
    status: str = line_field(40)


@dataclass(frozen=True, slots=True)
class ObjectionChange(Raised):
    """What a human made of an objection: a line of the ledger."""

    id: str = line_field(40, "objection_id")
    by: str = line_field(80)
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AcceptedTurn:
    """A line of the history."""

    turn_id: str = line_field(80)
    role: str = line_field(80)
    phase: str = line_field(80)
    summary: str = line_field(500)
    at: datetime | None = key("accepted_at", "at", default=None)
    objections: tuple[Raised, ...] = ()
    verification: str = line_field(40, "verification.status")
    normalized_verification: str = line_field(40, "normalized_verification.status")
    evidence: str = line_field(500, "verification.evidence_summary")
    observed_files: tuple[str, ...] = lines_field(300, "observed_artifact.files_changed")
    files: tuple[str, ...] = key("files_changed", read=_paths, default=())


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """A line of a decision ledger, of a run or of an initiative: a decision, or what became of it.

    ``kind`` is "" for a decision, which has an ``id`` and a ``category``.
    """

    type: str = line_field(60)
    kind: str = line_field(60, "type", "decision")
    id: str = line_field(80)
    gate_id: str = line_field(120)
    objection_id: str = line_field(120)
    turn_id: str = line_field(120)
    blocked_on: str = line_field(120)
    barrier: str = line_field(80)
    workstream_id: str = line_field(80)
    category: str = line_field(60)
    phase: str = line_field(80)
    role: str = line_field(80)
    who: str = line_field(80, "by", "role")
    statement: str = line_field(500)
    rationale: str = line_field(500)
    comment: str = line_field(500)
    reason: str = line_field(500)
    reasons: tuple[str, ...] = lines_field(500)
    conflicts: tuple[str, ...] = lines_field(500, "conflict.conflicting_files")
    escalation: str = line_field(500, "escalation.detail")
    at: datetime | None = key("at", "created_at", "timestamp", "failed_at", default=None)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A line of the event log."""

    kind: str = line_field(60, "event_type")
    turn_id: str = line_field(80, "turn.turn_id", "turn_id")
    role: str = line_field(80, "turn.role_id")
    at: datetime | None = key("timestamp", default=None)
    gate: str = line_field(200, "payload.gate_id")
    origin: str = line_field(200, "payload.from")
    to: str = line_field(200, "payload.to")
    reason: str = line_field(200, "payload.reason")
    category: str = line_field(200, "payload.category")
    blocked_on: str = line_field(200, "payload.blocked_on")

    @property
    def is_at_barrier(self) -> bool:
        """Whether it tells of a run that waits at a barrier."""
        return self.blocked_on.startswith("barrier:") or self.category == "barrier"


@dataclass(frozen=True, slots=True)
class HookAudit:
    """A line about a hook that has ended."""

    hook: str = line_field(80, "hook_name")
    action: str = line_field(60, "orchestrator_action")
    message: str = line_field(300, "message", "stderr_excerpt")
    verdict: str = line_field(40)
    at: datetime | None = key("timestamp", default=None)

    @property
    def is_veto(self) -> bool:
        """Whether the hook blocked: a block that was downgraded to a warning is none."""
        stopped = self.action.startswith(("blocked", "aborted"))
        return stopped or (self.verdict == "block" and not self.action)


@dataclass(frozen=True, slots=True)
class Escalation:
    """A line of the escalations to a human."""

    id: str = line_field(80, "escalation_id")
    type: str = line_field(60)
    detail: str = line_field(300, "detail", "action")


@dataclass(frozen=True, slots=True)
class RepoDecision:
    """A decision that holds for all runs of a repository."""

    id: str = line_field(40)
    status: str = line_field(40)
    statement: str = line_field(500)


@dataclass(frozen=True, slots=True)
class StreamConfig:
    """A workstream, or a repository, as the configuration names it."""

    name: str = ""
    path: str | None = None
    config: str = text_field("config_path", default=CONFIG)
    phase: str = line_field(80)
    repos: tuple[str, ...] = ()
    entry_repo: str = line_field(80)
    depends_on: tuple[str, ...] = ()
    barrier: str = line_field(80, "completion_barrier")


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """What the coordinator knows of a workstream."""

    path: str = ""
    run_id: str = ""
    phase: str = line_field(80)
    status: str = line_field(80)
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class BarrierConfig:
    """A barrier, as the configuration names it."""

    name: str = line_field(80)
    phase: str = line_field(80)


@dataclass(frozen=True, slots=True)
class BarrierRecord:
    """Where a barrier stands."""

    status: str = line_field(40)
    reached_by: tuple[str, ...] = lines_field(80, "reached_by", "satisfied_repos")
    required: tuple[str, ...] = lines_field(80, "required_repos")
    reached_at: datetime | None = None
    approved_at: datetime | None = None
    comment: str = line_field(500)
    type: str = line_field(80)
    workstream: str = line_field(80, "workstream_id")
    raw: Object = whole()


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """An initiative's configuration: a list of workstreams, or (existing program) repositories."""

    schema_version: str = line_field(20)
    super_run_id: str = line_field(120)
    description: str = line_field(500)
    project: str = line_field(120, "project.name")
    goal: str = line_field(500, "project.goal")
    workstreams: tuple[StreamConfig, ...] = ()
    barriers: tuple[BarrierConfig, ...] = ()
    repos: Mapping[str, StreamConfig] = field(default_factory=dict)
    context_folder: str = text_field(
        "context_generation.output_dir", default=".coordinator/context"
    )


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The coordinator's state file; ``repo_runs`` is what the existing program keeps."""

    super_run_id: str = line_field(120)
    status: str = line_field(80)
    phase: str = line_field(80)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    blocked_reason: str = line_field(400)
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

    workstream: str = line_field(80)
    origin: str = line_field(80, "from")
    to: str = line_field(80)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a workstream could not cross."""

    workstream: str = line_field(80)
    reason: str = line_field(500)


@dataclass(frozen=True, slots=True)
class CoordinatorLine(LedgerLine):
    """A line of the coordinator's ledger, or of the existing program's logs of an initiative."""

    by: str = line_field(120)
    workstream: str = line_field(80)
    workstreams: tuple[str, ...] = lines_field(80)
    crossings: tuple[Crossing, ...] = key("workstreams", default=())
    failures: tuple[Failure, ...] = ()
    crossed: bool = False
    run_id: str = line_field(80)
    status: str = line_field(80)
    description: str = line_field(500)
    hook: str = line_field(60)
    outcome: str = line_field(40)
    detail: str = line_field(200)
    barrier_id: str = line_field(120)
    repo_id: str = line_field(120)
    turn: str = line_field(80, "repo_turn_id")
    new_status: str = line_field(120)
    summary: str = line_field(120)
    origin: str = line_field(80, "from")
    to: str = line_field(120)


_LONG = 200


def plain(word: str) -> str:
    """A word of a file without its underscores: ``failed_start`` is ``failed start``."""
    return word.replace("_", " ")


def status_called(status: str) -> str:
    """A status in words: ``blocked:resync_failed`` is ``blocked (resync failed)``."""
    word, _, why = status.partition(":")
    return f"{plain(word)} ({plain(why)})" if why else plain(word)


def gate_called(name: str) -> str:
    """A gate in words: those of the existing program's coordinator bear what they are."""
    kind, _, rest = name.partition(":")
    before, arrow, after = rest.partition("->")
    if kind == "phase_transition" and arrow:
        return f"from {before} to {after}"
    return plain(name) if name == "initiative_ship" else name


def blocked_by(state: Object) -> str:
    """By what a run is blocked, in words without a capital and without a full stop."""
    record = decode(RunState, state)
    kind, _, rest = record.blocked_on.partition(":")
    how = _ways(record, kind, rest) or record.blocked_on
    return clean_line(how or "no reason given", _LONG)


def _ways(state: RunState, kind: str, rest: str) -> str:
    name, _, about = rest.partition(":")
    match kind:
        case "escalation" if name == "retries-exhausted":
            return f"the turn of {about or 'a role'} was rejected on its last attempt"
        case "escalation":
            return f"a human stopped the run{_because(state, about.replace('-', ' '))}"
        case "human":
            return f"a human must decide: {rest}" if rest else "a human must decide"
        case "hook":
            return f"the hook {about or name} blocked it" + (f" ({plain(name)})" if about else "")
        case "gate_action":
            return f"the action on opening the gate {rest} failed"
        case "non_progress":
            return f"the gate {rest} was requested repeatedly but is not met"
        case "policy":
            return f"the policy {rest} does not allow it"
        case "budget":
            return "the budget is used up"
        case "timeout":
            return (
                f"the time limit has passed ({plain(rest)})"
                if rest
                else "the time limit has passed"
            )
        case "dispatch":
            return f"a turn could not be assigned: {plain(rest)}"
        case "turn" | "turns":
            return _turn(state, name, about)
        case "operator_commit_reconcile_refused":
            return "commits made outside the run could not be integrated"
    return ""


def _because(state: RunState, slug: str) -> str:
    detail = state.escalation
    if slug and slug.casefold() in detail.casefold():  # it was made of the same reason
        slug = ""
    why = ": ".join(each for each in (slug, detail) if each)
    return f": {why}" if why else ""


def _turn(state: RunState, how: str, id: str) -> str:
    role = decode(TurnState, state.active_turns.get(id)).role
    whose = f"the turn of {role}" if role else "a turn"
    if how == "failed_start":
        return f"{whose} failed to start"
    return f"{whose} has stalled" if how == "stalled" else f"{whose} failed"


YOU = "you"
