"""A manifest made of what stands in a run's folder: its workspaces, and the prompts that agents got.

Source: agent workspaces specification, "Prompt Template for Subagent Dispatch". It serves runs of
orchestrators that keep no manifest, and runs whose manifest was lost.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Agent, Prompt, Run
from acp_core.protocols.workspaces.write.layout import NAME, checked_name
from acp_core.protocols.workspaces.write.writing import iso

_TASK = re.compile(r"^YOUR TASK:[ \t]*\n(.*?)(?=\n[ \t]*\n|^[A-Z][A-Z ]+:|\Z)", re.M | re.S)
_OUTPUT = re.compile(r"^Write your primary output to:[ \t]*(\S[^\n]*?)[ \t]*$", re.M)
_INPUTS = re.compile(r"^INPUTS:[ \t]*\n(.*?)(?=^[A-Z][A-Z ]+:|\Z)", re.M | re.S)
_STAMPED = re.compile(r"-output-(\d{8}-\d{4})\.")
_EXTENSION = re.compile(r"[A-Za-z0-9]{1,10}")
_LONGEST = 4_000  # characters of a task
Object = dict[str, Any]


def of(run: Run) -> Object:
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


def read_before(agent: Agent, run: Run) -> list[str]:
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
        "after": read_before(agent, run),
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
    text = " ".join(task[1].split())[:_LONGEST] if task else ""
    if text and "\0" not in text:
        made["task"] = text
    if output is not None:
        path, stamp = Path(output[1]), _STAMPED.search(output[1])
        form = path.suffix.removeprefix(".")
        made |= {"output": output[1], "format": form} if _EXTENSION.fullmatch(form) else {}
        made |= {"stamp": stamp[1]} if stamp else {}
    return made
