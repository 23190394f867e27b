"""Rules on the state file.

Source: development cycle specification, "Shared State" and "Agent Dependencies".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from acp_core.files.records import NO_OBJECT
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import AGENTS, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

_ID = re.compile(r"cycle-v1-\d{8}(?:T\d{6})?-[a-z0-9][a-z0-9-]*")
Findings = Iterator[Finding]


def a01(cycle: Cycle) -> Findings:
    """The state file can be read; what is being written right now is granted a moment."""
    problem = cycle.record.problem
    if problem and problem != NO_OBJECT and not scan.young(cycle.record, cycle.now):
        yield error("A01", f"The state file {cycle.record.problem}", cycle.record.file)


def a02(cycle: Cycle) -> Findings:
    """It is an object that holds the agents."""
    if cycle.record.problem == NO_OBJECT and not scan.young(cycle.record, cycle.now):
        yield error("A02", f"The state file {NO_OBJECT}", cycle.record.file)
    elif cycle.record.value is not None and not isinstance(cycle.value.get("agents"), dict):
        yield error("A02", "The state has no agents", cycle.record.file)


def a03(cycle: Cycle) -> Findings:
    """Its id is the name of its file."""
    said = cycle.state.cycle_id
    if cycle.record.value is not None and said != cycle.id:
        yield error("A03", f"cycle_id is {said!r}, but the file is {cycle.id}", cycle.record.file)


def a04(cycle: Cycle) -> Findings:
    """Its id has the form cycle-v1-date-word."""
    if not _ID.fullmatch(cycle.id):
        yield warning(
            "A04", f"{cycle.id} does not have the form cycle-v1-date-word", cycle.record.file
        )


def a05(cycle: Cycle) -> Findings:
    """The status is a known word."""
    if cycle.record.value is not None and cycle.status not in schema.STATUSES:
        yield error("A05", f"The status {cycle.status!r} is unknown", cycle.record.file)


def a06(cycle: Cycle) -> Findings:
    """The current iteration is a whole number."""
    said = cycle.value.get("current_iteration")
    if said is not None and schema.count(said) is None:
        yield error("A06", "current_iteration is not a whole number from 0", cycle.record.file)


def a07(cycle: Cycle) -> Findings:
    """No more iterations than the limit."""
    limit = cycle.state.max_iterations
    if limit is not None and cycle.iteration > limit:
        yield warning("A07", f"Iteration {cycle.iteration} is above {limit}", cycle.record.file)


def a08(cycle: Cycle) -> Findings:
    """All four agents are there."""
    agents = cycle.value.get("agents")
    if not isinstance(agents, dict):
        return
    for name in AGENTS:
        if not isinstance(agents.get(name), dict):
            yield error("A08", f"The agent {name} is missing", cycle.record.file)
    for name in agents:
        if name not in AGENTS:
            yield advice("A08", f"The agent {name} is unknown", cycle.record.file)


def a09(cycle: Cycle) -> Findings:
    """Each agent's status is a known word."""
    for name in AGENTS:
        agent = cycle.agent(name)
        said = agent.status
        if not agent.raw or said in schema.AGENT_STATUSES:
            continue
        if state.agent_status(cycle, name) != "unknown":
            yield warning("A09", f"{name}: {said!r} is read as a synonym", cycle.record.file)
        else:
            yield error("A09", f"{name}: the status {said!r} is unknown", cycle.record.file)


def a14(cycle: Cycle) -> Findings:
    """A completed cycle says when; one that goes on says it only of an earlier end."""
    ended = cycle.state.completed_at
    if cycle.status == "completed" and not cycle.value.get("completed_at"):
        yield warning("A14", "Completed without completed_at", cycle.record.file)
    elif cycle.status == "running" and ended and not _begun_after(cycle, ended):
        message = (
            "completed_at is set, but the status is running and no later iteration is recorded"
        )
        yield error("A14", message, cycle.record.file)


def _begun_after(cycle: Cycle, ended: datetime) -> bool:
    """Whether an iteration began after the cycle had ended."""
    for each in cycle.state.iterations:
        if (each.started_at and each.started_at >= ended) or not each.raw.get("completed_at"):
            return True
    updated = cycle.state.updated_at
    return cycle.iteration > 1 and updated is not None and updated >= ended


def a16(cycle: Cycle) -> Findings:
    """A completed cycle is in the phase "complete"."""
    phase = cycle.state.current_phase
    if cycle.status == "completed" and phase and phase != "complete":
        yield warning("A16", f"Completed in the phase {phase}", cycle.record.file)


READING = (a01, a02, a03, a04, a05)
RULES = (a06, a07, a08, a09, a14, a16)
