"""``acp workspaces init`` and ``add``."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.command_line import common, say_step, show, told
from acp_core.protocols.workspaces.schema import plan
from acp_core.protocols.workspaces.write import Refused, adding
from acp_core.protocols.workspaces.write import init as found
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import layout
from acp_core.protocols.workspaces.write.writing import Step

_PLAN = 4 << 20  # bytes of a plan


def add(verbs: Any) -> None:
    """Add the command."""
    init = common(
        verbs.add_parser(
            "init",
            help="prepare a run: workspaces, task specification, manifest",
            description="Prepare a run before anything is dispatched. The agents come from a plan "
            "(--plan), a JSON object {task, scope, requirements, constraints, format, naming, "
            "agents: [{agent, task, role, task_id, responsible, not_responsible, inputs: [{path, "
            "required}], after, format, critical, may_launch, timeout_s}]}, or from --agent.",
        )
    )
    init.add_argument("--plan", metavar="FILE", help="who does what, as JSON")
    init.add_argument("--task", help="what the team completes")
    init.add_argument(
        *("--agent", "-a"),
        action="append",
        default=[],
        metavar="NAME=TASK",
        help="an agent and its task in one paragraph (repeat it)",
    )
    init.add_argument("--after", action="append", default=[], metavar="NAME=OTHER",
                      help="NAME works on what OTHER wrote, and is dispatched after it")  # fmt: skip
    init.add_argument("--scope", default="", help="what belongs to the task, and what does not")
    init.add_argument("--requirement", action="append", default=[], help="what must be met")
    init.add_argument("--constraint", action="append", default=[], help="what must not be done")
    init.add_argument("--input", action="append", default=[], metavar="PATH",
                      help="a file that every agent must read")  # fmt: skip
    init.add_argument("--format", choices=plan.FINALS, help="the form of the final output (md)")
    init.add_argument("--naming", choices=plan.NAMINGS, help="how outputs are called (plain)")
    init.add_argument("--timeout", type=float, metavar="SECONDS", help="stop an agent after that")
    init.set_defaults(perform=_init)
    more = common(
        verbs.add_parser(
            "add",
            help="add an agent to a prepared run; `dispatch` starts it",
            description="Add an agent. With --of it does what that one left open: it is told where "
            "that one's outputs are, and its task is made of that one's errors and notes.",
        )
    )
    more.add_argument("--agent", default="", metavar="NAME", help="its name")
    more.add_argument("--task", default="", help="its task, one paragraph")
    more.add_argument("--of", default="", metavar="AGENT", help="whose part is missing")
    more.add_argument("--role", default="", help="what it is, in the first line of its prompt")
    more.add_argument("--after", action="append", default=[], metavar="AGENT",
                      help="it works on what AGENT wrote, and is dispatched after it")  # fmt: skip
    more.add_argument("--input", action="append", default=[], metavar="PATH",
                      help="a file that it must read")  # fmt: skip
    more.add_argument("--format", default="md", help="the extension of its output (md)")
    more.add_argument("--critical", action="store_true", help="its output is read first")
    more.add_argument("--may-launch", action="store_true", help="it may launch agents of its own")
    more.add_argument("--timeout", type=float, metavar="SECONDS", help="stop it after that")
    more.set_defaults(perform=_add)


def _init(options: argparse.Namespace) -> int:
    folder = Path(os.path.abspath(options.folder))
    wish = plan.parse(_wish(options), folder)
    now = utc_now()
    if options.dry_run:
        step = found.prepare(folder, wish, now)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        step = found.found(folder, wish, now)
    if options.json:
        say_step("init", folder=str(folder), done=not options.dry_run, **told(step))
    else:
        show(step, dry=options.dry_run)
    return 0


def _add(options: argparse.Namespace) -> int:
    place = layout(options.folder)
    wish = {
        "agent": options.agent,
        "task": options.task,
        "role": options.role,
        "after": options.after,
        "inputs": options.input,
        "format": options.format,
        "critical": options.critical,
        "may_launch": options.may_launch,
        "timeout_s": options.timeout,
    }

    def step() -> Step:
        return adding.add(place, wish, options.of)

    made = step() if options.dry_run else manifests.act(place, step)
    if options.json:
        say_step("add", done=not options.dry_run, **told(made))
    else:
        show(made, dry=options.dry_run)
    return 0


def _wish(options: argparse.Namespace) -> dict[str, object]:
    """The plan of the file, with what the command line says besides."""
    value = _read(options.plan) if options.plan else {}
    for key, said in (
        ("task", options.task),
        ("scope", options.scope),
        ("format", options.format),
        ("naming", options.naming),
        ("requirements", options.requirement),
        ("constraints", options.constraint),
    ):
        if said:
            value[key] = said
    listed = value.get("agents", [])
    agents = [*(listed if isinstance(listed, list) else []), *map(_agent, options.agent)]
    for each in agents if agents else []:
        if isinstance(each, dict):
            if options.timeout is not None:
                each.setdefault("timeout_s", options.timeout)
            own = each.get("inputs", [])
            each["inputs"] = [*(own if isinstance(own, list) else [own]), *options.input]
    for said in options.after:
        name, other = _pair(said, "--after")
        for each in agents:
            if isinstance(each, dict) and each.get("agent") == name:
                each.setdefault("after", []).append(other)
                break
        else:
            raise Refused(f"--after {said}: {name} is not in the plan")
    return value | {"agents": agents}


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
        raise Refused(f"{path}: is not valid JSON") from None
    if not isinstance(value, dict):
        raise Refused(f"{path}: holds no JSON object")
    return value
