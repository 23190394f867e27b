"""How deep runs stand in each other: an agent may manage a run of its own, and no run is deeper.

Source: agent workspaces specification, "Prompt Template for Subagent Dispatch" ("You [may/may not]
launch additional subagents"). What the agents of a manager launched would be seen by nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.read.detect import level


def require(root: Path, launching: Iterable[str] = ()) -> None:
    """See to it that a run does not stand too deep, nor lets its agents go deeper.

    Args:
        root: where the run stands, or will.
        launching: the agents that may launch others.

    Raises:
        Refused: it does.
    """
    found, names = level(root), list(launching)
    if found > schema.DEEPEST:
        raise Refused(
            f"{root} is in the workspace of a manager's agent: runs cannot be nested so deeply"
        )
    if found == schema.DEEPEST and names:
        raise Refused(f"{names[0]} may not launch agents: this run already belongs to a manager")
