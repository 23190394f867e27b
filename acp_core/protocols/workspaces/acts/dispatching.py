"""The acts on a run and its agents: prepare, add, dispatch, rerun, stop, repair.

``acp workspaces dispatch`` starts the programs in this terminal's stead and follows them until nobody
works. A plan comes from options, from a file, or from both. Source: agent workspaces specification,
"Directory Structure for Agent Workspaces", "File-Based Handoffs" and "Prompt Template for Subagent
Dispatch".
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.agents import budgets
from acp_core.agents.budgets import caps_of
from acp_core.agents.program import Program
from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.secrets import mask_command
from acp_core.files.transaction import JOURNAL
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, Location, bound, planned
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.acts import binding, table
from acp_core.protocols.workspaces.acts.binding import (
    OpenRun,
    choices_now,
    offered_names,
    open_run,
    preview_of,
    write_act,
)
from acp_core.protocols.workspaces.acts.table import SCHEMA
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import (
    Advanced,
    Busy,
    advance,
    agent_states,
    follow,
    stop_agent,
    watcher_alive,
)
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read import manifest as manifest_module
from acp_core.protocols.workspaces.read.manifest import is_running, layout, read_json, read_manifest
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, RERUN_ACT, Layout, Plan
from acp_core.protocols.workspaces.write import dispatch, setup, step
from acp_core.protocols.workspaces.write import dispatch as dispatches
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
        lambda values: _dispatch_preview(run, values),
        perform,
        narrowed=narrowed,
        offered=bool(waiting),
    )


def _dispatch_preview(run: OpenRun, values: Values) -> Preview:
    require_unobstructed(run.place, DISPATCH_ACT)
    team = _team(run, values)
    now = utc_now()
    read, manifest = manifest_module.read_run(run.place, now), read_manifest(run.place)
    changes: list[Change] = []
    held: list[str] = []
    for name in dispatches.waiting_agents(manifest, read):
        why = dispatches.why_not_dispatched(manifest, name, read)
        if why:
            held.append(f"{name} {why}")
            continue
        step = dispatches.begin_attempt(read_manifest(run.place), name, read, now)
        changes += step.changes(besides=run.place.manifest)
        changes.append(Change(safe(name), "start", _shown_program(team, name)))
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


def _shown_program(team: Team, name: str) -> str:
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
    wanted = (each.shown for each in run.run.agents if state.undecided(each, run.run))
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

_PLAN_BYTES = 4 << 20  # bytes of a plan


def create(folder: Path | str) -> Action:
    """The action that prepares a run in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Prepare a run: in a form its task and at least one agent must be named."""
    place = context.key

    def show(step: Step) -> Preview:
        return replace(preview_of(step), data={"folder": place})

    def perform(values: Values) -> Outcome:
        wish = _given_plan(values, place)
        atomic.shared_folder(place)
        preview = show(setup.create_run(place, wish, utc_now()))
        return Outcome(OutcomeState.DONE, preview.sentence, place, preview)

    return bound(
        table.CREATION,
        context,
        lambda values: show(setup.plan_run(place, _given_plan(values, place), utc_now())),
        perform,
        narrowed={
            "objective": {"required": True},
            "agents": {"required": True},
            "form": {"default": schema.FINALS[0]},
        },
    )


def _given_plan(values: Values, folder: str) -> Plan:
    """The plan of a file, with what is said besides."""
    value = _read_plan(values.plan) if values.plan else {}
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
    agents = [*schema.items_of(listed), *map(_given_agent, values.agents)]
    for each in agents:
        if isinstance(each, dict):
            _add_common(each, values)
    for said in values.after:
        _add_order(agents, said)
    return schema.parse_plan(value | {"agents": agents}, Path(folder))


def _add_common(agent: dict[str, Any], values: Values) -> None:
    """Add what is said of every agent."""
    if values.timeout is not None:
        agent.setdefault("timeout_s", values.timeout)
    own = agent.get("inputs", [])
    agent["inputs"] = [*(own if isinstance(own, list) else [own]), *values.inputs]


def _add_order(agents: list[Any], said: str) -> None:
    name, other = _named_value(said, "--after")
    for each in agents:
        if isinstance(each, dict) and each.get("agent") == name:
            each.setdefault("after", []).append(other)
            return
    raise Refused(f"--after {said}: {name} is not in the plan")


def _given_agent(said: str) -> dict[str, Any]:
    name, task = _named_value(said, "--agent")
    return {"agent": name, "task": task}


def _named_value(said: str, option: str) -> tuple[str, str]:
    name, sign, rest = said.partition("=")
    if not sign or not name.strip() or not rest.strip():
        raise Refused(f"{option} {said}: must be NAME=...")
    return name.strip(), rest.strip()


def _read_plan(path: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(path, _PLAN_BYTES))
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


def dispatch_agents(values: Values) -> int:
    """Start whoever can begin, and follow them; the exit code."""
    place = layout(values.folder)
    step.require_unobstructed(place, DISPATCH_ACT)
    read_manifest(place)
    if (values.feedback or values.go_on) and not values.again:
        raise Refused("--feedback and --go-on need one agent: name it with --again")
    team = _team_of_values(place, values)
    caps_of({}, values.budget)
    if values.dry_run:
        return _show_planned(place, values, team)
    teams.save_team(team)
    run_id = schema.run_id(read_json(place.manifest))
    budgets.choose(str(place.root), run_id, values.budget)
    if values.again:
        dispatch.rerun(place, values.again, values.feedback, go_on=values.go_on)
    advanced = _wait_to_advance(place, values)
    if advanced.failed and not advanced.started and not advanced.watched:
        raise Refused("; ".join(advanced.held))
    if not values.json:
        _say_advanced(advanced)
    if not values.detach:
        _say_news(place, values)
    return _conclude_dispatch(place, values, advanced)


def _wait_to_advance(place: Layout, values: Values) -> Advanced:
    """What came of starting whoever can begin; another process that just does so is waited for."""
    told = values.json
    while True:
        try:
            return advance(place.root, utc_now())
        except Busy as error:
            if not told:
                say(f"waiting: {error.who}")
            told = True


def _team_of_values(place: Layout, values: Values) -> teams.Team:
    usual = [each for each in values.presets if "=" not in each]
    return teams.team_of(
        place.root,
        usual[-1] if usual else values.program,
        values.words,
        model=values.model,
        own=[_own_preset(each) for each in values.presets if "=" in each],
        limit=values.limit,
        workdir=values.workdir or None,
        timeout=values.timeout,
        once=values.once,
        permissions=values.permissions,
    )


def _own_preset(said: str) -> tuple[str, str]:
    name, _, preset = said.partition("=")
    if not name or not preset:
        raise Refused(f"--agent {said}: must be [NAME=]PRESET")
    return name, preset


def _say_news(place: Layout, values: Values) -> None:
    """Say what changes until nobody works; who interrupts that interrupts no agent."""
    try:
        for news in follow(place.root):
            if not values.json:
                say(f"{news.agent}: {news.state}{f' ({news.note})' if news.note else ''}")
    except KeyboardInterrupt:
        if not values.json:
            say("the agents keep running; `acp workspaces dispatch` follows them again")
        raise


def _say_advanced(advanced: Advanced) -> None:
    for name in advanced.watched:
        say(f"{name}: supervised again")
    for name in advanced.started:
        say(f"{name}: started")
    for each in advanced.held:
        say(each)


def _conclude_dispatch(place: Layout, values: Values, advanced: Advanced) -> int:
    run = manifest_module.read_run(place, utc_now())
    now = agent_states(run)
    found = rules.check(run)
    left = [agent.name for agent in run.agents if state.waits(agent, run, found)]
    if values.json:
        facts = {"started": advanced.started, "watched": advanced.watched, "held": advanced.held}
        say_object(SCHEMA, "dispatch", done=True, agents=now, undecided=left, **facts)
    elif left:
        say(f"needs your decision: {', '.join(left)} (`acp workspaces triage`)")
    if values.detach:
        return 0
    return 0 if all(each == "success" for each in now.values()) else 1


def _show_planned(place: Layout, values: Values, team: teams.Team) -> int:
    """What would be started, and what each would be told."""
    manifest, run = read_manifest(place), manifest_module.read_run(place, utc_now())
    names = dict.fromkeys([*dispatch.waiting_agents(manifest, run), *filter(None, [values.again])])
    planned = [_planned_dispatch(place, name, team) for name in names]
    if values.json:
        say_object(SCHEMA, "dispatch", done=False, would=planned)
        return 0
    for each in planned:
        say(f"{each['agent']}: {each['held'] or 'would run ' + each['program']}")
        for line in each["prompt"].split("\n") if each["prompt"] else []:
            say(f"    {line}")
    if not planned:
        say("no agent is left to dispatch")
    return 0


def _planned_dispatch(place: Layout, name: str, team: teams.Team) -> dict[str, str]:
    """What would be started for one agent, and what it would be told."""
    now = utc_now()
    manifest, run = read_manifest(place), manifest_module.read_run(place, now)
    if name not in manifest.tasks:
        raise Refused(f"{name} is not in the manifest")
    choice, held, text = team.choice(name), dispatch.why_not_dispatched(manifest, name, run), ""
    if not held:
        writes = dispatch.begin_attempt(manifest, name, run, now).writes
        text = next((w.data.decode() for w in writes if w.path.suffix == ".md" and w.data), "")
    program = _command_line(choice, team.program(name)) if choice else "no program"
    return {"agent": name, "held": held, "program": program, "prompt": text}


def _command_line(choice: teams.Choice, program: Program) -> str:
    """The command of an agent's program, and whether it holds a live session."""
    if program.live:
        return f"{' '.join(program.preset.live)} (a live session)"
    why = f" (no live session: {program.not_live})" if program.not_live else ""
    return " ".join([choice.program, *choice.resolved().args]) + why
