"""Rules on the times that the state records.

Source: development cycle specification, "State Consistency Rules".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import AGENTS, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

_TOP = ("created_at", "updated_at", "completed_at")
_PARTS = ("requirements", "exploration", "plan", "implementation", "validation")
_STALE = timedelta(minutes=10)
Findings = Iterator[Finding]


def _stamps(cycle: Cycle) -> Iterator[tuple[str, object]]:
    """Every time in the state, with its name."""
    value = cycle.value
    yield from ((key, value.get(key)) for key in _TOP)
    for name in AGENTS:
        yield from ((f"{name} {key}", cycle.agent(name).raw.get(key)) for key in _SPAN)
    for part in _PARTS:
        yield f"{part} last_updated", schema.obj(value.get(part)).get("last_updated")
    yield "test_results last_run", schema.obj(value.get("test_results")).get("last_run")
    for each in schema.objects(value.get("phase_errors")):
        yield "phase_errors timestamp", each.get("timestamp")
    for entry in cycle.state.feedback:
        yield "feedback timestamp", entry.raw.get("timestamp")
    for record in cycle.state.iterations:
        yield from ((f"iteration {key}", record.raw.get(key)) for key in _SPAN)


_SPAN = ("started_at", "completed_at")


def a10(cycle: Cycle) -> Findings:
    """Times can be read, say their offset, and a Z means UTC."""
    held = [(key, value) for key, value in _stamps(cycle) if value not in (None, "")]
    unread = [key for key, value in held if cycle.at(value) is None]
    loose = [key for key, value in held if cycle.at(value) and not schema.has_offset(value)]
    if unread:
        message = f"{_several(unread)} unreadable as time"
        yield error("A10", message, cycle.record.file)
    if loose:
        message = f"{_several(loose)} no ISO 8601 time with an offset: taken as UTC+8"
        yield warning("A10", message, cycle.record.file)
    if cycle.shifted:
        yield advice("A10z", "Times with Z are in the future: read as UTC+8", cycle.record.file)


def _several(names: list[str]) -> str:
    several = list(dict.fromkeys(names))
    rest = f" and {len(several) - 4} more" if len(several) > 4 else ""
    return f"{', '.join(several[:4])}{rest} {'is' if len(names) == 1 else 'are'}"


def a11(cycle: Cycle) -> Findings:
    """No agent did anything after the cycle was last written, or had ended."""
    ended = cycle.status == "completed"
    key = "completed_at" if ended else "updated_at"
    last = (cycle.state.completed_at if ended else None) or cycle.state.updated_at
    spans = ((name, cycle.agent(name)) for name in AGENTS)
    late = [
        f"{name} {stamp}"
        for name, agent in spans
        for stamp, at in zip(_SPAN, (agent.started_at, agent.completed_at), strict=True)
        if last and at and at > last
    ]
    if late:
        verb = "lies" if len(late) == 1 else "lie"
        yield warning("A11", f"{', '.join(late)} {verb} after {key}", cycle.record.file)


def a12(cycle: Cycle) -> Findings:
    """Nothing completes before it starts; an agent at work was started again."""
    for name in AGENTS:
        agent = cycle.agent(name)
        start, end = agent.started_at, agent.completed_at
        again = state.agent_status(cycle, name) in ("running", "waiting")
        if start and end and end < start and not again:
            yield error("A12", f"{name} completed before it started", cycle.record.file)
    start, end = cycle.state.created_at, cycle.state.completed_at
    if start and end and end < start:
        yield error("A12", "The cycle completed before it was created", cycle.record.file)


def a13(cycle: Cycle) -> Findings:
    """In a completed cycle every agent has completed as many iterations as there were."""
    behind = []
    for name in AGENTS:
        done = cycle.agent(name).iterations_completed
        if done is not None and done < cycle.iteration:
            behind.append(f"{name} {done}")
    if behind and cycle.status == "completed":
        message = f"Iteration {cycle.iteration} is completed; iterations_completed: "
        yield advice("A13", message + ", ".join(behind), cycle.record.file)


def a18(cycle: Cycle) -> Findings:
    """The state is as new as the newest file of the progress folder.

    A file counts only where it is newer than the state's own file too: copies and checkouts give
    all files the time of the copy.
    """
    updated = cycle.state.updated_at
    newest = max(cycle.files, key=lambda file: file.changed, default=None)
    if updated is None or newest is None:
        return
    known = max(updated, cycle.record.file.changed)
    if newest.changed > known + _STALE and newest.changed <= cycle.now + schema.SKEW:
        message = f"{newest.path.name} is newer than the state by more than 10 minutes"
        yield warning("A18", message, cycle.record.file)


RULES = (a10, a11, a12, a13, a18)
