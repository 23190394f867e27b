"""What is in the files of a run of agent workspaces, as types: words, records, plans, the run and its places.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" to "Status File
Schema", "Return Value Contract", "File-Based Handoffs" and "Conflict Resolution Protocol". What agents
wrote stands here unaltered; it is made safe where it is shown. A plan is checked strictly, whoever
wrote it: what follows may rely on it. No path that is made here leaves the run's folder.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_core.files.decode import Decoder, Odd, Scalar, key, number, whole
from acp_core.files.records import File, Record, shallow
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line, clean_name

Decoded = TypeVar("Decoded")
Object = dict[str, object]
_LENIENT = Decoder(most=10_000)


def decode_record(kind: type[Decoded], record: Record | None) -> Decoded:
    """What a file holds, as far as it is there and can be read."""
    return decode_object(kind, record.value if record else None)


def decode_object(kind: type[Decoded], value: object) -> Decoded:
    """What a JSON value holds."""
    return _LENIENT.decode(kind, value)


def items_of(value: object) -> list[Any]:
    """The entries of a list; [] for anything else."""
    return value if isinstance(value, list) else []


def objects_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list; [] for anything else."""
    return [each for each in items_of(value) if isinstance(each, dict)]


def value_of(record: Record | Returned | None) -> dict[str, Any]:
    """The object in a file, or in what was returned; {} where there is none."""
    return (record.value if record else None) or {}


def parse_object(data: str | bytes) -> dict[str, Any] | None:
    """The JSON object of a text; None where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def one_output(value: object) -> Output:
    """An output that is listed: an object, or its path alone."""
    return Output(value) if isinstance(value, str) else decode_object(Output, value)


def named_pair(agents: Sequence[str]) -> str:
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
class ManifestDispatches:
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
        return named_pair(self.agents)

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


FOLDERS = ("agent-workspaces", "workspaces")  # the second stands in the section on handoffs
SHARED, COORD, SCRATCH = "shared", ".coord", "scratch"
HISTORY = "history"  # in COORD: the statuses and returns of earlier attempts, by agent and number
SUCCESS, PARTIAL, FAILURE = "success", "partial", "failure"

WORDS = {
    **dict.fromkeys(("success", "complete", "completed", "done", "approved"), SUCCESS),
    **dict.fromkeys(("partial", "incomplete", "done_with_concerns"), PARTIAL),
    **dict.fromkeys(("failure", "failed", "error", "blocked"), FAILURE),
}

MISSING = "missing"  # its program ended, or nobody waits for it any more, without a status

DECISIONS = {
    PARTIAL: ("accept", "rerun", "skip"),
    FAILURE: ("rerun", "orchestrator-does", "gap"),
    MISSING: ("rerun", "orchestrator-does", "gap"),
}

CATEGORIES = ("factual", "coverage", "format")  # of conflicts
GROUNDS = ("specific", "sourced", "consistent")  # why a version of a fact holds
NAMINGS = ("plain", "prefixed")  # how outputs are called
FINALS = ("md", "txt", "json")  # the forms of a final output
TORN_SECONDS = 2.0  # what cannot be parsed and is younger is still being written
STALL_SECONDS = 20 * 60.0
DEEPEST = 1  # the level of a manager's run: no other run stands in the workspaces of its agents


def outcome(word: object) -> str:
    """``success``, ``partial`` or ``failure`` for a status word; "" for an unknown one."""
    return WORDS.get(word.strip().lower(), "") if isinstance(word, str) else ""


def is_one_line(text: str) -> bool:
    """Whether a text has no line end of any kind: no section of a prompt can begin in it."""
    return text.splitlines() == [text]


def run_id(manifest: dict[str, object] | None) -> str:
    """What tells a run from others at the same place, safe to show; "" where nothing does."""
    info = decode_object(RunInfo, manifest)
    return clean_line(" ".join(filter(None, (info.run_id, info.created))), 200)


@dataclass(frozen=True, slots=True)
class Listed:
    """A path that an agent named, and the file that it means.

    Attributes:
        written: as the agent wrote it.
        item: what else was said of it.
        path: where it was looked for, inside the run; None where that is outside.
        file: the file that stands there, None where there is none.
        relocated: the run was moved since.
        relative: it was no absolute path.
        owner: the workspace in which it lies, symbolic links followed; "" for none.
    """

    written: str
    item: Output
    path: Path | None
    file: File | None
    relocated: bool
    relative: bool
    owner: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What an agent returned: the object in it, and how it was found."""

    file: File
    value: dict[str, object] | None
    problem: str = ""
    prose: bool = False
    listed: tuple[Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was dispatched, and whom it names."""

    file: File
    text: str
    agent: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Agent:
    """One sub-agent: what its workspace holds, and what was said of it.

    ``folder`` is None where only the manifest or a prompt names it; ``records`` are its status
    files, ``status`` the one that holds; ``attempts`` the stamps of its outputs. ``outputs`` are
    those that its status lists, ``guessed`` those that stand there where it lists none.
    """

    name: str
    folder: Path | None
    files: tuple[File, ...] = ()
    records: tuple[Record, ...] = ()
    status: Record | None = None
    outputs: tuple[Listed, ...] = ()
    guessed: tuple[Listed, ...] = ()
    returned: Returned | None = None
    prompt: Prompt | None = None
    plan: Dispatch = field(default_factory=Dispatch)
    attempts: tuple[str, ...] = ()
    decision: str = ""

    @property
    def shown(self) -> str:
        """Its name as it is shown everywhere."""
        return clean_name(self.name, 200)

    @property
    def value(self) -> dict[str, object]:
        """The status file's object, {} where there is none."""
        return value_of(self.status)

    @property
    def report(self) -> Report:
        """What its status file says."""
        return decode_record(Report, self.status)

    @property
    def answer(self) -> Report:
        """What it returned says."""
        return decode_object(Report, value_of(self.returned))

    @property
    def outcome(self) -> str:
        """How it ended, "" where that is not said."""
        return outcome(self.value.get("status"))

    @property
    def results(self) -> tuple[Listed, ...]:
        """What is read of it: the listed outputs, else those that are found."""
        return self.outputs or self.guessed

    @property
    def task_id(self) -> str:
        """Its task, from the status file, the manifest, the return or the prompt."""
        known = (self.report.task_id, self.plan.task_id, self.answer.task_id)
        return next(filter(None, known), self.prompt.task_id if self.prompt else "")

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        known = 0 < self.plan.attempt < 10_000
        return self.plan.attempt if known else max(1, len(self.attempts))

    @property
    def last_write(self) -> datetime | None:
        """When a file of the workspace last changed."""
        return max((each.changed for each in self.files), default=None)

    @property
    def active(self) -> datetime | None:
        """When it last gave a sign: a write, or its dispatch, whichever is later."""
        signs = (self.last_write, self.plan.dispatched_at)
        return max((sign for sign in signs if sign), default=None)

    @property
    def is_over(self) -> bool:
        """Whether the manifest says that its program ended."""
        return self.plan.ended_at is not None

    @property
    def is_planned(self) -> bool:
        """Whether the manifest names it."""
        return bool(self.plan.raw)

    @property
    def errors(self) -> list[str]:
        """What it says went wrong, in what it returned or in its status file."""
        return [*(self.answer.errors or self.report.errors)]


class Trespass(NamedTuple):
    """One file that an agent wrote and may not.

    Attributes:
        by: the agent that wrote it.
        others: who else worked at the same time, and may have written it.
        file: the file.
        victim: the agent in whose workspace it lies, "" for none.
        how: what shows it.
        certain: it was seen, and nobody else can have been it.
    """

    by: str
    others: tuple[str, ...]
    file: File
    victim: str
    how: str
    certain: bool


@dataclass(frozen=True)
class Run:
    """One reading of a run.

    ``base`` is the folder of the workspaces; ``finals`` are the final outputs, ``stray`` outputs
    that lie beside the workspaces, ``drafts`` what the final output is prepared in, ``synthesis`` how a program does that; ``cut`` says that not all files were looked at;
    ``level`` is the number of other runs in whose workspaces it stands; ``planted`` are final outputs
    that an agent wrote, which only the orchestrator may, and ``trespasses`` all that agents wrote where
    they may not.
    """

    root: Path
    base: Path
    now: datetime
    agents: tuple[Agent, ...] = ()
    files: tuple[File, ...] = ()
    returns: tuple[Returned, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    manifest: Record | None = None
    triage: Record | None = None
    conflicts: Record | None = None
    finals: tuple[File, ...] = ()
    final_text: str = ""
    integration: Record | None = None
    spec: File | None = None
    stray: tuple[File, ...] = ()
    drafts: tuple[File, ...] = ()
    synthesis: Record | None = None
    cut: bool = False
    level: int = 0
    planted: tuple[File, ...] = ()
    trespasses: tuple[Trespass, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Agent]:
        """Its agents by their names."""
        return {agent.name: agent for agent in self.agents}

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided on its agents, oldest first."""
        return decode_record(Triage, self.triage).decisions

    @cached_property
    def recorded(self) -> Conflicts:
        """The conflicts that are written down; those of the integration where nobody did that."""
        found = decode_record(Conflicts, self.conflicts)
        if "conflicts" in found.raw:
            return found
        return replace(found, conflicts=self.integrated.conflicts)

    @cached_property
    def integrated(self) -> Integration:
        """The integration status."""
        return decode_record(Integration, self.integration)

    @property
    def coordination(self) -> tuple[Record, ...]:
        """What the orchestrator keeps of the run, as far as it is there."""
        kept = (self.manifest, self.triage, self.conflicts, self.integration)
        return tuple(record for record in kept if record is not None)

    @property
    def writing(self) -> bool:
        """Whether a program writes the draft, as far as the orchestrator wrote that down."""
        written = value_of(self.synthesis)
        return bool(written.get("begun_at")) and not written.get("ended_at")


CREATE_ACT = "create"
DISPATCH_ACT = "dispatch"
TRIAGE_ACT = "triage"
RERUN_ACT = "rerun"
STOP_ACT = "stop"
ADD_ACT = "add"
COMPARE_ACT = "compare"
DISPUTE_ACT = "dispute"
RESOLVE_ACT = "resolve"
DISMISS_ACT = "dismiss"
ORDER_ACT = "order"
DRAFT_ACT = "draft"
SYNTHESISE_ACT = "synthesise"
FINISH_ACT = "finish"
REPAIR_ACT = "repair"

EVERY_ACT = frozenset({
    CREATE_ACT, DISPATCH_ACT, TRIAGE_ACT, RERUN_ACT, STOP_ACT, ADD_ACT, COMPARE_ACT, DISPUTE_ACT,
    RESOLVE_ACT, DISMISS_ACT, ORDER_ACT, DRAFT_ACT, SYNTHESISE_ACT, FINISH_ACT, REPAIR_ACT,
})  # fmt: skip

_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")
_LONGEST_TEXT = 4_000  # characters of a text in a prompt
_MOST_AGENTS = 200  # agents of a run
Planned = TypeVar("Planned", "Task", "Plan")


@dataclass(frozen=True, slots=True)
class Input:
    """A file that an agent reads, by its absolute path."""

    path: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One agent and its task.

    Attributes:
        agent: its name, and that of its workspace.
        role: what it is, in the prompt's first line.
        task: one paragraph.
        task_id: role and a short description.
        responsible, others: what it is responsible for, and what not; "" for the usual words.
        inputs: what it reads besides the task specification.
        after: the agents whose outputs it works on: it is dispatched when they are through.
        form: the extension of its output.
        critical: it is read first, and its failure is told first.
        may_launch: it may launch agents of its own.
        timeout: seconds after which it is stopped; None for never.
    """

    agent: str = ""
    task: str = ""
    task_id: str = ""
    role: str = ""
    responsible: str = ""
    others: str = key("not_responsible", default="")
    inputs: tuple[Input, ...] = ()
    after: tuple[str, ...] = ()
    form: str = key("format", default="md")
    critical: bool = False
    may_launch: bool = False
    timeout: float | None = key("timeout_s", default=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run: what all work on, and who does what.

    Attributes:
        task: what the team completes, in one line.
        tasks: the agents in the order in which their outputs are read.
        scope, requirements, constraints: what stands in the task specification.
        form: the extension of the final output.
        naming: ``plain`` (output.md, status.json) or ``prefixed`` (NAME-output.md).
    """

    task: str = ""
    tasks: tuple[Task, ...] = ()
    scope: str = ""
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    form: str = key("format", default="md")
    naming: str = NAMINGS[0]


def _seconds(value: object) -> float | None:
    found = number(value)
    return found if found is not None and 0 < found < 1e7 else None


_STRICT = Decoder({float: Scalar("a number of seconds", _seconds)}, most=100_000)


def parse_plan(value: Mapping[str, object], root: Path) -> Plan:
    """A plan from an object; relative inputs are those of ``root``.

    Raises:
        Refused: something in it is not what it should be.
    """
    items = value.get("agents")
    if not isinstance(items, list) or not items:
        raise Refused("the plan has no agents: 'agents' must be a list of objects")
    if len(items) > _MOST_AGENTS:
        raise Refused(f"the plan names {len(items)} agents; the limit is {_MOST_AGENTS}")
    tasks = tuple(parse_task(item, number, root) for number, item in enumerate(items, 1))
    read = _strictly(Plan, {**value, "tasks": None}, "the plan")
    if read.form not in FINALS:
        raise Refused(f"the plan's format {read.form!r} is unknown (formats: {', '.join(FINALS)})")
    if read.naming not in NAMINGS:
        raise Refused(
            f"the plan's naming {read.naming!r} is unknown (schemes: {', '.join(NAMINGS)})"
        )
    made = replace(
        read,
        task=_line(read.task),
        tasks=tasks,
        requirements=tuple(map(_line, read.requirements)),
        constraints=tuple(map(_line, read.constraints)),
    )
    check_plan(made)
    return made


def parse_task(item: object, number: int, root: Path) -> Task:
    """One agent of a plan or of a manifest.

    Raises:
        Refused: something in it is not what it should be.
    """
    if not isinstance(item, dict):
        raise Refused(f"agent {number} of the plan is not an object")
    named = item.get("agent")
    name = named if isinstance(named, str) else ""
    _require(name, "agent", f"agent {number}")
    where = f"agent {checked_name(name)}"
    read = _strictly(Task, _with_objects(item), where)
    if re.search(r"\n[ \t]*\n", read.task.strip()):
        raise Refused(f"{where}: the task must be one paragraph")
    if not _EXTENSION.fullmatch(read.form):
        raise Refused(f"{where}: the format {read.form!r} is not a file extension")
    return replace(
        read,
        agent=name,
        task=_line(read.task),
        task_id=checked_name(read.task_id or _task_id(name, read.task.strip()), "task"),
        role=_line(read.role),
        responsible=_line(read.responsible),
        others=_line(read.others),
        inputs=tuple(_absolute(each, where, root) for each in read.inputs),
        after=tuple(checked_name(_line(each)) for each in read.after),
    )


def check_plan(plan: Plan) -> None:
    """See to it that no two agents get into each other's way, and that the order has no circle.

    Source: agent workspaces specification, "Conflict Prevention via Agent-Namespaced Paths".

    Raises:
        Refused: they do, or it has one.
    """
    for what, values in (
        ("agent", [each.agent.lower() for each in plan.tasks]),
        ("task id", [each.task_id for each in plan.tasks]),
    ):
        twice = [value for value, number in Counter(values).items() if number > 1]
        if twice:
            raise Refused(f"two agents of the plan have the {what} {twice[0]!r}")
    after = {each.agent: set(each.after) for each in plan.tasks}
    for name, before in after.items():
        unknown = sorted(before - after.keys())
        if unknown:
            raise Refused(f"agent {name} comes after {unknown[0]!r}, which is not in the plan")
    done: set[str] = set()
    while len(done) < len(after):
        ready = {name for name, before in after.items() if before <= done} - done
        if not ready:
            raise Refused(f"agents wait for each other: {', '.join(sorted(after.keys() - done))}")
        done |= ready


def task_entry(task: Task) -> dict[str, Any]:
    """A task as the manifest keeps it; `task` reads it back."""
    return {
        "agent": task.agent,
        "role": task.role,
        "task": task.task,
        "task_id": task.task_id,
        "responsible": task.responsible,
        "not_responsible": task.others,
        "inputs": [{"path": each.path, "required": each.required} for each in task.inputs],
        "after": list(task.after),
        "format": task.form,
        "critical": task.critical,
        "may_launch": task.may_launch,
        "timeout_s": task.timeout,
    }


def output_name(task: Task, naming: str, stamp: str = "") -> str:
    """What its output is called; with the stamp of a rerun.

    Source: agent workspaces specification, "File Naming Conventions".
    """
    if stamp:
        return f"{task.agent}-output-{stamp}.{task.form}"
    return f"{task.agent}-output.{task.form}" if naming == "prefixed" else f"output.{task.form}"


def status_name(agent: str, naming: str) -> str:
    """What its status file is called."""
    return f"{agent}-status.json" if naming == "prefixed" else "status.json"


def result_paths(place: Layout, task: Task, naming: str, stamp: str = "") -> tuple[Path, Path]:
    """Where its output and its status file stand."""
    own = place.workspace(task.agent)
    return own / output_name(task, naming, stamp), own / status_name(task.agent, naming)


def _task_id(name: str, task: str) -> str:
    """``{role}-{description}`` of the first words of the task."""
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", task) if len(word) > 3][:2]
    return f"{name}-{'-'.join(words) or 'task'}"[:64].rstrip("-.")


def _with_objects(item: dict[str, Any]) -> dict[str, Any]:
    """An agent of a plan, with each input as an object: a path alone is one, too."""
    items = item.get("inputs")
    if not isinstance(items, list):
        return item
    return item | {"inputs": [{"path": e} if isinstance(e, str) else e for e in items]}


def _absolute(item: Input, where: str, root: Path) -> Input:
    _require(item.path, "path", f"{where}, inputs")
    path = os.path.expanduser(_line(item.path))
    return replace(item, path=os.path.normpath(root / path))


def _strictly(kind: type[Planned], value: Mapping[str, object], where: str) -> Planned:
    """A value as a ``kind``; what people write into it goes into prompts as it is.

    Raises:
        Refused: something in it is of another kind, no plain text, or missing.
    """
    odd: list[Odd] = []
    made = _STRICT.decode(kind, value, odd)
    if odd:
        raise Refused(f"{where}: {odd[0].path} must be {odd[0].expected}")
    texts = ((name, each) for name, each in asdict(made).items() if isinstance(each, str))
    for name, text in texts:
        _require(text, name, where, filled=name == "task")
    return made


def _require(text: str, name: str, where: str, *, filled: bool = True) -> None:
    """See to it that a text can stand in a prompt, and is there.

    Raises:
        Refused: it cannot, or is not.
    """
    if filled and not text.strip():
        raise Refused(f"{where}: {name} is missing")
    if len(text) > _LONGEST_TEXT:
        raise Refused(f"{where}: {name} is longer than {_LONGEST_TEXT} characters")
    if "\0" in text:
        raise Refused(f"{where}: {name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(f"{where}: {name} contains an invalid character") from None


def _line(text: str) -> str:
    """A text of one line: no section of a prompt can be begun in it."""
    return " ".join(text.split())


_FENCE = re.compile(r"```[A-Za-z]*\s*\n?|```")
_LONGEST_RETURN = 200  # objects that are tried
_FIRST_LINES = re.compile(r"\A\s*STATUS:[ \t]*(\S+)[^\n]*\n((?:[A-Z_]+:[^\n]*(?:\n|\Z))*)")


def parse_return(said: str) -> tuple[dict[str, object] | None, bool]:
    """The last object with a ``status`` in ``said``, and whether there is prose around it.

    A code fence around it is no prose. The form ``STATUS: DONE`` with lines of ``KEY: value``
    after it is read too.
    """
    found: dict[str, object] | None = None
    rest = said
    decoder = json.JSONDecoder()
    at = said.find("{")
    for _ in range(_LONGEST_RETURN):
        if at < 0:
            break
        try:
            value, end = decoder.raw_decode(said, at)
        except (ValueError, RecursionError):
            at = said.find("{", at + 1)
            continue
        if isinstance(value, dict) and "status" in value and shallow(value):
            found, rest = value, said[:at] + said[end:]
        at = said.find("{", end)
    if found is None:
        return _first_lines(said), False
    return found, bool(_FENCE.sub("", rest).strip())


def _first_lines(said: str) -> dict[str, object] | None:
    match = _FIRST_LINES.match(said)
    if match is None:
        return None
    value: dict[str, object] = {"status": match[1]}
    for line in match[2].splitlines():
        key, _, what = line.partition(":")
        value[key.lower()] = what.strip()
    return value


ORCHESTRATOR = "orchestrator"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = frozenset({SHARED, SCRATCH, ORCHESTRATOR, "integration"})


def _with_article(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def checked_name(name: str, what: str = "agent") -> str:
    """A name that can be a folder's and a file's, everywhere.

    Raises:
        Refused: it is none.
    """
    if not NAME.fullmatch(name) or name.endswith("."):
        raise Refused(
            f"{name!r} is not a valid name of {_with_article(what)}: use letters, digits, '.', '_' and '-', at most 64"
        )
    if what == "agent" and name.lower() in _RESERVED:
        raise Refused(f"{name!r} is a reserved name: choose another name for the agent")
    return name


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of one run. ``root`` is absolute; ``base`` holds the workspaces."""

    root: Path
    base: Path

    @property
    def coord(self) -> Path:
        """What orchestrators tell each other."""
        return self.base / COORD

    @property
    def manifest(self) -> Path:
        """Who is dispatched, and how that stands."""
        return self.coord / "manifest.json"

    @property
    def triage(self) -> Path:
        """What people decided about agents."""
        return self.coord / "triage.json"

    @property
    def conflicts(self) -> Path:
        """Where outputs contradict each other, and what became of it."""
        return self.coord / "conflicts.json"

    @property
    def draft(self) -> Path:
        """The folder in which the final output is prepared."""
        return self.coord / "draft"

    @property
    def spec(self) -> Path:
        """What every agent reads first."""
        return self.base / SHARED / "task-spec.json"

    @property
    def integration(self) -> Path:
        """What only the orchestrator writes."""
        return self.root / "integration"

    def workspace(self, agent: str) -> Path:
        """An agent's folder."""
        return self.base / checked_name(agent)

    def check(self) -> None:
        """See to it that no folder of the run is a symbolic link or something else.

        Raises:
            Refused: one is.
        """
        folders = [self.root, self.base, self.coord, self.base / SHARED, self.integration]
        folders += [self.coord / name for name in ("prompts", "returns", "history", "draft")]
        for folder in folders[1:]:
            require_folder(folder)


def require_folder(folder: Path) -> None:
    """See to it that a folder is one, or is not there yet.

    Raises:
        Refused: something else stands there.
    """
    try:
        found = os.lstat(folder)
    except OSError:
        return
    if not stat.S_ISDIR(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise Refused(f"{folder} is {what}: acp does not write there")


def iso(at: datetime) -> str:
    """A time as it is written: UTC, fine enough to tell who was before whom."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(value: object) -> bytes:
    """JSON for people and machines; what cannot be UTF-8 is escaped."""
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()


TO_WRITE = "(Write this part.)"
