"""``acp cycle status``: where a cycle stands, in a screenful."""

from __future__ import annotations

import argparse

from acp_core.model import format
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.commands.common import chosen
from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.schema import Cycle, Object
from acp_core.protocols.cycle.view.panels import options
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.kit.command_line import say, say_json


def status(given: argparse.Namespace) -> int:
    """Print where it stands. Returns 0."""
    root, cycle = chosen(given.folder, given.cycle)
    found = _found(cycle, str(root))
    if given.json:
        say_json({"schema": "acp.cycle-status/1", **found})
        return 0
    limit = found["max_iterations"]
    say(f"{cycle.id}  {schema.text(cycle.value.get('title'))}")
    covered = f", coverage {found['coverage']}" if found["coverage"] else ""
    said = f"claimed {found['claimed']}, {found['verdict']}; iteration {found['iteration']}"
    say(said + (f" of {limit}" if limit else "") + f"; {found['tests']}" + covered)
    pid = found["orchestrator"]
    other = f", which conducts {found['conducts']}" if found["conducts"] != cycle.id else ""
    say(f"orchestrator: process {pid}{other}" if pid else "orchestrator: none runs")
    for name in schema.AGENTS:
        agent = cycle.agent(name)
        at = cycle.at(agent.get("started_at")) if agent.get("status") == "running" else None
        since = f" for {format.age(at, cycle.now)}" if at else ""
        version = f"  v{schema.text(agent.get('version'))}" if agent.get("version") else ""
        trouble = f"  {schema.text(agent.get('error'))}" if agent.get("error") else ""
        word = state.agent_status(cycle, name)
        say(f"  {name:<4} {word}{since}{version}  {state.dependency(cycle, name)}{trouble}")
    for each in state.decisions(cycle):
        say(f"decide {schema.text(each.get('id'))}: {schema.text(each.get('description'))}")
        for number, option in enumerate(options(each), 1):
            say(f"    {number}. {option}")
    for each in state.blockers(cycle):
        whom = schema.text(each.get("routed_to"))
        asked = f" (asked: {whom})" if whom else ""
        say(f"blocker {schema.text(each.get('id'))}: {schema.text(each.get('description'))}{asked}")
    for each in changes.unheard(cycle.value):
        said = f"{schema.text(each.get('action'))} {schema.text(each.get('detail'))}".strip()
        say(f"requested, not picked up: {said}")
    return 0


def _found(cycle: Cycle, root: str) -> Object:
    alive = process.running(root)
    tests = state.tests(cycle)
    return {
        "cycle": cycle.id,
        "title": schema.text(cycle.value.get("title")),
        "claimed": cycle.status or cycle.record.problem or "unknown",
        "verdict": state.verdict(cycle),
        "iteration": cycle.iteration,
        "max_iterations": schema.count(cycle.value.get("max_iterations")),
        "tests": str(tests),
        "coverage": tests.covered if tests.proven else None,
        "orchestrator": alive.pid if alive else None,
        "conducts": process.conducted(alive) if alive else None,
        "agents": {name: state.agent_status(cycle, name) for name in schema.AGENTS},
        "decisions": [
            {"id": schema.text(each.get("id")), "description": schema.text(each.get("description")),
             "options": options(each)}
            for each in state.decisions(cycle)
        ],
        "blockers": [
            {"id": schema.text(each.get("id")), "description": schema.text(each.get("description")),
             "routed_to": schema.text(each.get("routed_to"))}
            for each in state.blockers(cycle)
        ],
        "requested": [schema.text(each.get("action")) for each in changes.unheard(cycle.value)],
    }  # fmt: skip
