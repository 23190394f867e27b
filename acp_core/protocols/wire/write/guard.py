"""What stands in the way of writes into an agent's store: it is broken, held, or its disk is.

The view puts what was seen into the Snapshot, and an agent that is started refuses the same under
its lock, so that `why`, the screen and the refusal agree.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from urllib.parse import unquote

from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.kit import guard
from acp_core.protocols.wire.read.store import NEWER

START = "agent"
"""The act that takes a store into use."""


def obstacles(folder: Path, problem: str) -> tuple[Obstacle, ...]:
    """All that stands in the way of writes in an agent's folder.

    Args:
        folder: the agent's.
        problem: why its store cannot be used, as far as it was read; "" where it can.
    """
    found = (broken(folder, problem) if problem else None, guard.disk(folder))
    return tuple(each for each in found if each is not None)


def broken(folder: Path, problem: str) -> Obstacle:
    """The store cannot be used; says how to begin a new one, and what is lost with the old."""
    sentence = clean_line(f"the store of this agent cannot be used ({problem})")
    newer = NEWER in problem
    cure = "use the version of acp that wrote it" if newer else _away(folder)
    return Obstacle("wire-store", sentence, cure, evidence=(sentence,), key="obstacle:wire-store")


def _away(folder: Path) -> str:
    place, name = shlex.quote(str(folder)), shlex.quote(unquote(folder.name))
    moved = f"mkdir {place}/broken && mv {place}/wire.sqlite3* {place}/broken/"
    return f"{moved}; acp agent --name {name} then creates a new one, with a new link"
