"""Dispatching, dispatching once more, and stopping, bound to a run.

Source: agent workspaces specification, "File-Based Handoffs".
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime

from acp_core.files.secrets import mask_command
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.actions import programs, table_agents, table_fields
from acp_core.protocols.workspaces.actions.common import (
    OpenRun,
    choice,
    display_name,
    names,
    open_run,
    previewed,
)
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import Advanced, advance, watcher_alive
from acp_core.protocols.workspaces.conduct.advance import stop as stop_agent
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read.manifest import is_running, read_manifest
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, RERUN_ACT
from acp_core.protocols.workspaces.write import dispatch as dispatches
from acp_core.protocols.workspaces.write.step import require_unobstructed


def dispatching(context: Context, now: datetime) -> Action:
    """Start whoever can begin, and watch again whoever nobody watches."""
    run = open_run(context, now)
    waiting = dispatches.waiting_agents(run.manifest, run.run) or _lost(run)
    before = teams.load(run.place.root)
    narrowed = programs.narrowed(before.usual if before else None)
    narrowed["limit"] = {"default": before.limit if before else teams.LIMIT}

    def perform(values: Values) -> Outcome:
        require_unobstructed(run.place, DISPATCH_ACT)
        teams.save(_team(run, values))
        return started(advance(run.place.root, utc_now()))

    return bound(
        table_agents.DISPATCHING,
        run,
        lambda values: _preview(run, values),
        perform,
        narrowed=narrowed,
        offered=bool(waiting),
    )


def _preview(run: OpenRun, values: Values) -> Preview:
    require_unobstructed(run.place, DISPATCH_ACT)
    team = _team(run, values)
    now = utc_now()
    read, manifest = dispatches.read_run(run.place, now), read_manifest(run.place)
    changes: list[Change] = []
    held: list[str] = []
    for name in dispatches.waiting_agents(manifest, read):
        why = dispatches.why_not_dispatched(manifest, name, read)
        if why:
            held.append(f"{name} {why}")
            continue
        step = dispatches.begin_attempt(read_manifest(run.place), name, read, now)
        changes += step.changes(besides=run.place.manifest)
        changes.append(Change(safe(name), "start", _program(team, name)))
    changes += [Change(safe(name), "start", "supervise it again") for name in _lost(run)]
    words = ["acp", "workspaces", "dispatch", run.key, *programs.words(values)]
    sentence = f"Dispatch every agent that can start. {table_fields.NO_CHANNEL}"
    command, notes = tuple(map(safe, words)), tuple(map(safe, held))
    return Preview(sentence, tuple(changes), command, notes=notes)


def _lost(run: OpenRun) -> list[str]:
    host = dispatches.this_host()
    return [
        name
        for name, entry in run.manifest.entries.items()
        if is_running(entry) and entry.get("host") == host and not watcher_alive(run.place, name)
    ]


def _team(run: OpenRun, values: Values) -> Team:
    usual = programs.chosen(values, run.key)
    team = teams.merged(run.key, usual=usual, limit=values.limit)
    if team.usual is None and not team.own:
        raise Refused("no program was chosen")
    return team


def _program(team: Team, name: str) -> str:
    found = team.choice(name)
    if found is None:
        return "no program was chosen for it"
    return safe(" ".join(mask_command((found.program, *found.resolved().args))))


def started(advanced: Advanced) -> Outcome:
    """How dispatching ended."""
    parts = [f"Started {', '.join(advanced.started)}."] if advanced.started else []
    parts += [f"Supervised again: {', '.join(advanced.watched)}."] if advanced.watched else []
    parts += [f"{each}." for each in advanced.held]
    if not advanced.started and not advanced.watched and advanced.held:
        return Outcome(OutcomeState.REFUSED, safe(" ".join(parts)))
    return Outcome(OutcomeState.DONE, safe(" ".join(parts) or "No agent was left to dispatch."))


def go_on(run: OpenRun) -> str:
    """Have those begin who can now; what came of it, in a sentence."""
    with contextlib.suppress(Refused, OSError):
        advanced = advance(run.place.root, utc_now())
        if advanced.started:
            return f"Started {', '.join(advanced.started)}."
    return ""


def rerun(context: Context, now: datetime) -> Action:
    """Run one agent once more, with something said to it."""
    run = open_run(context, now)
    people = names(
        agent
        for agent in run.run.agents
        if agent.name in run.manifest.tasks and state.of_agent(agent, run.run) != "not dispatched"
    )
    wanted = (display_name(each.name) for each in run.run.agents if state.undecided(each, run.run))
    first = next((name for name in wanted if name in people), None)

    def preview(values: Values) -> Preview:
        require_unobstructed(run.place, RERUN_ACT)
        name = people.get(values.agent, values.agent)
        step = dispatches.plan_decision(
            run.place, name, dispatches.RERUN_DECISION, values.feedback or "rerun"
        )
        preview = previewed(step)
        where = "Its earlier status and return move to .coord/history."
        return replace(preview, sentence=f"{preview.sentence} {where}")

    def perform(values: Values) -> Outcome:
        name = people.get(values.agent, values.agent)
        dispatches.rerun(run.place, name, values.feedback, go_on=values.go_on)
        message = go_on(run)
        if name in message:
            return Outcome(OutcomeState.DONE, safe(message))
        sentence = f"{name} will rerun when its program has ended, or at the next dispatch."
        return Outcome(OutcomeState.REQUESTED, safe(sentence))

    narrowed = {"agent": choice(people, first)}
    return bound(table_agents.RERUN, run, preview, perform, narrowed=narrowed, offered=bool(people))


def stopping(context: Context, now: datetime) -> Action:
    """Stop an agent's program, where it runs on this machine."""
    run = open_run(context, now)
    people = names(each for each in run.run.agents if watcher_alive(run.place, each.name))

    def require(values: Values) -> str:
        if values.agent not in people:
            raise Refused(f"no program of {values.agent} is running on this machine")
        return people[values.agent]

    def preview(values: Values) -> Preview:
        name = require(values)
        return Preview(
            safe(f"Stop the program of {name}. Its files stay; decide on its result afterwards.")
        )

    def perform(values: Values) -> Outcome:
        name = require(values)
        stopped = stop_agent(run.key, name)
        state = OutcomeState.DONE if stopped.done else OutcomeState.UNKNOWN
        sentence = f"{name} was stopped" if stopped.done else stopped.sentence
        return Outcome(state, safe(f"{sentence}."))

    narrowed = {"agent": choice(people)}
    return bound(
        table_agents.STOPPING, run, preview, perform, narrowed=narrowed, offered=bool(people)
    )
