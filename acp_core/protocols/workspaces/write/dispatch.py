"""Dispatching: who may begin now, what each is told, and what is written before it begins.

Source: agent workspaces specification, "File-Based Handoffs" and "Timestamped Outputs".
"""

from __future__ import annotations

import os
import platform
from datetime import datetime, timedelta
from pathlib import Path

from acp_core.files.transaction import MOVE, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import prompts, schema, state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Agent, Run, coord
from acp_core.protocols.workspaces.schema import plan as planning
from acp_core.protocols.workspaces.schema.coord import Dispatch
from acp_core.protocols.workspaces.schema.plan import Task
from acp_core.protocols.workspaces.write import levels
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, require_folder
from acp_core.protocols.workspaces.write.manifest import Manifest, Object
from acp_core.protocols.workspaces.write.writing import Step, iso


def here() -> str:
    """This machine, as entries of the manifest name it."""
    return platform.node() or "?"


def read_run(place: Layout, now: datetime) -> Run:
    """The run as it stands now."""
    return scan.scan(place.root, scan.listed(place.root), now)


def waiting(manifest: Manifest, run: Run) -> list[str]:
    """Who is to be dispatched, ready or not: never dispatched, or to be run once more."""
    agents = {agent.name: agent for agent in run.agents}
    return [
        name for name, entry in manifest.entries.items() if _is_wanted(entry, agents.get(name), run)
    ]


def _is_wanted(entry: Object, agent: Agent | None, run: Run) -> bool:
    if agent is not None and agent.decision == "rerun":
        return True
    if agent is not None and agent.decision in ("gap", "skip", "orchestrator-does"):
        return False
    ended = agent is not None and agent.status is not None
    return not entry.get("dispatched_at") and not ended


def obstacle(manifest: Manifest, name: str, run: Run) -> str:
    """What an agent must wait for, "" where it may begin.

    An earlier agent is through when it has a status that may be used; one that was given up on
    holds nobody back.
    """
    agents = {agent.name: agent for agent in run.agents}
    for other in manifest.tasks[name].after:
        before = agents.get(other)
        if before is None or not before.outcome:
            if before is None or before.decision not in ("gap", "orchestrator-does"):
                return f"is waiting for {other}"
        elif state.undecided(before, run):
            return f"is waiting for your decision on {other}"
        elif before.decision == "rerun":
            return f"is waiting for {other}, which will rerun"
    return ""


def begin(manifest: Manifest, name: str, run: Run, now: datetime) -> Step:
    """What is written when an agent is dispatched: its prompt, then its entry; the manifest is changed.

    A status and a return of an earlier attempt are moved away before.

    Raises:
        Refused: its prompt cannot be made, a required input is missing, or it may launch agents
            where none may.
    """
    place, entry, task = manifest.place, manifest.entries[name], manifest.tasks[name]
    levels.require(place.root, [name] if task.may_launch else [])
    own = place.workspace(name)
    require_folder(own)
    if not place.spec.is_file():
        raise Refused(f"{place.spec} is missing: write it before you dispatch")
    agent = next((each for each in run.agents if each.name == name), None)
    writes = []
    if agent is not None and agent.decision == "rerun":
        writes += _put_away(manifest, agent)
        number = manifests.attempt(entry) + 1
        entry |= {"attempt": number, "stamp": _stamp(manifest, task, now)}
    output, status = planning.paths(place, task, manifest.naming, manifests.stamp_of(entry))
    for path in (output, status):
        if path.is_symlink():
            raise Refused(f"{path} is a symbolic link: acp does not dispatch it")
    dispatch = coord.parse(Dispatch, entry)
    text = prompts.render(
        prompts.Dispatch(
            task,
            len(manifest.tasks),
            manifest.project,
            inputs(manifest, task, run),
            output,
            status,
            task.others or _others(manifest, task),
            dispatch.feedback,
            dispatch.continue_from,
        )
    )
    path = manifests.prompt_file(place, entry, task)
    entry |= {
        "output": str(output),
        "status_file": str(status),
        "prompt_file": str(path),
        "dispatched_at": iso(now),
        "ended_at": None,
        "exit": None,
        "outside": [],
        "host": here(),
    }
    writes.append(Write(path, REPLACE, text.encode()))
    writes.append(manifest.write())
    sentence = f"Dispatch {name} (attempt {manifests.attempt(entry)})."
    return Step(sentence, tuple(writes), folders=() if own.is_dir() else (own,))


def inputs(manifest: Manifest, task: Task, run: Run) -> tuple[tuple[str, bool], ...]:
    """What an agent reads: the task specification, its inputs, and what those before it wrote.

    Raises:
        Refused: something that is required is not there.
    """
    found = {str(manifest.place.spec): True}
    found |= {each.path: each.required for each in task.inputs}
    for other in task.after:
        agent = next((each for each in run.agents if each.name == other), None)
        listed = agent.results if agent else ()
        for each in listed:
            inside = each.file is not None and each.owner == other and each.path is not None
            if inside and agent is not None and agent.decision != "skip":
                found[str(each.path)] = True
    for path, required in found.items():
        if required and not os.path.isfile(path):
            raise Refused(f"{task.agent}: the required input {path} does not exist")
        if not schema.is_one_line(path):
            raise Refused(f"{task.agent}: the path of an input spans several lines")
    return tuple(found.items())


def _others(manifest: Manifest, task: Task) -> str:
    """What the others do. Who works after somebody need not know it: only tasks are named."""
    tasks = [each.task for each in manifest.tasks.values() if each.agent != task.agent]
    short = [each if len(each) <= 120 else f"{each[:119]}…" for each in tasks[:10]]
    return "; ".join(each.rstrip(".") for each in short) or "anything else"


def _put_away(manifest: Manifest, agent: Agent) -> list[Write]:
    """The status and the return of the attempt that ended, moved into the history."""
    entry, task = manifest.entries[agent.name], manifest.tasks[agent.name]
    history = manifest.place.coord / "history" / agent.name / str(manifests.attempt(entry))
    files = [record.file.path for record in agent.records]
    stored = manifests.stored_return(manifest.place, entry, task)
    if stored is not None:
        files.append(stored)
    found = []
    for path in files:
        inside = path.parent in (
            manifest.place.workspace(agent.name),
            manifest.place.coord / "returns",
        )
        if inside and os.path.lexists(path):
            name = f"return-{path.name}" if path == stored else path.name
            found.append(Write(free(history / name), MOVE, source=path))
    return found


def free(path: Path) -> Path:
    """A name that nothing has yet: an earlier try to put it away may have got so far."""
    number, free = 1, path
    while os.path.lexists(free):
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _stamp(manifest: Manifest, task: Task, now: datetime) -> str:
    """The stamp of a rerun in UTC; a later minute where this one is taken."""
    at = now
    while True:
        stamp = at.strftime("%Y%m%d-%H%M")
        output, _ = planning.paths(manifest.place, task, manifest.naming, stamp)
        prompt = manifest.place.coord / "prompts" / f"{task.task_id}-{stamp}.md"
        if not os.path.lexists(output) and not os.path.lexists(prompt):
            return stamp
        at += timedelta(minutes=1)
