"""Mending what orchestrators share: what cannot be read is moved aside, and made anew where it can be.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces". Nothing is
thrown away: what was moved aside lies in ``.coord/history/damaged``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic, modes, transaction
from acp_core.files.records import Record
from acp_core.files.transaction import CREATE, JOURNAL, MOVE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Run, coord
from acp_core.protocols.workspaces.schema import plan as planning
from acp_core.protocols.workspaces.schema.act_names import REPAIR
from acp_core.protocols.workspaces.schema.coord import Dispatch, RunInfo
from acp_core.protocols.workspaces.write import guard, rebuilt
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.dispatch import free
from acp_core.protocols.workspaces.write.layout import Layout
from acp_core.protocols.workspaces.write.writing import Step, carry_out, encode

Object = dict[str, Any]


class _Damage(NamedTuple):
    """What is to be mended: files that are moved aside, and what is written in their places."""

    aside: tuple[Path, ...] = ()
    manifest: Object | None = None
    specification: Object | None = None


def plan(place: Layout) -> Step:
    """What mending would write.

    Raises:
        Refused: nothing is to be mended, or acp cannot mend it.
    """
    run = _settled(place)
    guard.require(place, REPAIR, run)
    damage = _damage(place, run)
    parts = [f"move {each.name} aside" for each in damage.aside]
    parts += ["rebuild the manifest"] if damage.manifest else []
    parts += ["rebuild the task specification"] if damage.specification else []
    home = os.path.relpath(place.coord, place.root)
    if transaction.fault(place.root, home):
        parts.insert(0, f"move {JOURNAL} aside")
    elif os.path.lexists(place.coord / JOURNAL):
        parts.insert(0, "finish what was interrupted")
    if not parts:
        young = [clean_line(each.file.name) for each in _being_written(run)]
        wait = f"{', '.join(young)} may still be being written: repair again in a moment"
        raise Refused(wait if young else f"nothing to repair in {place.root}")
    items = damage.manifest["agents"] if damage.manifest else []
    lost = [
        f"the task of {each['agent']} is lost: add it to the manifest"
        for each in items
        if "task" not in each and not each.get("dispatched_at")
    ]
    return Step(f"Repair the run: {', '.join(parts)}.", _writes(place, damage), tuple(lost))


def carry(place: Layout) -> Step:
    """Mend a run, under its lock.

    What is moved aside is moved first: whoever is interrupted in between goes on from there.

    Raises:
        Refused: as `plan`.
        OSError: something cannot be written.
    """
    step = plan(place)
    home = os.path.relpath(place.coord, place.root)
    with transaction.lock(place.root, home) as held:
        if transaction.fault(place.root, home):
            _rename(place.coord / JOURNAL, _target(place, place.coord / JOURNAL))
        held.recover()
        run = scan.scan(place.root, scan.listed(place.root), utc_now())
        writes = _writes(place, _damage(place, run))
        for verb in (MOVE, CREATE):
            chosen = tuple(each for each in writes if each.verb == verb)
            carry_out(held, Step(step.sentence, chosen))
    return step


def _settled(place: Layout) -> Run:
    """The run, read once more where a file that says nothing may still be in the middle of a write."""
    run = scan.scan(place.root, scan.listed(place.root), utc_now())
    young = _being_written(run)
    if not young:
        return run
    ages = [(run.now - each.file.changed).total_seconds() for each in young]
    time.sleep(min(schema.TORN_SECONDS, schema.TORN_SECONDS - min(ages)))
    return scan.scan(place.root, scan.listed(place.root), utc_now())


def _being_written(run: Run) -> list[Record]:
    """Files of the orchestrators that cannot be read, and are too young to count as broken."""
    return [
        each
        for each in run.coordination
        if each.value is None and state.is_young(each, run) and not each.file.link
    ]


def _damage(place: Layout, run: Run) -> _Damage:
    aside = [record.file.path for record in run.coordination if guard.unreadable(record, run)]
    if run.manifest is not None and guard.unlawful(run):
        aside.append(run.manifest.file.path)
    anew = place.manifest in aside or guard.is_lost(run)
    value = _mended(place, run) if anew else None
    known = value or (run.manifest.value if run.manifest else None)
    lacks = known is not None and run.spec is None and not run.cut
    return _Damage(tuple(aside), value, _specification(known) if lacks and known else None)


def _writes(place: Layout, damage: _Damage) -> tuple[Write, ...]:
    made = [Write(_target(place, path), MOVE, source=path) for path in damage.aside]
    if damage.manifest is not None:
        made.append(Write(place.manifest, CREATE, encode(damage.manifest)))
    if damage.specification is not None:
        made.append(Write(place.spec, CREATE, encode(damage.specification)))
    return tuple(made)


def _target(place: Layout, path: Path) -> Path:
    return free(place.coord / schema.HISTORY / "damaged" / path.name)


def _rename(path: Path, target: Path) -> None:
    modes.shared_folder(target.parent)
    path.rename(target)
    for folder in (target.parent, path.parent):
        atomic.sync_folder(str(folder))


def _mended(place: Layout, run: Run) -> Object:
    """The manifest with what of it can be used, and whoever it lacks as the folders tell of them."""
    fresh = rebuilt.of(run)
    value = (run.manifest.value if run.manifest else None) or {}
    items = value.get("agents")
    entries: dict[str, Object] = {}
    tasks: set[str] = set()
    for item in [*(items if isinstance(items, list) else []), *fresh["agents"]]:
        task = _task(item, place.root)
        if task and task.agent.lower() not in entries and task.task_id not in tasks:
            entries[task.agent.lower()] = dict(item)
            tasks.add(task.task_id)
    known = {each["agent"] for each in entries.values()}
    for each in entries.values():
        each["after"] = [name for name in coord.parse(Dispatch, each).after if name in known]
    made = {**value, "agents": list(entries.values())}
    try:
        manifests.parse(place, made)
    except Refused:
        return fresh
    return made


def _task(item: object, root: Path) -> planning.Task | None:
    try:
        return planning.task(manifests.with_task(item), 1, root)
    except Refused:
        return None


def _specification(manifest: Object) -> Object:
    """What every agent reads first, as far as the manifest says it."""
    task = coord.parse(RunInfo, manifest).task or "the task"
    form = manifest.get("format")
    return {
        "task": task,
        "scope": task,
        "requirements": [],
        "constraints": [],
        "output_format": form if form in schema.FINALS else schema.FINALS[0],
    }
