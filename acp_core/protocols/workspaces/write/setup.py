"""The folders, the task specification and the manifest of a run: prepared, added to, and repaired.

A run is prepared before anything starts; an agent that is added does what another one left open, or
what was forgotten. What cannot be read is moved aside, and made anew of what can: the manifest, the
workspaces and the prompts. Source: agent workspaces specification, "Directory Structure for Agent
Workspaces" ("creates `agent-workspaces/` and the per-agent subdirectories before dispatching") and
"File-Based Handoffs".
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic, transaction
from acp_core.files.records import Record
from acp_core.files.transaction import CREATE, JOURNAL, MOVE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import manifest as manifest_module
from acp_core.protocols.workspaces.read.manifest import (
    entry_with_task,
    is_manifest_lost,
    layout,
    manifest_from_folders,
    manifest_problem,
    parse_manifest,
    read_manifest,
    read_run,
    why_unreadable,
)
from acp_core.protocols.workspaces.schema import CREATE_ACT as CREATE_RUN
from acp_core.protocols.workspaces.schema import (
    REPAIR_ACT,
    Agent,
    Dispatch,
    Layout,
    Plan,
    Run,
    RunInfo,
    Task,
    encode,
    iso,
    require_folder,
)
from acp_core.protocols.workspaces.write import dispatch
from acp_core.protocols.workspaces.write.dispatch import free_path
from acp_core.protocols.workspaces.write.step import (
    Step,
    commit_step,
    locked,
    require_shallow,
    require_unobstructed,
)


def plan_run(folder: str | os.PathLike[str], plan: Plan, now: datetime) -> Step:
    """What preparing a run would write. The manifest comes last: then the run is prepared.

    Raises:
        Refused: a run is prepared there already, or something is in the way.
    """
    place = layout(folder)
    if os.path.lexists(place.manifest):
        raise Refused(f"{place.root}: this folder already contains a run")
    require_unobstructed(place, CREATE_RUN)
    require_shallow(place.root, [each.agent for each in plan.tasks if each.may_launch])
    folders = [place.base, place.coord, place.base / schema.SHARED]
    folders += [place.coord / name for name in ("prompts", "returns", "history")]
    own = [place.workspace(each.agent) for each in plan.tasks]
    for workspace in own:
        require_folder(workspace)
    warnings = [f"{each.name} already contains files" for each in own if _holds(each)]
    missing = [
        f"{each.agent}: the required input {wanted.path} does not exist yet"
        for each in plan.tasks
        for wanted in each.inputs
        if wanted.required and not os.path.isfile(wanted.path)
    ]
    writes = []
    notes: tuple[str, ...] = ()
    if not os.path.lexists(place.spec):
        writes.append(Write(place.spec, CREATE, encode(specification(plan))))
    else:
        notes = (f"{place.spec} is kept unchanged",)
    writes.append(Write(place.manifest, CREATE, encode(_manifest(place, plan, now))))
    names = ", ".join(each.agent for each in plan.tasks)
    sentence = f"Prepare a run of {names} in {place.root}."
    made = tuple(each for each in (*folders, *own) if not each.is_dir())
    return Step(sentence, tuple(writes), (*warnings, *missing), notes, made)


def create_run(folder: str | os.PathLike[str], plan: Plan, now: datetime) -> Step:
    """Prepare a run.

    Raises:
        Refused: as `prepare`.
        OSError: something cannot be written.
    """
    step = plan_run(folder, plan, now)
    place = layout(folder)
    atomic.shared_folder(place.coord)
    with locked(place) as transaction:
        step = plan_run(folder, plan, now)
        commit_step(transaction, step)
    return step


def specification(plan: Plan) -> dict[str, object]:
    """What every agent reads first: scope, requirements, constraints, output format."""
    return {
        "task": plan.task,
        "scope": plan.scope or plan.task,
        "requirements": list(plan.requirements),
        "constraints": list(plan.constraints),
        "output_format": plan.form,
    }


def _manifest(place: Layout, plan: Plan, now: datetime) -> dict[str, object]:
    return {
        "run_id": now.strftime("%Y%m%d-%H%M%S"),
        "created_at": iso(now),
        "task": plan.task,
        "format": plan.form,
        "naming": plan.naming,
        "agents": [entry(place, task, plan.naming) for task in plan.tasks],
    }


def entry(place: Layout, task: Task, naming: str) -> dict[str, object]:
    """An agent of the manifest before it is dispatched."""
    output, status = schema.result_paths(place, task, naming)
    return schema.task_entry(task) | {
        "output": str(output),
        "status_file": str(status),
        "required": True,
        "attempt": 1,
        "dispatched_at": None,
        "prompt_file": None,
        "ended_at": None,
    }


def _holds(folder: Path) -> bool:
    try:
        return any(name != ".gitkeep" for name in os.listdir(folder))
    except OSError:
        return False


_LONGEST_NAME = 1_500  # characters of a task that is made of what was said


def add_agents(place: Layout, wish: Mapping[str, object], of: str = "") -> Step:
    """What adding an agent would write. It begins with the next dispatch.

    Args:
        place: the run.
        wish: the agent as a plan has it; with ``of`` its name and its task may be left out.
        of: the agent whose part is missing: what it wrote is read, and its errors and notes say
            what is to be done.

    Raises:
        Refused: the run is integrated, the agent is not what it should be, or there is one.
    """
    manifest, run = read_manifest(place), manifest_module.read_run(place, utc_now())
    if state.of_run(run).startswith("integrated"):
        raise Refused("the run is already integrated: prepare a new run")
    value = dict(wish)
    if of:
        found = dispatch.find_agent(run, of)
        value["agent"] = value.get("agent") or free_name(run, of)
        value["task"] = value.get("task") or missing_agents(found)
        if not value["task"]:
            raise Refused(
                f"{of} does not report what is missing: give the new agent a task (--task)"
            )
        inputs = value.get("inputs")
        value["inputs"] = [*schema.items_of(inputs), *_read_first(found)]
    task = schema.parse_task(value, len(manifest.tasks) + 1, place.root)
    schema.check_plan(Plan("run", (*manifest.tasks.values(), task)))
    require_shallow(place.root, [task.agent] if task.may_launch else [])
    own = place.workspace(task.agent)
    require_folder(own)
    manifest.value["agents"].append(entry(place, task, manifest.naming))
    folders = () if own.is_dir() else (own,)
    late = run.conflicts is not None or bool(run.drafts)
    warnings = (
        ("the outputs have to be compared again when the new agent has finished",) if late else ()
    )
    return Step(f"Add {task.agent}: {task.task}", (manifest.write(),), warnings, folders=folders)


def free_name(run: Run, of: str) -> str:
    """A name for the one who does what another left open."""
    taken = {agent.name for agent in run.agents}
    name, number = f"{of}-rest", 1
    while name in taken:
        number += 1
        name = f"{of}-rest{number}"
    return name


def missing_agents(agent: Agent) -> str:
    """What an agent says is missing, as the task of another: its errors, else its notes."""
    errors = agent.errors or [agent.answer.notes or agent.report.notes]
    text = " ".join(" ".join(errors).split())[:_LONGEST_NAME]
    return f"Do what {agent.name} left open: {text}" if text else ""


def _read_first(agent: Agent) -> list[object]:
    return [
        {"path": str(each.path), "required": False}
        for each in agent.results
        if each.file is not None and each.owner == agent.name
    ]


Object = dict[str, Any]


class _Damage(NamedTuple):
    """What is to be mended: files that are moved aside, and what is written in their places."""

    aside: tuple[Path, ...] = ()
    manifest: Object | None = None
    specification: Object | None = None


def plan_repair(place: Layout) -> Step:
    """What mending would write.

    Raises:
        Refused: nothing is to be mended, or acp cannot mend it.
    """
    run = _settled(place)
    require_unobstructed(place, REPAIR_ACT, run)
    damage = _damage(place, run)
    parts = [f"move {each.name} aside" for each in damage.aside]
    parts += ["rebuild the manifest"] if damage.manifest else []
    parts += ["rebuild the task specification"] if damage.specification else []
    home = os.path.relpath(place.coord, place.root)
    if transaction.fault(place.root, home):
        parts.insert(0, f"move {JOURNAL} aside")
    elif os.path.lexists(place.coord / JOURNAL):
        parts.insert(0, "finish what was interrupted")
    if not parts:
        young = [clean_line(each.file.name) for each in _being_written(run)]
        wait = f"{', '.join(young)} may still be being written: repair again in a moment"
        raise Refused(wait if young else f"nothing to repair in {place.root}")
    items = damage.manifest["agents"] if damage.manifest else []
    lost = [
        f"the task of {each['agent']} is lost: add it to the manifest"
        for each in items
        if "task" not in each and not each.get("dispatched_at")
    ]
    return Step(f"Repair the run: {', '.join(parts)}.", _writes(place, damage), tuple(lost))


def repair_run(place: Layout) -> Step:
    """Mend a run, under its lock.

    What is moved aside is moved first: whoever is interrupted in between goes on from there.

    Raises:
        Refused: as `plan`.
        OSError: something cannot be written.
    """
    step = plan_repair(place)
    home = os.path.relpath(place.coord, place.root)
    with transaction.lock(place.root, home) as held:
        if transaction.fault(place.root, home):
            _rename(place.coord / JOURNAL, _target(place, place.coord / JOURNAL))
        held.recover()
        run = read_run(place, utc_now())
        writes = _writes(place, _damage(place, run))
        for verb in (MOVE, CREATE):
            chosen = tuple(each for each in writes if each.verb == verb)
            commit_step(held, Step(step.sentence, chosen))
    return step


def _settled(place: Layout) -> Run:
    """The run, read once more where a file that says nothing may still be in the middle of a write."""
    run = read_run(place, utc_now())
    young = _being_written(run)
    if not young:
        return run
    ages = [(run.now - each.file.changed).total_seconds() for each in young]
    time.sleep(min(schema.TORN_SECONDS, schema.TORN_SECONDS - min(ages)))
    return read_run(place, utc_now())


def _being_written(run: Run) -> list[Record]:
    """Files of the orchestrators that cannot be read, and are too young to count as broken."""
    return [
        each
        for each in run.coordination
        if each.value is None and state.is_young(each, run) and not each.file.link
    ]


def _damage(place: Layout, run: Run) -> _Damage:
    aside = [record.file.path for record in run.coordination if why_unreadable(record, run)]
    if run.manifest is not None and manifest_problem(run):
        aside.append(run.manifest.file.path)
    anew = place.manifest in aside or is_manifest_lost(run)
    value = _mended(place, run) if anew else None
    known = value or schema.value_of(run.manifest) or None
    lacks = known is not None and run.spec is None and not run.cut
    return _Damage(tuple(aside), value, _specification(known) if lacks and known else None)


def _writes(place: Layout, damage: _Damage) -> tuple[Write, ...]:
    made = [Write(_target(place, path), MOVE, source=path) for path in damage.aside]
    if damage.manifest is not None:
        made.append(Write(place.manifest, CREATE, encode(damage.manifest)))
    if damage.specification is not None:
        made.append(Write(place.spec, CREATE, encode(damage.specification)))
    return tuple(made)


def _target(place: Layout, path: Path) -> Path:
    return free_path(place.coord / schema.HISTORY / "damaged" / path.name)


def _rename(path: Path, target: Path) -> None:
    atomic.shared_folder(target.parent)
    path.rename(target)
    for folder in (target.parent, path.parent):
        atomic.sync_folder(str(folder))


def _mended(place: Layout, run: Run) -> Object:
    """The manifest with what of it can be used, and whoever it lacks as the folders tell of them."""
    fresh = manifest_from_folders(run)
    value = schema.value_of(run.manifest)
    entries: dict[str, Object] = {}
    tasks: set[str] = set()
    for item in [*schema.items_of(value.get("agents")), *fresh["agents"]]:
        task = _task_of(item, place.root)
        if task and task.agent.lower() not in entries and task.task_id not in tasks:
            entries[task.agent.lower()] = dict(item)
            tasks.add(task.task_id)
    known = {each["agent"] for each in entries.values()}
    for each in entries.values():
        each["after"] = [
            name for name in schema.decode_object(Dispatch, each).after if name in known
        ]
    made = {**value, "agents": list(entries.values())}
    try:
        parse_manifest(place, made)
    except Refused:
        return fresh
    return made


def _task_of(item: object, root: Path) -> schema.Task | None:
    try:
        return schema.parse_task(entry_with_task(item), 1, root)
    except Refused:
        return None


def _specification(manifest: Object) -> Object:
    """What every agent reads first, as far as the manifest says it."""
    task = schema.decode_object(RunInfo, manifest).task or "the task"
    form = manifest.get("format")
    return {
        "task": task,
        "scope": task,
        "requirements": [],
        "constraints": [],
        "output_format": form if form in schema.FINALS else schema.FINALS[0],
    }
