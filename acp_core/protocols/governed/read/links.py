"""Which workstream of which initiative a run is, and which barriers are shut to it.

Read from the initiative's configuration and the coordinator's files alone, so that it costs a run
little to ask. Source: governed protocol specification, "Coordinator initiative" and "Gates and
resync".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.read.unfinished_write import COORDINATOR, above
from acp_core.protocols.governed.schema import Object, objects, text


class Link(NamedTuple):
    """The workstream of an initiative that a run is: the initiative, its name, who crossed what.

    Attributes:
        root: the initiative.
        name: the workstream's.
        barriers: the barriers that nobody has approved, as pairs of name and phase.
        recorded: what the coordinator knows of the workstream.
    """

    root: Path
    name: str
    barriers: tuple[tuple[str, str], ...]
    recorded: Object


def is_past(run: Run, phase: str) -> bool:
    """Whether a run has left a phase."""
    if run.state.reason or phase not in run.phases:
        return False
    if run.status == "completed":
        return True
    return run.phase in run.phases and run.phases.index(run.phase) > run.phases.index(phase)


def linked(run: Run) -> Link | None:
    """The workstream that a run is, None where no initiative above it names it."""
    here = os.path.realpath(run.root)
    for root in above(run.root):
        config = schema.read_object(root / schema.MULTI_CONFIG).value
        if not isinstance(config.get("workstreams"), list):
            continue
        state = schema.read_object(root / COORDINATOR / "state.json")
        recorded = objects(state.value.get("workstreams"))
        for raw in schema.items(config, "workstreams"):
            name = str(raw.get("name"))
            if _place(root, raw, recorded.get(name, {})) == here:
                return Link(
                    root, name, tuple(_unapproved(root, config, state)), recorded.get(name, {})
                )
    return None


def coordinated(run: Run) -> Link | None:
    """The workstream that a run is, where its coordinator knows the run and its phase."""
    link = linked(run)
    if link is None or not link.recorded.get("run_id"):
        return None
    return link if link.recorded.get("phase") in run.phases else None


def _unapproved(root: Path, config: Object, state: schema.Loaded) -> Iterator[tuple[str, str]]:
    """The barriers that nobody has approved, as the coordinator's state tells, else its ledger."""
    barriers = objects(state.value.get("barriers"))
    approved = {name for name, record in barriers.items() if record.get("status") == "approved"}
    if state.reason:
        lines = schema.read_log(root / COORDINATOR / "ledger.jsonl").lines
        approved = {
            str(line.value.get("barrier"))
            for line in lines
            if line.value.get("type") == "barrier_approved"
        }
    for raw in schema.items(config, "barriers"):
        name, phase = text(raw, "name", 80), text(raw, "phase", 80)
        if name not in approved:
            yield name, phase


def _place(root: Path, raw: Object, recorded: Object) -> str:
    """Where the run of a workstream is, every link followed; "" where it leads out."""
    relative, config = recorded.get("path"), raw.get("config_path")
    relative = relative if isinstance(relative, str) and relative else raw.get("name")
    config = config if isinstance(config, str) and config else schema.CONFIG
    path = schema.inside(root, relative) if isinstance(relative, str) else None
    within = schema.inside(path, config) if path is not None else None
    return os.path.realpath(within.parent) if within is not None else ""
