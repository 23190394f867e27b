"""``acp workspaces integrate``."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import time
from typing import Any

from acp_core.model.clock import utc_now
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.command_line import common, say_step
from acp_core.protocols.workspaces.commands.judging import done
from acp_core.protocols.workspaces.conduct import agent_choice, synthesis
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import start
from acp_core.protocols.workspaces.write import Refused, dispatch, integrate
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import ORCHESTRATOR, Layout, layout, read_json
from acp_core.protocols.workspaces.write.writing import Step


def add(verbs: Any) -> None:
    """Add the command."""
    made = verbs.add_parser(
        "integrate",
        help="the seven steps of integration; draft, synthesise, finish",
        description="Without an option: the seven steps, and which are through (exit code 0 if "
        "all). The draft is written by a program (--program, or -- COMMAND) or by you (--draft, "
        "--edit); --finish puts it in its place with its metadata, and writes the integration "
        "status.",
    )
    common(made)
    made.add_argument("--order", metavar="A,B,...", help="in which order outputs are read")
    made.add_argument("--draft", action="store_true", help="prepare a draft that cites its sources")
    made.add_argument("--edit", action="store_true", help="open the draft in $EDITOR")
    made.add_argument("--synthesise", action="store_true", help="have the program write the draft")
    made.add_argument("--program", default="", metavar="PRESET", help="the program that writes it")
    made.add_argument("--model", default="", help="the model that it uses")
    made.add_argument("--detach", action="store_true", help="do not wait for it")
    made.add_argument("--finish", action="store_true", help="approve the draft: write all of it")
    made.add_argument(
        "--gap",
        action="append",
        default=[],
        help="with --finish: a gap that remains (those of before)",
    )
    made.add_argument("--by", default="", help="who approves (you)")
    made.set_defaults(perform=_integrate, words=[])


def _integrate(options: argparse.Namespace) -> int:
    place = layout(options.folder)
    if options.order is not None:
        order = [each.strip() for each in options.order.split(",") if each.strip()]
        return _do(options, place, lambda: integrate.reorder(place, order))
    if options.synthesise or options.program or options.words:
        return _synthesise(options, place)
    if options.edit:
        return _edit(options, place)
    if options.draft:
        return _do(options, place, lambda: integrate.draft(place))
    if options.finish:
        return _do(options, place, lambda: _finish(options, place))
    return _steps(options, place)


def _do(options: argparse.Namespace, place: Layout, step: Any) -> int:
    made = step() if options.dry_run else manifests.act(place, step)
    return done("integrate", options, made)


def _finish(options: argparse.Namespace, place: Layout) -> Step:
    if synthesis.is_running(place):
        raise Refused("the draft is being written: wait for it")
    return integrate.finish(place, options.gap or None, options.by)


def _steps(options: argparse.Namespace, place: Layout) -> int:
    run, manifest = dispatch.look(place, utc_now()), manifests.read(place)
    passed = state.steps(run)
    order = [
        {"agent": name, "file": str(path), "bytes": size}
        for name, path, size in integrate.reading(run, manifest)
    ]
    steps = [
        {"step": number, "what": label, "done": ok}
        for number, ((_, label), ok) in enumerate(zip(state.STEPS, passed, strict=True), 1)
    ]
    if options.json:
        say_step("integrate", state=state.of_run(run), steps=steps, order=order)
        return 0 if all(passed) else 1
    say(f"{place.root.name}: {state.of_run(run)}")
    for step in steps:
        say(f"  {'✓' if step['done'] else '○'} {step['step']}. {step['what']}")
    for number, each in enumerate(order, 1):
        say(f"  reads {number}. {each['file']} ({each['bytes']} bytes, of {each['agent']})")
    return 0 if all(passed) else 1


def _edit(options: argparse.Namespace, place: Layout) -> int:
    """The person's editor on the draft, which is prepared where there is none."""
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not command:
        raise Refused("no editor is known: set EDITOR, or edit the file that --draft prepares")
    path = integrate.draft_file(place)
    if options.dry_run:
        say(f"would run {command[0]} on {path}")
        return 0
    if not path.exists():
        manifests.act(place, lambda: integrate.draft(place))
    try:
        ended = subprocess.run([*command, str(path)], check=False)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror or error}") from None
    if ended.returncode:
        raise Refused(f"{command[0]} ended with exit code {ended.returncode}; the draft is {path}")
    say(f"The draft is {path}; `acp workspaces integrate --finish` puts it in its place.")
    return 0


def _synthesise(options: argparse.Namespace, place: Layout) -> int:
    if options.dry_run:
        say(integrate.prompt(place)) if not options.json else say_step(
            "integrate", done=False, prompt=integrate.prompt(place)
        )
        return 0
    choice = agent_choice.choice(options.program, options.words, str(place.root), options.model)
    own = {ORCHESTRATOR: choice} if choice else {}
    team = teams.merged(place.root, own=own)
    if team.choice(ORCHESTRATOR) is None:
        raise Refused("no program was chosen: name a preset (--program), or give a command")
    teams.save(team)
    if not synthesis.is_open(place):
        manifests.act(place, lambda: synthesis.begin(place))
    start(place, ORCHESTRATOR, 1)
    while not options.detach and synthesis.is_running(place):
        time.sleep(0.1)
    value, _ = read_json(place.draft / "synthesis.json")
    how = schema.text((value or {}).get("exit"))
    there = integrate.draft_file(place).is_file()
    if options.json:
        say_step("integrate", done=there, exit=how, draft=str(integrate.draft_file(place)))
    elif options.detach:
        say("The draft is being written.")
    else:
        say(f"{how}; the draft is {integrate.draft_file(place)}" if there else how)
    return 0 if there or options.detach else 1
