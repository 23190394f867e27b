"""What `acp workspaces` reads and says: where a run stands, what is to be decided, what a text holds."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded, stamp
from acp_core.files.records import File, moment
from acp_core.model import Document, Finding, Severity, format
from acp_core.model.action_spec import PLACE, Answer, By, Field, Kind, QuerySpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.spoken import mark
from acp_core.protocols.kit import tools
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces import rules, schema, state
from acp_core.protocols.workspaces.conduct.advance import note
from acp_core.protocols.workspaces.read import manifest as manifest_module
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.read.conflict_hints import Hint
from acp_core.protocols.workspaces.read.manifest import layout, read_manifest, read_run
from acp_core.protocols.workspaces.rules import required_inputs
from acp_core.protocols.workspaces.schema import Conflict, Returned, Run, named_pair
from acp_core.protocols.workspaces.write import integration

_NAMED = 8  # agents of whom a line tells
Object = dict[str, Any]


def status(values: Values) -> Answer:
    """Show the state of the run and of each agent."""
    place, now = layout(values.folder), utc_now()
    run = manifest_module.read_run(place, now)
    if not run.agents:
        raise Refused(f"{place.root}: no run of agents in this folder")
    found = rules.check(run)
    agents = [_agent(each, run, found, now) for each in run.agents]
    data = {
        "state": state.of_run(run),
        "agents": agents,
        "steps": _steps(run),
        "findings": [_finding(each) | {"agent": rules.about(each, run)} for each in found],
    }
    lines = [f"{place.root.name}: {state.of_run(run)}", *_agent_lines(agents), *_step_lines(run)]
    lines += _finding_lines(found, run)
    return Answer(data, tuple(lines))


def _finding_lines(found: tuple[Finding, ...], run: Run) -> Iterator[str]:
    """Each finding with whom it is about; those that say the same of several stand together."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for each in found:
        names = alike.setdefault((each.severity.value, each.code, each.message), [])
        names += [name for name in [rules.about(each, run)] if name]
    for (severity, code, message), names in alike.items():
        who = list(dict.fromkeys(names))
        more = f" and {len(who) - _NAMED} more" if len(who) > _NAMED else ""
        about = f"{', '.join(who[:_NAMED])}{more}: " if who else ""
        yield f"  {severity} {code} {about}{message}"


def _agent(agent: schema.Agent, run: Run, found: tuple[Finding, ...], now: datetime) -> Object:
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


def _agent_lines(agents: list[Object]) -> Iterator[str]:
    width = max(len(each["agent"]) for each in agents)
    for each in agents:
        decision = f" ({each['decision']})" if each["decision"] else ""
        quiet = f", last write {each['last_write']} ago" if each["last_write"] else ""
        why = f": {each['note']}" if each["note"] else ""
        said = f"{each['state']}{decision}, attempt {each['attempt']}{quiet}{why}"
        yield f"  {each['agent'].ljust(width)}  {said}"


def _steps(run: Run) -> list[Object]:
    passed = zip(state.STEPS, state.steps(run), strict=True)
    return [
        {"step": number, "what": label, "done": done}
        for number, ((_, label), done) in enumerate(passed, 1)
    ]


def _step_lines(run: Run) -> list[str]:
    marks = {True: mark("✓", "done:"), False: mark("○", "open:")}
    return [f"  {marks[s['done']]} {s['step']}. {s['what']}" for s in _steps(run)]


def steps(values: Values) -> Answer:
    """The seven steps of integration, and in which order outputs are read."""
    place = layout(values.folder)
    run, manifest = manifest_module.read_run(place, utc_now()), read_manifest(place)
    order = [
        {"agent": name, "file": str(path), "bytes": size}
        for name, path, size in integration.reading(run, manifest)
    ]
    lines = [f"{place.root.name}: {state.of_run(run)}", *_step_lines(run)]
    lines += [
        f"  reads {number}. {each['file']} ({each['bytes']} bytes, of {each['agent']})"
        for number, each in enumerate(order, 1)
    ]
    data = {"state": state.of_run(run), "steps": _steps(run), "order": order}
    return Answer(data, tuple(lines), 0 if all(state.steps(run)) else 1)


def undecided(values: Values) -> Answer:
    """What is to be decided, and what was."""
    place = layout(values.folder)
    run = manifest_module.read_run(place, utc_now())
    if not run.agents:
        raise Refused(f"{place.root}: no run of agents in this folder")
    found = rules.check(run)
    left = [agent.name for agent in run.agents if state.waits(agent, run, found)]
    rows = [
        {
            "agent": agent.name,
            "ended": _ended(agent, run, found),
            "decision": agent.decision,
            "choices": list(state.choices(agent, run)),
            "note": note(run, agent.name),
        }
        for agent in run.agents
        if agent.name in left or agent.decision
    ]
    lines = tuple(map(_decision_line, rows)) or ("no pending decisions",)
    return Answer({"agents": rows, "undecided": left}, lines, 1 if left else 0)


def _ended(agent: schema.Agent, run: Run, found: tuple[Finding, ...]) -> str:
    """How it ended; of one that contradicts itself, that."""
    now = state.of_agent(agent, run, found)
    return now if now in state.DOUBTFUL else state.ending(agent, run) or "not finished"


def _decision_line(row: Object) -> str:
    what = row["decision"] or f"needs your decision: {', '.join(row['choices'])}"
    why = f" ({row['note']})" if row["note"] else ""
    return f"{row['agent']}: {row['ended']}: {what}{why}"


def list_conflicts(values: Values) -> Answer:
    """The conflicts that are written down, and what a machine finds now."""
    place = layout(values.folder)
    recorded = integration.recorded_conflicts(place)
    known = {integration.conflicts_about(each) for each in recorded}
    new = [
        each
        for each in integration.current_hints(place)
        if integration.conflicts_about(each) not in known
    ]
    waiting = [each for each in recorded if each.is_open and not each.is_hint]
    lines = (*map(_conflict_line, recorded), *map(_hint_line, new)) or ("no conflicts",)
    data = {"conflicts": [each.raw for each in recorded], "hints": [each._asdict() for each in new]}
    return Answer(data, lines, 1 if waiting else 0)


def _conflict_line(conflict: Conflict) -> str:
    waits = "unresolved hint" if conflict.is_hint else "open"
    how = conflict.sentence or ("dismissed" if conflict.is_dismissed else waits)
    why = f" [{conflict.why}]" if conflict.why and how == waits else ""
    about = f"{conflict.between} on {conflict.topic} ({conflict.category})"
    return f"{conflict.id}  {about}{why}: {how}"


def _hint_line(hint: Hint) -> str:
    pair = named_pair(hint.agents)
    return f"not recorded: {pair} on {hint.topic} ({hint.category}) [{hint.why}]"


def check_prompt(values: Values) -> Answer:
    """What is wrong with prompts."""
    prompts = [{"file": name, "findings": _prompt_findings(name)} for name in values.file]
    bad = any(f["severity"] == Severity.ERROR.value for p in prompts for f in p["findings"])
    lines: list[str] = []
    for each in prompts:
        lines.append(f"{each['file']}: {'' if each['findings'] else 'no findings'}")
        lines += map(_finding_line, each["findings"])
    return Answer({"ok": not bad, "prompts": prompts}, tuple(lines), 2 if bad else 0)


def _prompt_findings(name: str) -> Any:
    run = _run_of(name)
    found = [_finding(each) for rule in rules.PROMPT_RULES for each in rule(run)]
    return found + [
        {
            "severity": "warning",
            "code": "B49",
            "message": f"the required input {path} does not exist",
        }
        for path in required_inputs(run.prompts[0].text)
        if os.path.isabs(path) and not os.path.isfile(path)
    ]


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "message": finding.message,
    }


def _finding_line(finding: dict[str, str]) -> str:
    return f"  {finding['severity']} {finding['code']} {finding['message']}"


def _run_of(name: str) -> Run:
    """A run that holds nothing but this prompt."""
    path = Path(os.path.abspath(name))
    text = _bytes(name).decode("utf-8", "replace")
    return Run(path.parent, path.parent, utc_now(), prompts=(scan.prompt_of(_file(path), text),))


def _bytes(name: str) -> bytes:
    try:
        return read_bounded(Path(os.path.abspath(name)), scan.LIMIT)
    except Unreadable as error:
        raise Refused(f"{name}: {error}") from None


def _file(path: Path) -> File:
    found = stamp(path)
    changed = moment(found.modified / 1e9) if found else utc_now()
    return File(path.name, path, found.size if found else 0, changed)


def parse_return(values: Values) -> Answer:
    """The object that was returned in a text, and what is wrong with it."""
    given = values.file != "-"
    path = Path(os.path.abspath(values.file)) if given else Path("standard input")
    data = _bytes(values.file) if given else sys.stdin.buffer.read(scan.LIMIT)
    return returned(data.decode("utf-8", "replace"), path)


def returned(text: str, path: Path) -> Answer:
    """The object that was returned in a text, and what is wrong with it.

    Args:
        text: what an agent answered.
        path: the file in which that stands.
    """
    value, prose = schema.parse_return(text)
    if value is None:
        raise Refused("no object with a status in this text")
    run = Run(
        path.parent, path.parent, utc_now(), returns=(Returned(_file(path), value, "", prose),)
    )
    found = [finding for rule in rules.RETURN_RULES for finding in rule(run)]
    bad = any(finding.severity is Severity.ERROR for finding in found)
    findings = [_finding(each) for each in found]
    lines = (*(f"{key}: {each}" for key, each in value.items()), *map(_finding_line, findings))
    how = schema.outcome(value.get("status"))
    answer = {"ok": not bad, "status": how, "value": value, "findings": findings}
    return Answer(answer, lines, 2 if bad else 0)


_HERE = "acp_core.protocols.workspaces.queries"

READ = tools.READ._replace(
    sentence="Read your prompt, a required input of it, or a file of your workspace. Without a document: list them.",
    answer=f"{_HERE}:read_meant",
)

CHECK_RETURN = QuerySpec(
    "check_return",
    "Check the object that you are about to return.",
    f"{_HERE}:check_return",
    (
        PLACE,
        WHO,
        Field("text", "Text", "Give the whole text that you will return.", Kind.LINES,
              required=True, most=1_000_000),
    ),
    by=By.PARTICIPANT,
)  # fmt: skip

TOOLS = (READ, CHECK_RETURN)
"""The tools of a sub-agent's program: to read what is meant for it, and to check what it returns."""


def read_meant(values: Values) -> Answer:
    """A document that is meant for this agent: others' workspaces are not."""
    place = layout(values.folder)
    run = read_run(place, utc_now())
    agent = run.by_name.get(values.participant)
    files = {each.path for each in agent.files} if agent else set()
    files |= {each.file.path for each in agent.records} if agent else set()
    if agent and agent.prompt:
        files |= {agent.prompt.file.path, *map(Path, required_inputs(agent.prompt.text))}
    meant = {os.path.abspath(place.root / each) for each in files}

    def is_meant(document: Document) -> bool:
        return document.path is not None and os.path.abspath(document.path) in meant

    return tools.read(values, is_meant)


def check_return(values: Values) -> Answer:
    """The object in a text that an agent returns, and what is wrong with it."""
    name = f"{safe_id(values.participant)}.txt"
    return returned(values.text, layout(values.folder).root / name)
