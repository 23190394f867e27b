"""The manifest and what else orchestrators share: read strictly, with what is wrong with it.

Source: agent workspaces specification, "File-Based Handoffs" and "Prompt Template for Subagent
Dispatch". Keys that others added stay. Where an orchestrator kept no manifest, or it was lost, one is
made of the workspaces and the prompts.
"""

from __future__ import annotations

import copy
import json
import os
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_core.files import transaction
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import Record, shallow
from acp_core.files.transaction import JOURNAL, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import (
    NAME,
    Agent,
    Dispatch,
    Layout,
    Plan,
    Prompt,
    Run,
    RunInfo,
    Task,
    checked_name,
    encode,
    iso,
)

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
        return schema.decode_object(RunInfo, self.value)

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


def read_manifest(place: Layout) -> Manifest:
    """The manifest of a run; for a run whose orchestrator wrote none, one made of its folders.

    Raises:
        Refused: no run stands there, or something in the manifest is not what it should be.
    """
    value = read_json(place.manifest)
    if value is None:
        value = manifest_from_folders(
            scan.scan(place.root, scan.listed(place.root), datetime.now(UTC))
        )
        if not value["agents"]:
            raise Refused(
                f"{place.root}: no run in this folder (create one with `acp workspaces init`)"
            )
    return parse_manifest(place, value)


def parse_manifest(place: Layout, value: Object) -> Manifest:
    """A manifest from its object.

    Raises:
        Refused: something in it is not what it should be.
    """
    items = value.get("agents")
    if not isinstance(items, list):
        raise Refused(f"{place.manifest}: 'agents' must be a list")
    tasks: dict[str, Task] = {}
    for number, item in enumerate(items, 1):
        found = schema.parse_task(entry_with_task(item), number, place.root)
        if found.agent in tasks:
            raise Refused(f"{place.manifest}: two entries for {found.agent}")
        tasks[found.agent] = found
    schema.check_plan(Plan("run", tuple(tasks.values())))
    return Manifest(place, copy.deepcopy(value), tasks)


def entry_with_task(item: object) -> object:
    """An entry; one that another orchestrator wrote need not say what the task is."""
    if isinstance(item, dict) and "task" not in item:
        return item | {"task": "Do what the task specification says."}
    return item


def attempt_of(entry: Object) -> int:
    """Which attempt an entry stands at, from 1."""
    number = schema.decode_object(Dispatch, entry).attempt
    return number if 0 < number < 10_000 else 1


def is_running(entry: Object) -> bool:
    """Whether it was dispatched, and nobody saw its end."""
    return bool(entry.get("dispatched_at")) and not entry.get("ended_at")


def stamp_of(entry: Object) -> str:
    """The stamp of a rerun, "" for the first attempt."""
    return schema.decode_object(Dispatch, entry).stamp


def file_name(entry: Object, task: Task) -> str:
    """What its prompt and its return are called, without extension."""
    stamp = stamp_of(entry)
    return f"{task.task_id}-{stamp}" if stamp else task.task_id


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


_TASK = re.compile(r"^YOUR TASK:[ \t]*\n(.*?)(?=\n[ \t]*\n|^[A-Z][A-Z ]+:|\Z)", re.M | re.S)

_OUTPUT = re.compile(r"^Write your primary output to:[ \t]*(\S[^\n]*?)[ \t]*$", re.M)

_INPUTS = re.compile(r"^INPUTS:[ \t]*\n(.*?)(?=^[A-Z][A-Z ]+:|\Z)", re.M | re.S)

_STAMPED = re.compile(r"-output-(\d{8}-\d{4})\.")

_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")

_LONGEST_TASK = 4_000  # characters of a task


def manifest_from_folders(run: Run) -> Object:
    """A manifest of the agents that have a workspace.

    Whoever was dispatched, by a prompt or by what it wrote, is not dispatched again by itself.
    """
    taken: set[str] = set()
    entries = []
    for agent in run.agents:
        if agent.folder is not None and _is_name(agent.name):
            entries.append(_entry(agent, run, taken))
            taken.add(entries[-1]["task_id"])
    begun = {each["agent"]: (each["dispatched_at"] or "~", each["agent"]) for each in entries}
    for each in entries:  # whoever began later was read by nobody: no circle
        mine = begun[each["agent"]]
        each["after"] = [name for name in each["after"] if name in begun and begun[name] < mine]
    return {"run_id": None, "agents": entries}


def agents_read_before(agent: Agent, run: Run) -> list[str]:
    """The agents whose outputs its prompt lists among its inputs."""
    found = _INPUTS.search(agent.prompt.text) if agent.prompt else None
    others = [each.name for each in run.agents if each.name != agent.name]
    return [name for name in others if found and f"/{run.base.name}/{name}/" in found[1]]


def _is_name(name: str) -> bool:
    try:
        return bool(checked_name(name))
    except Refused:
        return False


def _entry(agent: Agent, run: Run, taken: set[str]) -> Object:
    own = agent.task_id
    task_id = own if NAME.fullmatch(own) and not own.endswith(".") and own not in taken else ""
    kept = (run.base / schema.COORD / "prompts").is_dir()
    begun = agent.prompt is not None or bool(agent.files) or not kept
    over = agent.report.completed_at if agent.outcome else None
    if agent.outcome and agent.status and over is None:
        over = agent.status.file.changed
    return {
        "agent": agent.name,
        "task_id": task_id or agent.name,
        "after": agents_read_before(agent, run),
        "attempt": agent.attempt,
        "dispatched_at": iso(_began(agent, run)) if begun else None,
        "ended_at": iso(over) if over else None,
        "host": "?",
        **(_task_in(agent.prompt) if agent.prompt else {}),
    }


def _began(agent: Agent, run: Run) -> Any:
    return agent.prompt.file.changed if agent.prompt else agent.active or run.now


def _task_in(prompt: Prompt) -> Object:
    """What a prompt says of its agent's task and output."""
    task, output = _TASK.search(prompt.text), _OUTPUT.search(prompt.text)
    made: Object = {"prompt_file": str(prompt.file.path)}
    text = " ".join(task[1].split())[:_LONGEST_TASK] if task else ""
    if text and "\0" not in text:
        made["task"] = text
    if output is not None:
        path, stamp = Path(output[1]), _STAMPED.search(output[1])
        form = path.suffix.removeprefix(".")
        made |= {"output": output[1], "format": form} if _EXTENSION.fullmatch(form) else {}
        made |= {"stamp": stamp[1]} if stamp else {}
    return made


def layout(folder: str | os.PathLike[str]) -> Layout:
    """The places of the run in ``folder``.

    Raises:
        Refused: one of its folders is a symbolic link.
    """
    root = Path(os.path.realpath(folder))
    found = Layout(root, scan.workspaces_of(root))
    found.check()
    return found


def read_json(path: Path) -> Object | None:
    """An object that orchestrators share; None where there is none.

    Raises:
        Refused: something else stands there: it is not overwritten.
    """
    if not os.path.lexists(path):
        return None
    try:
        data = read_bounded(path, scan.LIMIT)
        if path.is_symlink():
            raise Refused(f"{path} is a symbolic link")
        value = json.loads(data)
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not valid JSON: correct it, or move it away") from None
    if not isinstance(value, dict) or not shallow(value):
        raise Refused(f"{path} is not a JSON object: correct it, or move it away")
    return value


def read_bytes(path: Path) -> bytes:
    """What stands in a file; b"" where nothing does or it cannot be read."""
    try:
        return b"" if path.is_symlink() else read_bounded(path, scan.LIMIT)
    except Unreadable:
        return b""


_LISTS = (("triage", "decisions"), ("conflicts", "conflicts"))


def why_unreadable(record: Record, run: Run) -> str:
    """Why a file that orchestrators share cannot be relied on; "" where it can, or is so young
    that it may still be in the middle of being written."""
    if record.value is None:
        being_written = state.is_young(record, run) and not record.file.link
        return "" if being_written else record.problem or "cannot be read"
    shared = {"triage": run.triage, "conflicts": run.conflicts}
    for name, key in _LISTS:
        if record is shared[name] and not isinstance(record.value.get(key, []), list):
            return f"has no list of {key}"
    return ""


def manifest_problem(run: Run) -> str:
    """What in the manifest is not what it should be, "" where nothing is."""
    if run.manifest is None or run.manifest.value is None:
        return ""
    try:
        parse_manifest(Layout(run.root, run.base), run.manifest.value)
    except Refused as error:
        said = clean_line(str(error), 1_000)
        return said.removeprefix(f"{clean_line(str(run.manifest.file.path), 1_000)}: ")
    return ""


def is_manifest_lost(run: Run) -> bool:
    """A run was prepared here, and its manifest is not there any more.

    Empty folders are no run, nor is a preparation that was interrupted: finishing it writes the
    manifest.
    """
    coord = run.base / schema.COORD
    home = os.path.relpath(coord, run.root)
    made = any((coord / name).is_dir() for name in ("prompts", "returns"))
    begun = run.spec or run.prompts or run.returns or any(agent.files for agent in run.agents)
    return (
        made
        and bool(begun)
        and run.manifest is None
        and not os.path.lexists(coord / "manifest.json")
        and not transaction.will_write(run.root, home, f"{home}/manifest.json")
    )


def journal_fault(run: Run) -> str:
    """Why an interrupted writing cannot be finished, "" where none was, or it can."""
    return transaction.fault(run.root, os.path.relpath(run.base / schema.COORD, run.root))


def interrupted_write(run: Run) -> transaction.Interrupted | None:
    """A writing that was begun, and not lately: the next act finishes it."""
    home = os.path.relpath(run.base / schema.COORD, run.root)
    file = next((each for each in run.files if each.name == f"{home}/{JOURNAL}"), None)
    if file is None or (run.now - file.changed).total_seconds() < schema.TORN_SECONDS:
        return None
    return transaction.interrupted(run.root, home)


def read_run(place: Layout, now: datetime) -> Run:
    """The run as it stands now."""
    return scan.scan(place.root, scan.listed(place.root), now)
