"""What stands in the way of writing into a run; every write asks here, under the lock.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces". The Snapshot
carries the same obstacles, so that `why`, `status` and the screen say what a write would answer.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from acp_core.files import transaction
from acp_core.files.records import Record
from acp_core.files.transaction import JOURNAL
from acp_core.model.clock import utc_now
from acp_core.model.format import dated
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.kit import guard
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Run
from acp_core.protocols.workspaces.schema.act_names import AGAIN, DISPATCH, EVERY, REPAIR, STOP
from acp_core.protocols.workspaces.write import Refused
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, locked
from acp_core.protocols.workspaces.write.writing import Step, carry_out

_UNREADABLE = "A5"
_CURES = frozenset({REPAIR, STOP})
_LISTS = (("triage", "decisions"), ("conflicts", "conflicts"))


def act(place: Layout, name: str, plan: Callable[[], Step]) -> Step:
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
        require(place, name)
    with locked(place) as held:
        require(place, name)
        step = plan()
        carry_out(held, step)
    return step


def require(place: Layout, name: str, run: Run | None = None) -> None:
    """See to it that nothing stands in the way of an act.

    Args:
        place: the run's places.
        name: the act's.
        run: as it was read just now; it is read where nobody did.

    Raises:
        Refused: something does; one line says what, and what mends it.
    """
    run = run or scan.scan(place.root, scan.listed(place.root), utc_now())
    guard.check(obstacles(run), name)


def obstacles(run: Run) -> tuple[Obstacle, ...]:
    """Everything that stands in the way now."""
    return (*_misplaced(run), *_damaged(run), *_journal(run), *_disk(run), *_unspecified(run))


def _damaged(run: Run) -> Iterator[Obstacle]:
    """What orchestrators share is broken, or is gone."""
    for record in run.coordination:
        problem = unreadable(record, run)
        if problem:
            yield _broken(record, run, problem)
    wrong = unlawful(run)
    if wrong and run.manifest is not None:
        yield _broken(run.manifest, run, wrong)
    if is_lost(run):
        name = _coord(run, "manifest.json")
        what = f"{name} is missing: only the manifest says which agent does what"
        yield Obstacle(
            _UNREADABLE,
            what,
            cure(run),
            _CURES,
            REPAIR,
            evidence=(f"{_coord(run, 'prompts')} exists, but the manifest is missing",),
            key=f"A5:{name}:gone",
        )


def unreadable(record: Record, run: Run) -> str:
    """Why a file that orchestrators share cannot be relied on; "" where it can, or is so young
    that it may still be in the middle of being written."""
    if record.value is None:
        being_written = state.is_young(record, run) and not record.file.link
        return "" if being_written else record.problem or "cannot be read"
    shared = {"triage": run.triage, "conflicts": run.conflicts}
    for name, key in _LISTS:
        if record is shared[name] and not isinstance(record.value.get(key, []), list):
            return f"has no list of {key}"
    return ""


def unlawful(run: Run) -> str:
    """What in the manifest is not what it should be, "" where nothing is."""
    if run.manifest is None or run.manifest.value is None:
        return ""
    try:
        manifests.parse(Layout(run.root, run.base), run.manifest.value)
    except Refused as error:
        said = clean_line(str(error), 1_000)
        return said.removeprefix(f"{clean_line(str(run.manifest.file.path), 1_000)}: ")
    return ""


def is_lost(run: Run) -> bool:
    """A run was prepared here, and its manifest is not there any more.

    Empty folders are no run, nor is a preparation that was interrupted: finishing it writes the
    manifest.
    """
    coord = run.base / schema.COORD
    home = os.path.relpath(coord, run.root)
    made = any((coord / name).is_dir() for name in ("prompts", "returns"))
    begun = run.spec or run.prompts or run.returns or any(agent.files for agent in run.agents)
    return (
        made
        and bool(begun)
        and run.manifest is None
        and not os.path.lexists(coord / "manifest.json")
        and not transaction.will_write(run.root, home, f"{home}/manifest.json")
    )


def cure(run: Run) -> str:
    """The command that mends the files which orchestrators share."""
    return f"acp workspaces {REPAIR} {clean_line(shlex.quote(str(run.root)), 4_000)}"


def _broken(record: Record, run: Run, problem: str) -> Obstacle:
    name = clean_line(record.file.name)
    said = clean_line(problem, 1_000)
    linked = record.file.link
    return Obstacle(
        _UNREADABLE,
        f"{name} {said}" if said.startswith(("is ", "holds ")) else f"{name}: {said}",
        "move it away" if linked else cure(run),
        _CURES - {REPAIR} if linked else _CURES,
        "" if linked else REPAIR,
        evidence=(f"{name} changed {dated(record.file.changed)} (by its file time)",),
        document=name,
        key=f"A5:{name}:{record.file.changed.isoformat()}",
    )


def _misplaced(run: Run) -> Iterator[Obstacle]:
    """A folder of the run leads somewhere else."""
    try:
        Layout(run.root, run.base).check()
    except Refused as error:
        said = clean_line(str(error), 2_000)
        yield Obstacle(
            _UNREADABLE,
            said,
            "replace it with a folder",
            frozenset({STOP}),
            evidence=(said,),
            key="A5:folder",
        )


def _journal(run: Run) -> Iterator[Obstacle]:
    """A writing was interrupted, and can be neither finished nor undone."""
    fault = unfollowable(run)
    if fault:
        name = _coord(run, JOURNAL)
        yield Obstacle(
            _UNREADABLE,
            f"the interrupted write in {name} can be neither finished nor undone",
            cure(run),
            _CURES,
            REPAIR,
            evidence=(f"{name}: {fault}",),
            key=f"A5:{name}",
        )


def unfollowable(run: Run) -> str:
    """Why an interrupted writing cannot be finished, "" where none was, or it can."""
    return transaction.fault(run.root, os.path.relpath(run.base / schema.COORD, run.root))


def interrupted(run: Run) -> transaction.Interrupted | None:
    """A writing that was begun, and not lately: the next act finishes it."""
    home = os.path.relpath(run.base / schema.COORD, run.root)
    file = next((each for each in run.files if each.name == f"{home}/{JOURNAL}"), None)
    if file is None or (run.now - file.changed).total_seconds() < schema.TORN_SECONDS:
        return None
    return transaction.interrupted(run.root, home)


def _disk(run: Run) -> Iterator[Obstacle]:
    """Nothing can be written there. Programs can still be stopped."""
    folders: list[Path] = [run.root, run.base, run.base / schema.COORD]
    found = next((each for each in map(guard.disk, folders) if each), None)
    if found:
        yield replace(found, allowed=frozenset({STOP}))


def disk(root: Path) -> str:
    """Why nothing can be written into a run now, "" where something can."""
    base = scan.workspaces_of(root)
    found = map(guard.disk, (root, base, base / schema.COORD))
    return next((each.sentence for each in found if each), "")


def _unspecified(run: Run) -> Iterator[Obstacle]:
    """What every agent reads first is gone: nobody is dispatched without it."""
    if run.manifest is None or run.spec is not None or run.cut:
        return
    name = clean_line(f"{run.base.name}/{schema.SHARED}/task-spec.json")
    waiting = any(each.is_planned and not each.plan.is_dispatched for each in run.agents)
    if waiting or any(each.decision == "rerun" for each in run.agents):
        yield Obstacle(
            _UNREADABLE,
            f"{name} is missing: acp dispatches no agent without it",
            cure(run),
            EVERY - {DISPATCH, AGAIN},
            REPAIR,
            evidence=(f"the manifest exists, but {name} is missing",),
            key=f"A5:{name}:gone",
        )


def _coord(run: Run, name: str) -> str:
    return clean_line(f"{run.base.name}/{schema.COORD}/{name}")
