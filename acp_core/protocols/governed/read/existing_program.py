"""Runs that the existing program made: what is done in them is handed to that program.

It keeps more than acp does (budgets, sessions, escalations), so its own commands act on its runs
wherever it is there. Where it is not, acp's engine acts on the same files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import objects, text

NAME = "agentxchain"


def program(run: Run) -> str | None:
    """The existing program, where it made this run and is there; None where acp acts itself."""
    if run.state.reason or run.by_acp:
        return None
    return shutil.which(NAME)


def is_there() -> bool:
    """Whether the existing program is on the PATH."""
    return shutil.which(NAME) is not None


def words(run: Run, verb: str, *, turn: str = "", role: str = "", reason: str = "") -> list[str]:
    """What the program is told so that it does what acp calls ``verb``; [] where it cannot.

    Args:
        run: the run.
        verb: a verb of `acp governed`.
        turn: the turn that it is about, where there are several.
        role: who takes the next turn.
        reason: why a turn is rejected, or a run stopped.
    """
    several = len(objects(run.state.value.get("active_turns"))) > 1
    named = ["--turn", turn] if turn and several else []
    options = ["--reason", reason] if reason else []
    if verb == "step":
        return ["resume", *(["--role", role] if role else [])]
    if verb in ("approve-transition", "approve-completion"):
        return [verb]
    if verb == "accept-turn":
        return [verb, *named]
    if verb == "reject-turn":
        return [verb, *named, *options]
    if verb == "escalate":
        return [verb, *options]
    if verb == "unblock":
        id = escalation(run.root)
        return ["unblock", id] if id else ["resume"]
    return []


def escalation(root: Path) -> str:
    """The id of the escalation that was raised last and is not resolved, "" where there is none."""
    open_ids: dict[str, None] = {}
    path = schema.inside(root, schema.ESCALATIONS)
    for line in schema.read_log(path).lines if path else ():
        id = text(line.value, "escalation_id", 80)
        if line.value.get("kind") == "raised" and id:
            open_ids[id] = None
        else:
            open_ids.pop(id, None)
    return next(reversed(open_ids), "")
