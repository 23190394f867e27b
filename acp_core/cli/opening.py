"""From the paths on a command line to Snapshots, and what a person has seen of them already."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from acp_core.cli.start import as_link, place_of, unusable
from acp_core.fleet import Fleet
from acp_core.model import Snapshot, SourceState
from acp_core.model.errors import CommandError
from acp_core.protocols.discovery import discover
from acp_core.protocols.kit.guard import refusal
from acp_core.protocols.kit.wording import without_retry
from acp_core.protocols.locations import RUNNING, SearchRoot, is_link


def sort_out(paths: Sequence[str]) -> tuple[list[SearchRoot], list[str]]:
    """The places in which collaborations can be looked for, and why the others cannot."""
    problems = {path: unusable(path) for path in map(as_link, paths)}
    good = [_place(path) for path, problem in problems.items() if not problem]
    return good, [problem for problem in problems.values() if problem]


def _place(path: str) -> SearchRoot:
    return place_of(path) if is_link(path) or path == RUNNING else Path(path)


def open_one(folder: str) -> tuple[Fleet, Snapshot]:
    """The collaboration in this very folder, read once, and the fleet of one that holds it.

    Raises:
        CommandError: there is none, or it cannot be read.
    """
    problem = unusable(folder)
    if problem:
        raise CommandError(problem)
    fleet = Fleet([_place(folder)], discover=False)
    snapshots = fleet.read()
    if not snapshots or snapshots[0].source.state is SourceState.UNREACHABLE:
        note = snapshots[0].source.note if snapshots else ""
        if snapshots and snapshots[0].obstacles:
            raise CommandError(f"{folder}: {refusal(snapshots[0].obstacles)}")
        if is_link(folder):
            raise CommandError(without_retry(note) or "cannot reach the agent")
        raise CommandError(f"{folder}: {note or 'no collaboration'}{_near(folder)}")
    return fleet, snapshots[0]


def _near(folder: str) -> str:
    """The collaborations that stand below a folder that is none, as a hint."""
    found = discover([Path(folder)], depth=2, limit=500).found
    names = [os.path.join(folder, os.path.relpath(each.key, folder)) for each in found[:3]]
    return f"; did you mean {' or '.join(names)}?" if names else ""
