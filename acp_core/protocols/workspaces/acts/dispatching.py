"""Dispatching, dispatching once more, and stopping, bound to a run.

Source: agent workspaces specification, "File-Based Handoffs".
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.secrets import mask_command
from acp_core.files.transaction import JOURNAL
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, Location, bound, planned
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.acts import binding, table
from acp_core.protocols.workspaces.acts.binding import (
    OpenRun,
    choices_now,
    offered_names,
    open_run,
    preview_of,
    shown_name,
    write_act,
)
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import (
    Advanced,
    advance,
    stop_agent,
    watcher_alive,
)
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read.manifest import is_running, layout, read_manifest
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, RERUN_ACT, Layout, Plan
from acp_core.protocols.workspaces.write import dispatch as dispatches
from acp_core.protocols.workspaces.write import setup
from acp_core.protocols.workspaces.write.step import Step, require_unobstructed


def dispatching(context: Context, now: datetime) -> Action:
    """Start whoever can begin, and watch again whoever nobody watches."""
    run = open_run(context, now)
    waiting = dispatches.waiting_agents(run.manifest, run.run) or _lost(run)
    before = teams.load_team(run.place.root)
    narrowed = binding.program_choices(before.usual if before else None)
    narrowed["limit"] = {"default": before.limit if before else teams.AT_ONCE}

    def perform(values: Values) -> Outcome:
        require_unobstructed(run.place, DISPATCH_ACT)
        teams.save_team(_team(run, values))
        return started(advance(run.place.root, utc_now()))

    return bound(
        table.DISPATCHING,
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
    words = ["acp", "workspaces", "dispatch", run.key, *binding.program_words(values)]
    sentence = f"Dispatch every agent that can start. {table.NO_CHANNEL}"
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
    usual = binding.chosen_program(values, run.key)
    team = teams.merged_team(run.key, usual=usual, limit=values.limit)
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
    people = offered_names(
        agent
        for agent in run.run.agents
        if agent.name in run.manifest.tasks and state.of_agent(agent, run.run) != "not dispatched"
    )
    wanted = (shown_name(each.name) for each in run.run.agents if state.undecided(each, run.run))
    first = next((name for name in wanted if name in people), None)

    def preview(values: Values) -> Preview:
        require_unobstructed(run.place, RERUN_ACT)
        name = people.get(values.agent, values.agent)
        step = dispatches.plan_decision(
            run.place, name, dispatches.RERUN_DECISION, values.feedback or "rerun"
        )
        preview = preview_of(step)
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

    narrowed = {"agent": choices_now(people, first)}
    return bound(table.RERUN, run, preview, perform, narrowed=narrowed, offered=bool(people))


def stopping(context: Context, now: datetime) -> Action:
    """Stop an agent's program, where it runs on this machine."""
    run = open_run(context, now)
    people = offered_names(each for each in run.run.agents if watcher_alive(run.place, each.name))

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

    narrowed = {"agent": choices_now(people)}
    return bound(table.STOPPING, run, preview, perform, narrowed=narrowed, offered=bool(people))


NOBODY = "nobody"
_PLAN = 4 << 20  # bytes of a plan


def create(folder: Path | str) -> Action:
    """The action that prepares a run in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Prepare a run: in a form its task and at least one agent must be named."""
    place = context.key

    def show(step: Step) -> Preview:
        return replace(preview_of(step), data={"folder": place})

    def perform(values: Values) -> Outcome:
        wish = _plan(values, place)
        atomic.shared_folder(place)
        preview = show(setup.create_run(place, wish, utc_now()))
        return Outcome(OutcomeState.DONE, preview.sentence, place, preview)

    return bound(
        table.CREATION,
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
    offered = {**offered_names(first), NOBODY: ""}
    left = "; ".join(said for each in first if (said := setup.missing_agents(each)))
    narrowed = {
        "agent": choices_now(offered, next(iter(offered))),
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

    return write_act(
        table.ADDITION,
        run,
        step,
        then_start(run),
        narrowed=narrowed,
        offered=not run.is_integrated,
    )


def repairing(context: Context, now: datetime) -> Action:
    """Mend what can be mended; offered where something can."""
    place = layout(Path(context.key))
    return planned(
        table.REPAIRING,
        context,
        lambda _: setup.plan_repair(place),
        preview_of,
        lambda _: setup.repair_run(place),
        offered=_is_offered(place),
    )


def _is_offered(place: Layout) -> bool:
    if os.path.lexists(place.coord / JOURNAL):
        return True
    try:
        return bool(setup.plan_repair(place))
    except Refused:
        return False


def then_start(run: OpenRun) -> Any:
    """What follows where it is wanted: whoever can begin then is started."""
    return lambda values: go_on(run) if values.start else ""
