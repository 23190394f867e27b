"""What the commands of `acp cycle` have in common: which cycle is meant."""

from __future__ import annotations

from pathlib import Path

from acp_core.model.clock import utc_now
from acp_core.protocols.cycle.read import scan, selected
from acp_core.protocols.cycle.schema import Cycle, Project
from acp_core.protocols.cycle.write import Refused


def project(folder: str) -> Project:
    """The cycles of a project.

    Raises:
        Refused: there is no such folder.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise Refused(f"{folder}: there is no such folder")
    return scan.scan(root, scan.listed(root), utc_now(), {}, wanted=selected.wanted(root))


def chosen(folder: str, id: str) -> tuple[Path, Cycle]:
    """The project's folder, and the cycle that is meant: the one named, else the one that is shown.

    Raises:
        Refused: there is none.
    """
    found = project(folder)
    if not id:
        if found.shown is None:
            raise Refused(f"{folder}: no cycle here; `acp cycle start` begins one")
        return found.root, found.shown
    named = id.removesuffix(".json")
    known = [each for each in found.cycles if each.id == named]
    near = known or [each for each in found.cycles if each.id.endswith(named)]
    if len(near) != 1:
        names = ", ".join(each.id for each in found.cycles[-5:]) or "none"
        raise Refused(f"{id!r} is {'no cycle' if not near else 'several cycles'} here ({names})")
    if found.shown and found.shown.id == near[0].id:
        return found.root, found.shown
    return found.root, near[0]
