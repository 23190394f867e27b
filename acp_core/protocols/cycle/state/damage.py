"""Whether a state is whole: only what is may be changed.

Source: development cycle specification, "Shared State" and "Agent Dependencies". What is lacking
here decides who works next: whoever went on without it would begin work anew that is done.
"""

from __future__ import annotations

from acp_core.protocols.cycle.schema import AGENTS, STATUSES, Cycle, Object, count, text


def lacking(value: Object) -> str:
    """What a state lacks without which nobody can go on, behind its name; "" where it is whole."""
    agents = value.get("agents")
    if not isinstance(agents, dict):
        return "has no agents"
    missing = [name for name in AGENTS if not isinstance(agents.get(name), dict)]
    if missing:
        return f"does not hold the agent {missing[0]}"
    status = text(value.get("status"))
    if status not in STATUSES:
        return f"has the unknown status {status[:40]!r}" if status else "has no status"
    iteration = value.get("current_iteration")
    if iteration is not None and count(iteration) is None:
        return "has an iteration count that is not a whole number"
    return ""


def problem(cycle: Cycle) -> str:
    """Why nothing is written over a cycle's state file; "" where it is there and whole."""
    return cycle.record.problem or lacking(cycle.value)
