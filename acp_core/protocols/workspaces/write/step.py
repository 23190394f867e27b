"""A write into a run, as data: planned, shown by a preview, guarded, and done under the lock.

Its files are written as one, see `files.transaction`. Folders are made before them; one that is
left over does no harm. Source: agent workspaces specification, "Directory Structure for Agent
Workspaces".
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_core.files import atomic, transaction
from acp_core.files.transaction import MOVE, Transaction, Write, begin
from acp_core.model.action import Change
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.wording import difference
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.matters import obstacles
from acp_core.protocols.workspaces.read.manifest import Object, read_bytes, read_manifest, read_run
from acp_core.protocols.workspaces.read.scan import nesting_level
from acp_core.protocols.workspaces.schema import Layout, Run

_LONGEST_PATH = 2_000  # characters of a path that is shown


@dataclass(frozen=True, slots=True)
class Step:
    """An act on a run's files: what it does in a sentence, and its writes in their order.

    ``warnings`` are to be heeded before it is done; ``notes`` merely tell something; ``folders``
    are made where they are missing.
    """

    sentence: str
    writes: tuple[Write, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    def changes(self, besides: Path | None = None) -> tuple[Change, ...]:
        """What it would change, for people; ``besides`` is a file that is left out."""
        made = [Change(clean_line(str(each), _LONGEST_PATH), "create", "a folder")
                for each in self.folders]  # fmt: skip
        return (*made, *(_change(write) for write in self.writes if write.path != besides))


def commit_step(transaction: Transaction, step: Step) -> None:
    """Do a step.

    Raises:
        Refused: something is in the way, or a file cannot be written: all are as before.
        OSError: a folder cannot be made.
    """
    for folder in step.folders:
        atomic.shared_folder(folder)
    transaction.commit(step.sentence.rstrip("."), step.writes)


def _change(write: Write) -> Change:
    path = clean_line(str(write.path), _LONGEST_PATH)
    if write.verb == MOVE:
        return Change(path, "create", clean_line(f"moved from {write.source}", _LONGEST_PATH))
    before = read_bytes(write.path)
    return Change(path, "replace" if before else "create", difference(before, write.data))


@contextlib.contextmanager
def locked(place: Layout) -> Iterator[Transaction]:
    """Be the only one who writes what orchestrators share; what was interrupted is finished first.

    Raises:
        Refused: there is no run, or another process holds the lock for too long.
    """
    if not place.base.is_dir():
        raise Refused(
            f"{place.root}: no run in this folder (create one with `acp workspaces init`)"
        )
    place.check()
    with begin(place.root, os.path.relpath(place.coord, place.root)) as transaction:
        place.check()
        yield transaction


def carry_out_act(place: Layout, name: str, plan: Callable[[], Step]) -> Step:
    """Plan an act anew under the lock and do it, unless something stands in its way.

    Args:
        place: the run.
        name: the act's.
        plan: what it would write.

    Raises:
        Refused: it cannot be done now.
        OSError: something cannot be written.
    """
    if transaction.fault(place.root, os.path.relpath(place.coord, place.root)):
        require_unobstructed(place, name)
    with locked(place) as held:
        require_unobstructed(place, name)
        step = plan()
        commit_step(held, step)
    return step


def require_unobstructed(place: Layout, name: str, run: Run | None = None) -> None:
    """See to it that nothing stands in the way of an act.

    Args:
        place: the run's places.
        name: the act's.
        run: as it was read just now; it is read where nobody did.

    Raises:
        Refused: something does; one line says what, and what mends it.
    """
    guard.check(obstacles(run or read_run(place, utc_now())), name)


def change_entry(place: Layout, agent: str, alter: Callable[[Object], None]) -> None:
    """Change one agent's entry, under the lock.

    Raises:
        Refused: the manifest cannot be read, or does not name the agent.
    """
    with locked(place) as transaction:
        manifest = read_manifest(place)
        entry = manifest.entries.get(agent)
        if entry is None:
            raise Refused(f"{place.manifest} does not list {agent}")
        alter(entry)
        transaction.commit(f"record the status of {agent}", [manifest.write()])


def require_shallow(root: Path, launching: Iterable[str] = ()) -> None:
    """See to it that a run does not stand too deep, nor lets its agents go deeper.

    Args:
        root: where the run stands, or will.
        launching: the agents that may launch others.

    Raises:
        Refused: it does.
    """
    found, names = nesting_level(root), list(launching)
    if found > schema.DEEPEST:
        raise Refused(
            f"{root} is in the workspace of a manager's agent: runs cannot be nested so deeply"
        )
    if found == schema.DEEPEST and names:
        raise Refused(f"{names[0]} may not launch agents: this run already belongs to a manager")
