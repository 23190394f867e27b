"""Who is to do what: the plan of a run, as people write it and as the manifest keeps it.

Source: agent workspaces specification, "Prompt Template for Subagent Dispatch". Everything is
checked here, whoever wrote it: what follows may rely on it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_core.protocols.workspaces.schema import FINALS, NAMINGS
from acp_core.protocols.workspaces.write import Refused
from acp_core.protocols.workspaces.write.layout import Layout, checked_name

_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")
_LONGEST = 4_000  # characters of a text in a prompt
_MOST = 200  # agents of a run
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Input:
    """A file that an agent reads, by its absolute path."""

    path: str
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

    agent: str
    task: str
    task_id: str
    role: str = ""
    responsible: str = ""
    others: str = ""
    inputs: tuple[Input, ...] = ()
    after: tuple[str, ...] = ()
    form: str = "md"
    critical: bool = False
    may_launch: bool = False
    timeout: float | None = None


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

    task: str
    tasks: tuple[Task, ...]
    scope: str = ""
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    form: str = "md"
    naming: str = "plain"


def parse(value: Mapping[str, object], root: Path) -> Plan:
    """A plan from an object; relative inputs are those of ``root``.

    Raises:
        Refused: something in it is not what it should be.
    """
    items = value.get("agents")
    if not isinstance(items, list) or not items:
        raise Refused("the plan names no agents: 'agents' must be a list of objects")
    if len(items) > _MOST:
        raise Refused(f"the plan names {len(items)} agents; {_MOST} is the most")
    tasks = tuple(task(item, number, root) for number, item in enumerate(items, 1))
    form = _text(value, "format", "the plan", "md")
    naming = _text(value, "naming", "the plan", NAMINGS[0])
    if form not in FINALS:
        raise Refused(f"the plan's format {form!r} is none of {', '.join(FINALS)}")
    if naming not in NAMINGS:
        raise Refused(f"the plan's naming {naming!r} is none of {', '.join(NAMINGS)}")
    made = Plan(
        task=_line(value, "task", "the plan", wanted=True),
        tasks=tasks,
        scope=_text(value, "scope", "the plan"),
        requirements=_texts(value, "requirements", "the plan"),
        constraints=_texts(value, "constraints", "the plan"),
        form=form,
        naming=naming,
    )
    check(made)
    return made


def task(item: object, number: int, root: Path) -> Task:
    """One agent of a plan or of a manifest.

    Raises:
        Refused: something in it is not what it should be.
    """
    if not isinstance(item, dict):
        raise Refused(f"agent {number} of the plan is no object")
    name = checked_name(_text(item, "agent", f"agent {number}", wanted=True))
    where = f"agent {name}"
    told = _text(item, "task", where, wanted=True).strip()
    if re.search(r"\n[ \t]*\n", told):
        raise Refused(f"{where}: the task must be one paragraph")
    form = _text(item, "format", where, "md")
    if not _EXTENSION.fullmatch(form):
        raise Refused(f"{where}: the format {form!r} is no file extension")
    timeout = item.get("timeout_s")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e7
    ):
        raise Refused(f"{where}: timeout_s must be a number of seconds")
    return Task(
        agent=name,
        task=" ".join(told.split()),
        task_id=checked_name(_text(item, "task_id", where) or _task_id(name, told), "task"),
        role=_line(item, "role", where),
        responsible=_line(item, "responsible", where),
        others=_line(item, "not_responsible", where),
        inputs=_inputs(item, where, root),
        after=tuple(checked_name(each) for each in _texts(item, "after", where)),
        form=form,
        critical=_switch(item, "critical", where),
        may_launch=_switch(item, "may_launch", where),
        timeout=float(timeout) if timeout is not None else None,
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
            raise Refused(f"agent {name} comes after {unknown[0]!r}, who is not in the plan")
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


def _task_id(name: str, told: str) -> str:
    """``{role}-{description}`` of the first words of the task."""
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", told) if len(word) > 3][:2]
    return f"{name}-{'-'.join(words) or 'task'}"[:64].rstrip("-.")


def _inputs(item: Object, where: str, root: Path) -> tuple[Input, ...]:
    found = []
    items = item.get("inputs", [])
    if not isinstance(items, list):
        raise Refused(f"{where}: inputs must be a list")
    for each in items:
        one = {"path": each} if isinstance(each, str) else each
        if not isinstance(one, dict):
            raise Refused(f"{where}: an input must be a path, or an object with a path")
        path = _line(one, "path", f"{where}, inputs", wanted=True)
        required = one.get("required", True)
        if not isinstance(required, bool):
            raise Refused(f"{where}: 'required' of an input must be true or false")
        found.append(Input(os.path.normpath(root / os.path.expanduser(path)), required))
    return tuple(found)


def _text(
    item: Mapping[str, object], key: str, where: str, default: str = "", *, wanted: bool = False
) -> str:
    value = item.get(key, default)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise Refused(f"{where}: {key} must be a text")
    if wanted and not value.strip():
        raise Refused(f"{where}: {key} is missing")
    if len(value) > _LONGEST:
        raise Refused(f"{where}: {key} is longer than {_LONGEST} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(f"{where}: {key} holds what is no character") from None
    if "\0" in value:
        raise Refused(f"{where}: {key} holds a NUL character")
    return value


def _line(item: Mapping[str, object], key: str, where: str, *, wanted: bool = False) -> str:
    """A text of one line: no section of a prompt can be begun in it."""
    return " ".join(_text(item, key, where, wanted=wanted).split())


def _texts(item: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    value = item.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise Refused(f"{where}: {key} must be a list of texts")
    return tuple(" ".join(each.split()) for each in value)


def _switch(item: Object, key: str, where: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise Refused(f"{where}: {key} must be true or false")
    return value
