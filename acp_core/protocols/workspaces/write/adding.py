"""One more agent in a run that is prepared: for a part that is missing, or was forgotten.

Source: agent workspaces specification, "Return Value Contract" (its example of a partial asks for
"a second coder agent with only the sequential pipeline task").
"""

from __future__ import annotations

from collections.abc import Mapping

from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.schema import plan as planning
from acp_core.protocols.workspaces.schema.plan import Plan
from acp_core.protocols.workspaces.write import dispatch, levels, triage
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.init import entry
from acp_core.protocols.workspaces.write.layout import Layout, require_folder
from acp_core.protocols.workspaces.write.writing import Step

_LONGEST = 1_500  # characters of a task that is made of what was said


def add(place: Layout, wish: Mapping[str, object], of: str = "") -> Step:
    """What adding an agent would write. It begins with the next dispatch.

    Args:
        place: the run.
        wish: the agent as a plan has it; with ``of`` its name and its task may be left out.
        of: the agent whose part is missing: what it wrote is read, and its errors and notes say
            what is to be done.

    Raises:
        Refused: the run is integrated, the agent is not what it should be, or there is one.
    """
    manifest, run = manifests.read(place), dispatch.read_run(place, utc_now())
    if state.of_run(run).startswith("integrated"):
        raise Refused("the run is already integrated: prepare a new run")
    value = dict(wish)
    if of:
        found = triage.find(run, of)
        value["agent"] = value.get("agent") or free_name(run, of)
        value["task"] = value.get("task") or missing(found)
        if not value["task"]:
            raise Refused(
                f"{of} does not report what is missing: give the new agent a task (--task)"
            )
        inputs = value.get("inputs")
        value["inputs"] = [*(inputs if isinstance(inputs, list) else []), *_read_first(found)]
    task = planning.task(value, len(manifest.tasks) + 1, place.root)
    planning.check(Plan("run", (*manifest.tasks.values(), task)))
    levels.require(place.root, [task.agent] if task.may_launch else [])
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


def missing(agent: Agent) -> str:
    """What an agent says is missing, as the task of another: its errors, else its notes."""
    errors = agent.errors or [agent.answer.notes or agent.report.notes]
    text = " ".join(" ".join(errors).split())[:_LONGEST]
    return f"Do what {agent.name} left open: {text}" if text else ""


def _read_first(agent: Agent) -> list[object]:
    return [
        {"path": str(each.path), "required": False}
        for each in agent.results
        if each.file is not None and each.owner == agent.name
    ]
