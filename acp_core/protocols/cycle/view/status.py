"""The status of a cycle in words: what its state file says, and what its files show."""

from __future__ import annotations

from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema import Cycle

_REASON = 120  # characters of the reason of a failure in the headline
_SHOWN = {
    state.FAILURES: "with failures",
    state.UNDECIDED: "a decision is open",
    state.BLOCKED: "blocked",
    state.UNPROVEN: "not proven",
    state.STALLED: "stalled",
}


def describe_status(cycle: Cycle, found: str) -> str:
    """What the cycle is marked as, and what the files show where that is something else.

    Args:
        cycle: as it was read.
        found: the verdict of `state.verdict`.
    """
    marked = cycle.status or "no status"
    reason = cycle.state.failure_reason
    if cycle.status == "failed" and reason:
        marked += f" ({reason[:_REASON]})"
    shown = _SHOWN.get(found, "")
    if not shown or (cycle.status == "failed" and found == state.FAILURES):
        return marked
    if cycle.status == "completed":
        return f"marked completed, but {shown}"
    return f"{marked}, {shown}"
