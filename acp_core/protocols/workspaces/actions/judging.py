"""Triage and conflicts, bound to a run.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from acp_core.model.action import Action
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions import table_integration
from acp_core.protocols.workspaces.actions.common import (
    OpenRun,
    choice,
    display_name,
    names,
    open_run,
    writing,
)
from acp_core.protocols.workspaces.actions.dispatching import go_on
from acp_core.protocols.workspaces.matters import why
from acp_core.protocols.workspaces.schema import Agent, Conflict
from acp_core.protocols.workspaces.view.panels import named
from acp_core.protocols.workspaces.write import dispatch, integration
from acp_core.protocols.workspaces.write.step import Step


def triaging(context: Context, now: datetime) -> Action:
    """Decide on an agent: those first on whom a decision is wanted."""
    run = open_run(context, now)
    agents = run.run.agents
    first = [each for each in agents if state.undecided(each, run.run)]
    others = [each for each in agents if each not in first and _was_dispatched(each, run)]
    people = names([*first, *others])
    words = dict.fromkeys(w for a in (*first, *agents) for w in state.choices(a, run.run))
    narrowed = {
        "agent": choice(
            people,
            display_name(first[0].name) if first else None,
            help="; ".join(_ended(each, run) for each in first),
        ),
        "decision": choice(words),
    }

    def step(values: Values) -> Step:
        name = people.get(values.agent, values.agent)
        return dispatch.plan_decision(run.place, name, values.decision, values.reason, values.by)

    waits = f"{', '.join(display_name(each.name) for each in first)}: " if first else ""
    sentence = f"{waits}choose what to do with each result that is not a success."
    return writing(
        table_integration.TRIAGING,
        run,
        step,
        then_start(run),
        narrowed=narrowed,
        sentence=sentence,
        offered=bool(people),
    )


def _was_dispatched(agent: Agent, run: OpenRun) -> bool:
    return state.of_agent(agent, run.run) != "not dispatched"


def _ended(agent: Agent, run: OpenRun) -> str:
    said = why(agent, run.run)
    how = state.ending(agent, run.run)
    return safe(f"{agent.name}: {how}{f' ({said})' if said else ''}")


def then_start(run: OpenRun) -> Any:
    """What follows where it is wanted: whoever can begin then is started."""
    return lambda values: go_on(run) if values.start else ""


def comparison(context: Context, now: datetime) -> Action:
    """Look for conflicts, once every agent is through."""
    run = open_run(context, now)
    ready = state.steps(run.run)[1]

    def step(values: Values) -> Step:
        return integration.record_hints(run.place, values.by)

    return writing(table_integration.COMPARISON, run, step, offered=ready)


def dispute(context: Context, now: datetime) -> Action:
    """Write down a conflict that no machine sees."""
    run = open_run(context, now)
    people = names(agent for agent in run.run.agents if agent.outcome)

    def step(values: Values) -> Step:
        pair = [each.strip() for each in values.between.split(",") if each.strip()]
        pair = pair or [people.get(each, each) for each in (values.first, values.second)]
        if len(pair) != 2 or not all(pair):
            raise Refused("name the two agents: --between A,B")
        return integration.dispute(run.place, pair, values.topic, values.category, values.by)

    who = choice(people, required=True)
    narrowed = {"first": who, "second": who}
    return writing(table_integration.DISPUTE, run, step, narrowed=narrowed, offered=len(people) > 1)


def _waiting(run: OpenRun) -> dict[str, Conflict]:
    """The conflicts and hints that wait, by their ids; to settle one without an id is impossible."""
    waiting = [*state.open_conflicts(run.run), *state.open_hints(run.run)]
    return {display_name(each.id): each for each in waiting if each.id}


def resolution(context: Context, now: datetime) -> Action:
    """Resolve a conflict by the rule of its category."""
    run = open_run(context, now)
    waiting = _waiting(run)
    people = names(agent for agent in run.run.agents if agent.outcome)
    people |= {display_name(n): n for each in waiting.values() for n in each.agents}
    narrowed = {
        "conflict": _conflict(waiting),
        "category": choice(("", *schema.CATEGORIES), "", labels={"": "as it is"}),
        "keep": choice(("", *people), "", labels={"": "neither, or both"}),
        "because": {"default": schema.GROUNDS[1]},
    }

    def step(values: Values) -> Step:
        return integration.resolve_conflict(
            run.place,
            _id(waiting, values.conflict),
            category=values.category,
            keep=people.get(values.keep, values.keep),
            because=values.because,
            by=values.by,
            alike=values.alike,
        )

    return writing(
        table_integration.RESOLUTION, run, step, narrowed=narrowed, offered=bool(waiting)
    )


def dismissal(context: Context, now: datetime) -> Action:
    """Say that a conflict is none."""
    run = open_run(context, now)
    waiting = _waiting(run)
    narrowed = {"conflict": _conflict(waiting), "reason": {"default": "The outputs agree."}}

    def step(values: Values) -> Step:
        id = _id(waiting, values.conflict)
        return integration.dismiss_conflict(
            run.place, id, values.reason, values.by, alike=values.alike
        )

    return writing(table_integration.DISMISSAL, run, step, narrowed=narrowed, offered=bool(waiting))


def _conflict(waiting: dict[str, Conflict]) -> dict[str, Any]:
    """The conflicts that wait, by their ids; the first one where none is named."""
    labels = {id: named(each) for id, each in waiting.items()}
    return choice(labels, next(iter(labels), None), labels=labels)


def _id(waiting: dict[str, Conflict], said: str) -> str:
    """The id of the conflict that is meant, as it stands in its file."""
    return waiting[said].id if said in waiting else said
