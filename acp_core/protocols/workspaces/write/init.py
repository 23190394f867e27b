"""Preparing a run: its folders, the task specification and the manifest, before anything starts.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" ("creates
`agent-workspaces/` and the per-agent subdirectories before dispatching") and "File-Based Handoffs".
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from acp_core.files import modes
from acp_core.files.transaction import CREATE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import plan as planning
from acp_core.protocols.workspaces.schema.act_names import CREATE as CREATE_RUN
from acp_core.protocols.workspaces.schema.plan import Plan, Task
from acp_core.protocols.workspaces.write import guard, levels
from acp_core.protocols.workspaces.write.layout import Layout, layout, locked, require_folder
from acp_core.protocols.workspaces.write.writing import Step, carry_out, encode, iso


def prepare(folder: str | os.PathLike[str], plan: Plan, now: datetime) -> Step:
    """What preparing a run would write. The manifest comes last: then the run is prepared.

    Raises:
        Refused: a run is prepared there already, or something is in the way.
    """
    place = layout(folder)
    if os.path.lexists(place.manifest):
        raise Refused(f"{place.root}: this folder already contains a run")
    guard.require(place, CREATE_RUN)
    levels.require(place.root, [each.agent for each in plan.tasks if each.may_launch])
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


def create(folder: str | os.PathLike[str], plan: Plan, now: datetime) -> Step:
    """Prepare a run.

    Raises:
        Refused: as `prepare`.
        OSError: something cannot be written.
    """
    step = prepare(folder, plan, now)
    place = layout(folder)
    modes.shared_folder(place.coord)
    with locked(place) as transaction:
        step = prepare(folder, plan, now)
        carry_out(transaction, step)
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
    output, status = planning.paths(place, task, naming)
    return planning.item(task) | {
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
