"""The actions that prepare a run, and add an agent to it.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions.common import (
    LINES,
    Desk,
    choice,
    names,
    previewed,
    reason,
    safe,
    text,
    writing,
)
from acp_core.protocols.workspaces.actions.dispatching import go_on
from acp_core.protocols.workspaces.actions.names import MORE
from acp_core.protocols.workspaces.schema import plan
from acp_core.protocols.workspaces.schema.plan import Plan
from acp_core.protocols.workspaces.write import Refused, adding, init
from acp_core.protocols.workspaces.write.writing import Step


class Founding(BaseModel):
    """What a run begins with."""

    objective: str = Field(
        min_length=1, title="Task", description="What the team completes, in one line."
    )
    agents: list[str] = Field(
        min_length=1, title="Agents", description="NAME=TASK, the task in one paragraph."
    )
    after: list[str] = Field(
        default_factory=list,
        title="Order",
        description="NAME=OTHER where NAME works on what OTHER wrote.",
    )
    scope: str = Field(
        "", title="Scope", description="What belongs to it.", json_schema_extra=LINES
    )
    requirements: list[str] = Field(default_factory=list, title="Requirements")
    constraints: list[str] = Field(default_factory=list, title="Constraints")
    inputs: list[str] = Field(
        default_factory=list, title="Inputs", description="Files that every agent must read."
    )
    form: Literal["md", "txt", "json"] = Field("md", title="Form of the final output")
    timeout: float | None = Field(
        None, title="Seconds after which an agent is stopped", gt=0, lt=1e7
    )


def create(folder: Path | str) -> Action:
    """The action that prepares a run in ``folder``, which is made if it does not exist."""
    place = os.path.abspath(os.path.expanduser(folder))

    def preview(answers: Founding) -> Preview:
        try:
            step = init.prepare(place, _plan(answers, place), utc_now())
        except (Refused, OSError) as error:
            return Preview("", refused=reason(error))
        return previewed(step, _command(answers, place))

    def perform(answers: Founding) -> Outcome:
        try:
            wish = _plan(answers, place)
            os.makedirs(place, exist_ok=True)
            step = init.found(place, wish, utc_now())
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))
        return Outcome(OutcomeState.DONE, safe(step.sentence), location=place)

    return Action(
        name="create",
        label="New run of sub-agents",
        sentence="Prepare a run: each agent gets a workspace and a task; nothing is started yet.",
        inputs=Founding,
        preview=preview,
        perform=perform,
    )


NOBODY = "nobody"


def more(desk: Desk) -> Action | None:
    """Add an agent: for a part that another one left open, or for one that was forgotten."""
    first = [a for a in desk.run.agents if state.ending(a, desk.run) in schema.DECISIONS]
    offered = {**names(first), NOBODY: ""}
    left = "; ".join(said for each in first if (said := adding.missing(each)))
    about = "Left empty: after the agent whose part is missing."
    fields = {
        "agent": (
            choice(offered),
            Field(
                next(iter(offered)),
                title="Whose part is missing",
                description="The new agent is told where to read what that one wrote.",
            ),
        ),
        "name": text("Name of the new agent", about),
        "task": text("Its task", f"Left empty: {safe(left)}" if left else "", lines=True),
    }

    def step(answers: Any) -> Step:
        wish = {"agent": answers.name.strip(), "task": answers.task.strip()}
        return adding.add(desk.place, wish, offered[answers.agent])

    def command(answers: Any) -> list[str]:
        words = ["add", desk.folder]
        for option, said in (
            ("--of", offered[answers.agent]),
            ("--agent", answers.name.strip()),
            ("--task", answers.task.strip()),
        ):
            words += [option, said] if said else []
        return words

    return writing(
        MORE,
        "One more agent",
        "Add an agent with a task of its own, and dispatch it.",
        fields,
        desk,
        step,
        command,
        lambda answers: go_on(desk),
    )


def _plan(answers: Founding, folder: str) -> Plan:
    agents = []
    for said in answers.agents:
        name, task = _pair(said, "Agents")
        after = [
            other for each in answers.after for who, other in [_pair(each, "Order")] if who == name
        ]
        agents.append(
            {
                "agent": name,
                "task": task,
                "after": after,
                "inputs": list(answers.inputs),
                "timeout_s": answers.timeout,
            }
        )
    known = {each["agent"] for each in agents}
    for said in answers.after:
        if _pair(said, "Order")[0] not in known:
            raise Refused(f"Order: {_pair(said, 'Order')[0]} is none of the agents")
    value = {
        "task": answers.objective,
        "scope": answers.scope,
        "requirements": answers.requirements,
        "constraints": answers.constraints,
        "format": answers.form,
        "agents": agents,
    }
    return plan.parse(value, Path(folder))


def _pair(said: str, where: str) -> tuple[str, str]:
    name, sign, rest = said.partition("=")
    if not sign or not name.strip() or not rest.strip():
        raise Refused(f"{where}: {said!r} must be NAME=...")
    return name.strip(), rest.strip()


def _command(answers: Founding, folder: str) -> list[str]:
    words = ["acp", "workspaces", "init", folder, "--task", answers.objective]
    for option, values in (
        ("--agent", answers.agents),
        ("--after", answers.after),
        ("--requirement", answers.requirements),
        ("--constraint", answers.constraints),
        ("--input", answers.inputs),
        ("--scope", [answers.scope] if answers.scope else []),
    ):
        words += [word for value in values for word in (option, value)]
    return [*words, "--format", answers.form]
