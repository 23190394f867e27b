"""Preparing a run, and adding an agent to it.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces".
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.files import modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions import table_agents
from acp_core.protocols.workspaces.actions.common import (
    choice,
    names,
    open_run,
    previewed,
    writing,
)
from acp_core.protocols.workspaces.actions.judging import then_start
from acp_core.protocols.workspaces.schema import Plan
from acp_core.protocols.workspaces.write import setup
from acp_core.protocols.workspaces.write.step import Step

NOBODY = "nobody"
_PLAN = 4 << 20  # bytes of a plan


def create(folder: Path | str) -> Action:
    """The action that prepares a run in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Prepare a run: in a form its task and at least one agent must be named."""
    place = context.key

    def show(step: Step) -> Preview:
        return replace(previewed(step), data={"folder": place})

    def perform(values: Values) -> Outcome:
        wish = _plan(values, place)
        modes.shared_folder(place)
        preview = show(setup.create_run(place, wish, utc_now()))
        return Outcome(OutcomeState.DONE, preview.sentence, place, preview)

    return bound(
        table_agents.CREATION,
        context,
        lambda values: show(setup.plan_run(place, _plan(values, place), utc_now())),
        perform,
        narrowed={
            "objective": {"required": True},
            "agents": {"required": True},
            "form": {"default": schema.FINALS[0]},
        },
    )


def _plan(values: Values, folder: str) -> Plan:
    """The plan of a file, with what is said besides."""
    value = _read(values.plan) if values.plan else {}
    for key, said in (
        ("task", values.objective),
        ("scope", values.scope),
        ("format", values.form),
        ("naming", values.naming),
        ("requirements", values.requirements),
        ("constraints", values.constraints),
    ):
        if said:
            value[key] = said
    listed = value.get("agents", [])
    agents = [*(listed if isinstance(listed, list) else []), *map(_agent, values.agents)]
    for each in agents:
        if isinstance(each, dict):
            _complete(each, values)
    for said in values.after:
        _order(agents, said)
    return schema.parse_plan(value | {"agents": agents}, Path(folder))


def _complete(agent: dict[str, Any], values: Values) -> None:
    """Add what is said of every agent."""
    if values.timeout is not None:
        agent.setdefault("timeout_s", values.timeout)
    own = agent.get("inputs", [])
    agent["inputs"] = [*(own if isinstance(own, list) else [own]), *values.inputs]


def _order(agents: list[Any], said: str) -> None:
    name, other = _pair(said, "--after")
    for each in agents:
        if isinstance(each, dict) and each.get("agent") == name:
            each.setdefault("after", []).append(other)
            return
    raise Refused(f"--after {said}: {name} is not in the plan")


def _agent(said: str) -> dict[str, Any]:
    name, task = _pair(said, "--agent")
    return {"agent": name, "task": task}


def _pair(said: str, option: str) -> tuple[str, str]:
    name, sign, rest = said.partition("=")
    if not sign or not name.strip() or not rest.strip():
        raise Refused(f"{option} {said}: must be NAME=...")
    return name.strip(), rest.strip()


def _read(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(path, _PLAN))
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path}: not valid JSON") from None
    if not isinstance(value, dict):
        raise Refused(f"{path}: not a JSON object")
    return value


def addition(context: Context, now: datetime) -> Action:
    """Add an agent: for a part that another one left open, or for one that was forgotten."""
    run = open_run(context, now)
    first = [a for a in run.run.agents if state.ending(a, run.run) in schema.DECISIONS]
    offered = {**names(first), NOBODY: ""}
    left = "; ".join(said for each in first if (said := setup.missing_agents(each)))
    narrowed = {
        "agent": choice(offered, next(iter(offered))),
        "task": {"help": f"Default: {safe(left)}" if left else ""},
    }

    def step(values: Values) -> Step:
        wish = {
            "agent": values.name.strip(),
            "task": values.task.strip(),
            "role": values.role,
            "after": values.after,
            "inputs": values.inputs,
            "format": values.format,
            "critical": values.critical,
            "may_launch": values.may_launch,
            "timeout_s": values.timeout,
        }
        return setup.add_agents(run.place, wish, offered.get(values.agent, values.agent))

    return writing(
        table_agents.ADDITION,
        run,
        step,
        then_start(run),
        narrowed=narrowed,
        offered=not run.is_integrated,
    )
