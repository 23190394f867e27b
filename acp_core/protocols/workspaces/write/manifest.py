"""The manifest: who is dispatched, how, and what came of it. Read strictly, changed under the lock.

Source: agent workspaces specification, "File-Based Handoffs". Keys that others added stay.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_core.files.transaction import REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import coord, plan
from acp_core.protocols.workspaces.schema.coord import Dispatch, RunInfo
from acp_core.protocols.workspaces.schema.plan import Plan, Task
from acp_core.protocols.workspaces.write import rebuilt
from acp_core.protocols.workspaces.write.layout import Layout, locked, read_json
from acp_core.protocols.workspaces.write.writing import encode

Object = dict[str, Any]
Entries = dict[str, Object]


@dataclass(slots=True)
class Manifest:
    """A run's manifest as it stood when it was read.

    Attributes:
        place: the run's places.
        value: the whole object; change it, then `write`.
        tasks: the agents' tasks, checked, by name.
    """

    place: Layout
    value: Object
    tasks: dict[str, Task] = field(default_factory=dict)

    @property
    def entries(self) -> Entries:
        """The agents' entries by name, in the order of the manifest."""
        return {entry["agent"]: entry for entry in self.value["agents"]}

    @property
    def info(self) -> RunInfo:
        """What it says of the whole run."""
        return coord.parse(RunInfo, self.value)

    @property
    def naming(self) -> str:
        """How files are called in this run."""
        naming = self.info.naming
        return naming if naming in schema.NAMINGS else schema.NAMINGS[0]

    @property
    def form(self) -> str:
        """The extension of the final output."""
        form = self.info.format
        return form if form in schema.FINALS else schema.FINALS[0]

    @property
    def project(self) -> str:
        """What the team completes."""
        return " ".join(self.info.task.split()) or "the task"

    @property
    def order(self) -> list[str]:
        """In which order outputs are read: as a person said, else the critical ones first."""
        first = [name for name in self.info.order if name in self.tasks]
        rest = sorted(self.tasks, key=lambda name: not self.tasks[name].critical)
        return list(dict.fromkeys([*first, *rest]))

    def write(self) -> Write:
        """The write that puts it in its place."""
        return Write(self.place.manifest, REPLACE, encode(self.value))


def read(place: Layout) -> Manifest:
    """The manifest of a run; for a run whose orchestrator wrote none, one made of its folders.

    Raises:
        Refused: no run stands there, or something in the manifest is not what it should be.
    """
    value = read_json(place.manifest)
    if value is None:
        value = rebuilt.of(scan.scan(place.root, scan.listed(place.root), datetime.now(UTC)))
        if not value["agents"]:
            raise Refused(
                f"{place.root}: no run in this folder (create one with `acp workspaces init`)"
            )
    return parse(place, value)


def parse(place: Layout, value: Object) -> Manifest:
    """A manifest from its object.

    Raises:
        Refused: something in it is not what it should be.
    """
    items = value.get("agents")
    if not isinstance(items, list):
        raise Refused(f"{place.manifest}: 'agents' must be a list")
    tasks: dict[str, Task] = {}
    for number, item in enumerate(items, 1):
        found = plan.task(with_task(item), number, place.root)
        if found.agent in tasks:
            raise Refused(f"{place.manifest}: two entries for {found.agent}")
        tasks[found.agent] = found
    plan.check(Plan("run", tuple(tasks.values())))
    return Manifest(place, copy.deepcopy(value), tasks)


def with_task(item: object) -> object:
    """An entry; one that another orchestrator wrote need not say what the task is."""
    if isinstance(item, dict) and "task" not in item:
        return item | {"task": "Do what the task specification says."}
    return item


def attempt(entry: Object) -> int:
    """Which attempt an entry stands at, from 1."""
    number = coord.parse(Dispatch, entry).attempt
    return number if 0 < number < 10_000 else 1


def is_open(entry: Object) -> bool:
    """Whether it was dispatched, and nobody saw its end."""
    return bool(entry.get("dispatched_at")) and not entry.get("ended_at")


def stamp_of(entry: Object) -> str:
    """The stamp of a rerun, "" for the first attempt."""
    return coord.parse(Dispatch, entry).stamp


def file_name(entry: Object, task: Task) -> str:
    """What its prompt and its return are called, without extension."""
    stamp = stamp_of(entry)
    return f"{task.task_id}-{stamp}" if stamp else task.task_id


def change(place: Layout, agent: str, alter: Callable[[Object], None]) -> None:
    """Change one agent's entry, under the lock.

    Raises:
        Refused: the manifest cannot be read, or does not name the agent.
    """
    with locked(place) as transaction:
        manifest = read(place)
        entry = manifest.entries.get(agent)
        if entry is None:
            raise Refused(f"{place.manifest} does not list {agent}")
        alter(entry)
        transaction.commit(f"record the status of {agent}", [manifest.write()])


def return_file(place: Layout, entry: Object, task: Task) -> Path:
    """Where the object that it returns is kept."""
    return place.coord / "returns" / f"{file_name(entry, task)}.json"


def stored_return(place: Layout, entry: Object, task: Task) -> Path | None:
    """What was kept of what it returned: the object, or a text that holds more than that."""
    own = return_file(place, entry, task)
    return next((each for each in (own, own.with_name(f"{own.stem}.txt")) if each.is_file()), None)


def prompt_file(place: Layout, entry: Object, task: Task) -> Path:
    """Where what it was told is kept."""
    return place.coord / "prompts" / f"{file_name(entry, task)}.md"
