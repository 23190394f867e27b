"""Who is to do what: the plan of a run, as people write it and as the manifest keeps it.

Source: agent workspaces specification, "Prompt Template for Subagent Dispatch". Everything is
checked here, whoever wrote it: what follows may rely on it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from acp_core.files.decode import Decoder, Odd, Scalar, key, number
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces.schema import FINALS, NAMINGS
from acp_core.protocols.workspaces.write.layout import Layout, checked_name

_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")
_LONGEST = 4_000  # characters of a text in a prompt
_MOST = 200  # agents of a run
Object = dict[str, Any]
T = TypeVar("T", "Task", "Plan")


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


_DECODER = Decoder({float: Scalar("a number of seconds", _seconds)}, most=100_000)


def parse(value: Mapping[str, object], root: Path) -> Plan:
    """A plan from an object; relative inputs are those of ``root``.

    Raises:
        Refused: something in it is not what it should be.
    """
    items = value.get("agents")
    if not isinstance(items, list) or not items:
        raise Refused("the plan has no agents: 'agents' must be a list of objects")
    if len(items) > _MOST:
        raise Refused(f"the plan names {len(items)} agents; the limit is {_MOST}")
    tasks = tuple(task(item, number, root) for number, item in enumerate(items, 1))
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
    check(made)
    return made


def task(item: object, number: int, root: Path) -> Task:
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


def check(plan: Plan) -> None:
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


def item(task: Task) -> Object:
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


def paths(place: Layout, task: Task, naming: str, stamp: str = "") -> tuple[Path, Path]:
    """Where its output and its status file stand."""
    own = place.workspace(task.agent)
    return own / output_name(task, naming, stamp), own / status_name(task.agent, naming)


def _task_id(name: str, task: str) -> str:
    """``{role}-{description}`` of the first words of the task."""
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", task) if len(word) > 3][:2]
    return f"{name}-{'-'.join(words) or 'task'}"[:64].rstrip("-.")


def _with_objects(item: Object) -> Object:
    """An agent of a plan, with each input as an object: a path alone is one, too."""
    items = item.get("inputs")
    if not isinstance(items, list):
        return item
    return item | {"inputs": [{"path": e} if isinstance(e, str) else e for e in items]}


def _absolute(item: Input, where: str, root: Path) -> Input:
    _require(item.path, "path", f"{where}, inputs")
    path = os.path.expanduser(_line(item.path))
    return replace(item, path=os.path.normpath(root / path))


def _strictly(kind: type[T], value: Mapping[str, object], where: str) -> T:
    """A value as a ``kind``; what people write into it goes into prompts as it is.

    Raises:
        Refused: something in it is of another kind, no plain text, or missing.
    """
    odd: list[Odd] = []
    made = _DECODER.decode(kind, value, odd)
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
    if len(text) > _LONGEST:
        raise Refused(f"{where}: {name} is longer than {_LONGEST} characters")
    if "\0" in text:
        raise Refused(f"{where}: {name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(f"{where}: {name} contains an invalid character") from None


def _line(text: str) -> str:
    """A text of one line: no section of a prompt can be begun in it."""
    return " ".join(text.split())
