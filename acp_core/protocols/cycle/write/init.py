"""The beginning of a cycle: its state file and its progress folder."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_core.files import modes
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import matters, schema
from acp_core.protocols.cycle.schema import START_ACT, Object
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.coordination import note
from acp_core.protocols.cycle.write.store import Store, finish, stamp
from acp_core.protocols.kit.guard import check

ITERATIONS = 5
PREPARED = ("convergence", "phase_gates", "agent_focus", "source_refs")
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_id(now: datetime) -> str:
    """A name for a cycle that begins now."""
    word = "".join(secrets.choice(_SIGNS) for _ in range(8))
    return f"cycle-v1-{now.astimezone(schema.LOCAL):%Y%m%dT%H%M%S}-{word}"


def first_state(
    id: str,
    now: datetime,
    description: str,
    title: str = "",
    iterations: int = ITERATIONS,
    prepared: Object | None = None,
    messages: Sequence[str] = (),
) -> Object:
    """The state of a cycle that begins.

    Args:
        id: its name.
        now: when.
        description: what is to be built.
        title: "" for the beginning of the description.
        iterations: how many there are at most.
        prepared: the fields that the project's package fills.
        messages: what is said of that package in the timeline.

    Raises:
        Refused: there is nothing to do, or the limit is no number of iterations.
    """
    said = description.strip()
    if not said:
        raise Refused("give the task: what to build")
    if not 1 <= iterations <= changes.LIMIT:
        raise Refused(f"the iteration limit must be a number from 1 to {changes.LIMIT}")
    agents: Object = {
        name: {"status": "idle", "output_files": [], "iterations_completed": 0}
        for name in schema.AGENTS
    }
    state: Object = {
        "cycle_id": id,
        "title": " ".join((title.strip() or said).split())[:100],
        "description": said,
        "task_history": [said],
        "status": "running",
        "created_at": stamp(now),
        "updated_at": stamp(now),
        "max_iterations": iterations,
        "current_iteration": 0,
        "agents": agents,
        "current_phase": "init",
        "completed_phases": [],
        "phase_errors": [],
        "requirements": None,
        "exploration": None,
        "plan": None,
        "changes": [],
        "test_results": None,
        "iterations": [],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
        "version": schema.FIRST_VERSION,
        **dict.fromkeys(PREPARED),
        **(prepared or {}),
    }
    note(state, now, "orchestrator", "created cycle")
    for each in messages:
        note(state, now, "orchestrator", each)
    finish(state, now)
    return state


def create(root: Path, state: Object) -> Store:
    """Make a cycle's folders and write its state.

    Raises:
        Refused: there is one of that name, or a symbolic link stands in the way.
        OSError: it cannot be written.
    """
    folder = root
    if not root.is_dir():
        raise Refused(f"{root}: no such folder")
    check(matters.of_disk(root), START_ACT)
    for name in schema.HOME:
        folder = folder / name
        if folder.is_symlink():
            raise Refused(f"{folder} is a symbolic link: acp does not follow links")
        modes.shared_folder(folder)
    store = Store(root, schema.text(state.get("cycle_id")))
    if store.path.exists():
        raise Refused(f"{store.path.name} already exists")
    layout.make(store.progress)
    store.create(state)
    return store
