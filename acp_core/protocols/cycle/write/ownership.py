"""Who may write which field of the state, and what becomes of what others wrote.

Source: development cycle specification, "State Consistency Rules" (single writer per field).
Agents may write the fields that are theirs; a status that pauses or stops the cycle is a signal
that anybody may give; unknown fields are kept, except for those that say when a cycle is done. Everything else belongs to the orchestrator.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from acp_core.protocols.cycle.schema import Object

OWNERS = {
    "requirements": "ra",
    "edge_cases": "ra",
    "exploration": "ep",
    "plan": "ep",
    "changes": "cd",
    "implementation": "cd",
    "test_results": "vas",
    "summary": "vas",
}
GUARDED = ("convergence", "phase_gates", "agent_focus")  # nobody eases what is wanted of it
SIGNALS = ("paused", "failed")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A state in which what others changed is settled: taken over, or put back."""

    state: Object
    merged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def reconcile(known: Object, disk: Object) -> Reconciled:
    """Settle a file that somebody else wrote.

    Args:
        known: what acp wrote last.
        disk: what the file holds now.
    """
    state = copy.deepcopy(known)
    merged, refused = [], []
    for key in (*known, *(key for key in disk if key not in known)):
        if key in disk and key in known and disk[key] == known[key]:
            continue
        if key in OWNERS and key in disk:
            state[key] = copy.deepcopy(disk[key])
            merged.append(key)
        elif key not in known and key not in GUARDED:
            state[key] = copy.deepcopy(disk[key])
        elif key == "status" and known[key] == "running" and disk.get(key) in SIGNALS:
            state[key] = disk[key]
            merged.append(key)
        elif key not in ("updated_at", "revision"):
            refused.append(key)
    return Reconciled(state, tuple(merged), tuple(refused))
