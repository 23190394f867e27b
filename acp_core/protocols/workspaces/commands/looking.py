"""``acp workspaces status``, ``check-prompt`` and ``parse-return``."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded, stamp
from acp_core.files.records import File, moment
from acp_core.model import Finding, Severity, format
from acp_core.model.clock import utc_now
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.command_line import common, say_step
from acp_core.protocols.workspaces.conduct.follow import note
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.rules import prompts as prompt_rules
from acp_core.protocols.workspaces.rules import returns as return_rules
from acp_core.protocols.workspaces.rules.runs import required_inputs
from acp_core.protocols.workspaces.schema import Returned, Run, returns
from acp_core.protocols.workspaces.write import Refused, dispatch
from acp_core.protocols.workspaces.write.layout import layout


def add(verbs: Any) -> None:
    """Add the commands."""
    status = common(
        verbs.add_parser(
            "status",
            help="where each agent and the run stand",
            description="Where each agent and the run stand.",
        ),
        writes=False,
    )
    status.set_defaults(perform=_status)
    check = verbs.add_parser(
        "check-prompt",
        help="check prompts against the template",
        description="Check prompts against the template.",
    )
    check.add_argument("file", nargs="+", help="a prompt")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(perform=_check)
    back = verbs.add_parser(
        "parse-return",
        help="find the returned object in what was said",
        description="Find the returned object in what was said.",
    )
    back.add_argument("file", nargs="?", default="-", help="what was said (-: standard input)")
    back.add_argument("--json", action="store_true", help="print one JSON object")
    back.set_defaults(perform=_parse)


def _status(options: argparse.Namespace) -> int:
    place = layout(options.folder)
    now = utc_now()
    run = dispatch.look(place, now)
    if not run.agents:
        raise Refused(f"{place.root}: there is no run of agents here")
    found = rules.check(run)
    agents = [_agent(each, run, found, now) for each in run.agents]
    steps = [
        {"step": number, "what": label, "done": passed}
        for number, ((_, label), passed) in enumerate(
            zip(state.STEPS, state.steps(run), strict=True), 1
        )
    ]
    if options.json:
        told = [{"code": f.code, "severity": f.severity.value, "message": f.message} for f in found]
        say_step("status", state=state.of_run(run), agents=agents, steps=steps, findings=told)
        return 0
    say(f"{place.root.name}: {state.of_run(run)}")
    width = max(len(each["agent"]) for each in agents)
    for each in agents:
        decision = f" ({each['decision']})" if each["decision"] else ""
        quiet = f", last write {each['last_write']} ago" if each["last_write"] else ""
        why = f": {each['note']}" if each["note"] else ""
        said = f"{each['state']}{decision}, attempt {each['attempt']}{quiet}{why}"
        say(f"  {each['agent'].ljust(width)}  {said}")
    for step in steps:
        say(f"  {'✓' if step['done'] else '○'} {step['step']}. {step['what']}")
    for finding in found:
        say(f"  {finding.severity.value} {finding.code} {finding.message}")
    return 0


def _agent(
    agent: schema.Agent, run: Run, found: tuple[Finding, ...], now: datetime
) -> dict[str, Any]:
    return {
        "agent": agent.name,
        "task_id": agent.task_id,
        "state": state.of_agent(agent, run, found),
        "decision": agent.decision,
        "attempt": agent.attempt,
        "last_write": format.age(agent.last_write, now) if agent.last_write else "",
        "files": len(agent.files),
        "note": note(run, agent.name),
    }


def _check(options: argparse.Namespace) -> int:
    results = []
    for name in options.file:
        run = _run_of(name)
        found = [finding for rule in prompt_rules.RULES for finding in rule(run)]
        missing = [
            path
            for path in required_inputs(run.prompts[0].text)
            if os.path.isabs(path) and not os.path.isfile(path)
        ]
        told = [(f.severity.value, f.code, f.message) for f in found]
        told += [("warning", "B49", f"the required input {path} is not there") for path in missing]
        results.append((name, told))
    bad = any(Severity.ERROR.value == severity for _, told in results for severity, *_ in told)
    if options.json:
        prompts = [
            {
                "file": name,
                "findings": [{"severity": s, "code": c, "message": m} for s, c, m in told],
            }
            for name, told in results
        ]
        say_step("check-prompt", ok=not bad, prompts=prompts)
        return 2 if bad else 0
    for name, told in results:
        say(f"{name}: {'nothing found' if not told else ''}")
        for severity, code, message in told:
            say(f"  {severity} {code} {message}")
    return 2 if bad else 0


def _run_of(name: str) -> Run:
    """A run that holds nothing but this prompt."""
    path = Path(os.path.abspath(name))
    try:
        text = read_bounded(path, scan.LIMIT).decode("utf-8", "replace")
    except Unreadable as error:
        raise Refused(f"{name}: {error}") from None
    file = _file(path)
    return Run(path.parent, path.parent, utc_now(), prompts=(scan.prompt_of(file, text),))


def _file(path: Path) -> File:
    found = stamp(path)
    changed = moment(found.modified / 1e9) if found else utc_now()
    return File(path.name, path, found.size if found else 0, changed)


def _parse(options: argparse.Namespace) -> int:
    if options.file == "-":
        data = sys.stdin.buffer.read(scan.LIMIT)
        path = Path("standard input")
    else:
        path = Path(os.path.abspath(options.file))
        try:
            data = read_bounded(path, scan.LIMIT)
        except Unreadable as error:
            raise Refused(f"{options.file}: {error}") from None
    value, prose = returns.parse(data.decode("utf-8", "replace"))
    if value is None:
        raise Refused("no object with a status was found in it")
    returned = Returned(_file(path), value, "", prose)
    run = Run(path.parent, path.parent, utc_now(), returns=(returned,))
    found = [finding for rule in return_rules.RULES for finding in rule(run)]
    bad = any(finding.severity is Severity.ERROR for finding in found)
    told = [{"severity": f.severity.value, "code": f.code, "message": f.message} for f in found]
    how = schema.outcome(value.get("status"))
    if options.json:
        say_step("parse-return", ok=not bad, status=how, value=value, findings=told)
    else:
        for key, each in value.items():
            say(f"{key}: {each}")
        for each in told:
            say(f"  {each['severity']} {each['code']} {each['message']}")
    return 2 if bad else 0
