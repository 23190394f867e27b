"""``acp workspaces dispatch``."""

from __future__ import annotations

import argparse
from typing import Any

from acp_core.model.clock import utc_now
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.command_line import common, say_step
from acp_core.protocols.workspaces.conduct import agent_choice
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import Advanced, advance
from acp_core.protocols.workspaces.conduct.follow import follow, states
from acp_core.protocols.workspaces.write import Refused, dispatch, triage
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, layout


def add(verbs: Any) -> None:
    """Add the command."""
    made = common(
        verbs.add_parser(
            "dispatch",
            help="start whoever can begin, and follow them; go on where it was interrupted",
            description="Render the prompts, start the agents' programs and wait for them; again: "
            "go on with what is left. The programs go on if this command is interrupted. Give the "
            "program by its preset, or word by word after `--`; the prompt goes to its standard "
            "input, or where the words say {prompt} or {prompt_file}. What was chosen is "
            "remembered on this machine. A running sub-agent cannot be spoken to. "
            "Exit codes: 0 all succeeded; 1 not all did, or something is left to decide; 2 refused.",
        )
    )
    made.add_argument("--program", default="", metavar="PRESET", help="what does the work")
    made.add_argument("--model", default="", help="the model that the program uses")
    made.add_argument("--program-of", action="append", default=[], metavar="AGENT=PRESET",
                      help="what does one agent's work")  # fmt: skip
    made.add_argument("--limit", type=int, help=f"how many work at once ({teams.LIMIT})")
    made.add_argument("--workdir", help="where the programs run (the run's folder)")
    made.add_argument("--again", metavar="AGENT", help="run one agent once more")
    made.add_argument("--feedback", default="", help="with --again: what its next prompt says")
    made.add_argument("--go-on", action="store_true", help="with --again: from what it wrote")
    made.add_argument("--detach", action="store_true", help="do not wait for them")
    made.set_defaults(perform=_dispatch, words=[])


def _dispatch(options: argparse.Namespace) -> int:
    place = layout(options.folder)
    manifests.read(place)
    if options.limit is not None and not 1 <= options.limit <= 64:
        raise Refused("--limit must be 1 to 64")
    if (options.feedback or options.go_on) and not options.again:
        raise Refused("--feedback and --go-on are said to one agent: name it with --again")
    team = agent_choice.team(
        place.root,
        options.program,
        options.words,
        model=options.model,
        own=[_pair(each) for each in options.program_of],
        limit=options.limit,
        workdir=options.workdir,
    )
    if options.dry_run:
        return _show(options, team)
    teams.save(team)
    if options.again:
        triage.again(place, options.again, options.feedback, go_on=options.go_on)
    advanced = advance(place.root, utc_now())
    if not options.json:
        _say(advanced)
    if not options.detach:
        _follow(options, place)
    return _conclude(options, advanced)


def _follow(options: argparse.Namespace, place: Layout) -> None:
    """Say what changes until nobody works; who interrupts that interrupts no agent."""
    try:
        for news in follow(place.root):
            if not options.json:
                say(f"{news.agent}: {news.state}{f' ({news.note})' if news.note else ''}")
    except KeyboardInterrupt:
        if not options.json:
            say("the agents go on; `acp workspaces dispatch` follows them again")
        raise


def _say(advanced: Advanced) -> None:
    for name in advanced.watched:
        say(f"{name}: goes on")
    for name in advanced.started:
        say(f"{name}: begins")
    for each in advanced.held:
        say(each)


def _conclude(options: argparse.Namespace, advanced: Advanced) -> int:
    run = dispatch.look(layout(options.folder), utc_now())
    now = states(run)
    left = [agent.name for agent in run.agents if state.undecided(agent, run)]
    if options.json:
        told = {"started": advanced.started, "watched": advanced.watched, "held": advanced.held}
        say_step("dispatch", done=True, agents=now, undecided=left, **told)
    elif left:
        say(f"to be decided: {', '.join(left)} (`acp workspaces triage`)")
    if options.detach:
        return 0
    return 0 if all(each == "success" for each in now.values()) else 1


def _show(options: argparse.Namespace, team: teams.Team) -> int:
    """What would be started, and what each would be told."""
    place, now = layout(options.folder), utc_now()
    manifest, run = manifests.read(place), dispatch.look(place, now)
    told: list[dict[str, str]] = []
    for name in dict.fromkeys([*dispatch.waiting(manifest, run), *filter(None, [options.again])]):
        if name not in manifest.tasks:
            raise Refused(f"{name} is not in the manifest")
        choice = team.choice(name)
        held = dispatch.obstacle(manifest, name, run)
        text = ""
        if not held:
            fresh = manifests.read(place)
            step = dispatch.begin(fresh, name, run, now)
            text = next(
                (w.data.decode() for w in step.writes if w.path.suffix == ".md" and w.data), ""
            )
        program = " ".join([choice.program, *choice.resolved().args]) if choice else "no program"
        told.append({"agent": name, "held": held, "program": program, "prompt": text})
    if options.json:
        say_step("dispatch", done=False, would=told)
        return 0
    for each in told:
        say(f"{each['agent']}: {each['held'] or 'would run ' + each['program']}")
        for line in each["prompt"].split("\n") if each["prompt"] else []:
            say(f"    {line}")
    if not told:
        say("nobody is left to be dispatched")
    return 0


def _pair(said: str) -> tuple[str, str]:
    name, sign, preset = said.partition("=")
    if not sign or not name or not preset:
        raise Refused(f"--program-of {said}: must be AGENT=PRESET")
    return name, preset
