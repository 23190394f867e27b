"""``acp workspaces dispatch``: the programs are started, and followed until nobody works."""

from __future__ import annotations

import os
import shlex
import subprocess
import time

from acp_core.agents import budgets
from acp_core.agents.budgets import caps_of
from acp_core.agents.program import Program
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Location
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.acts.binding import open_run
from acp_core.protocols.workspaces.acts.integrating import begin
from acp_core.protocols.workspaces.acts.table import SCHEMA
from acp_core.protocols.workspaces.conduct import synthesis, team
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import (
    Advanced,
    Busy,
    advance,
    agent_states,
    follow,
)
from acp_core.protocols.workspaces.read.manifest import layout, read_json, read_manifest
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, DRAFT_ACT, Dispatch, Layout
from acp_core.protocols.workspaces.write import dispatch, integration, step


def dispatch_agents(values: Values) -> int:
    """Start whoever can begin, and follow them; the exit code."""
    place = layout(values.folder)
    step.require_unobstructed(place, DISPATCH_ACT)
    read_manifest(place)
    if (values.feedback or values.go_on) and not values.again:
        raise Refused("--feedback and --go-on need one agent: name it with --again")
    team = _team(place, values)
    caps_of({}, values.budget)
    if values.dry_run:
        return _show(place, values, team)
    teams.save_team(team)
    run_id = schema.run_id(read_json(place.manifest))
    budgets.choose(str(place.root), run_id, values.budget)
    if values.again:
        dispatch.rerun(place, values.again, values.feedback, go_on=values.go_on)
    advanced = _advanced(place, values)
    if advanced.failed and not advanced.started and not advanced.watched:
        raise Refused("; ".join(advanced.held))
    if not values.json:
        _say(advanced)
    if not values.detach:
        _follow(place, values)
    return _conclude_dispatch(place, values, advanced)


def _advanced(place: Layout, values: Values) -> Advanced:
    """What came of starting whoever can begin; another process that just does so is waited for."""
    told = values.json
    while True:
        try:
            return advance(place.root, utc_now())
        except Busy as error:
            if not told:
                say(f"waiting: {error.who}")
            told = True


def _team(place: Layout, values: Values) -> teams.Team:
    usual = [each for each in values.presets if "=" not in each]
    return teams.team_of(
        place.root,
        usual[-1] if usual else values.program,
        values.words,
        model=values.model,
        own=[_pair(each) for each in values.presets if "=" in each],
        limit=values.limit,
        workdir=values.workdir or None,
        timeout=values.timeout,
        once=values.once,
        permissions=values.permissions,
    )


def _pair(said: str) -> tuple[str, str]:
    name, _, preset = said.partition("=")
    if not name or not preset:
        raise Refused(f"--agent {said}: must be [NAME=]PRESET")
    return name, preset


def _follow(place: Layout, values: Values) -> None:
    """Say what changes until nobody works; who interrupts that interrupts no agent."""
    try:
        for news in follow(place.root):
            if not values.json:
                say(f"{news.agent}: {news.state}{f' ({news.note})' if news.note else ''}")
    except KeyboardInterrupt:
        if not values.json:
            say("the agents keep running; `acp workspaces dispatch` follows them again")
        raise


def _say(advanced: Advanced) -> None:
    for name in advanced.watched:
        say(f"{name}: supervised again")
    for name in advanced.started:
        say(f"{name}: started")
    for each in advanced.held:
        say(each)


def _conclude_dispatch(place: Layout, values: Values, advanced: Advanced) -> int:
    run = dispatch.read_run(place, utc_now())
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


def _show(place: Layout, values: Values, team: teams.Team) -> int:
    """What would be started, and what each would be told."""
    manifest, run = read_manifest(place), dispatch.read_run(place, utc_now())
    names = dict.fromkeys([*dispatch.waiting_agents(manifest, run), *filter(None, [values.again])])
    planned = [_planned(place, name, team) for name in names]
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


def _planned(place: Layout, name: str, team: teams.Team) -> dict[str, str]:
    """What would be started for one agent, and what it would be told."""
    now = utc_now()
    manifest, run = read_manifest(place), dispatch.read_run(place, now)
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


_STEP = 0.1  # seconds between two looks


def synthesise(values: Values) -> int:
    """Let a program write the draft, and wait for it; the exit code."""
    place = layout(values.folder)
    if values.dry_run:
        prompt = integration.synthesis_prompt(place)
        say(prompt) if not values.json else _tell_synthesis(False, prompt=prompt)
        return 0
    choice = team.program_choice(values.program, values.words, str(place.root), values.model)
    begin(open_run(Location(str(place.root)), utc_now()), choice)
    while not values.detach and synthesis.is_running(place):
        time.sleep(_STEP)
    return _conclude_synthesis(place, values)


def _conclude_synthesis(place: Layout, values: Values) -> int:
    how = schema.decode_object(Dispatch, read_json(place.draft / "synthesis.json")).exit
    draft = integration.draft_file(place)
    there = draft.is_file()
    if values.json:
        _tell_synthesis(there, exit=how, draft=str(draft))
    elif values.detach:
        say("A program is writing the draft.")
    else:
        say(f"{how}; the draft is {draft}" if there else how)
    return 0 if there or values.detach else 1


def _tell_synthesis(done: bool, **facts: str) -> None:
    say_object(SCHEMA, "integrate", done=done, **facts)


def edit(values: Values) -> int:
    """Open the person's editor on the draft, which is prepared where there is none; the exit code."""
    place = layout(values.folder)
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not command:
        raise Refused("no editor set: set EDITOR, or edit the file that `draft` prepares")
    path = integration.draft_file(place)
    if values.dry_run:
        say(f"would run {command[0]} on {path}")
        return 0
    if not path.exists():
        step.carry_out_act(place, DRAFT_ACT, lambda: integration.write_draft(place))
    try:
        ended = subprocess.run([*command, str(path)], check=False)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror or error}") from None
    if ended.returncode:
        raise Refused(f"{command[0]} ended with exit code {ended.returncode}; the draft is {path}")
    say(f"The draft is {path}; `acp workspaces finish` publishes it.")
    return 0
