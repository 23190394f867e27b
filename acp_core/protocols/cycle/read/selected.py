"""Which of a project's cycles a person wants to look at: kept by acp, never in the project.

Without such a wish it is the one that goes on, else the latest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.person import paths
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import Cycle, Project, obj, text
from acp_core.protocols.kit.binding import Context, Location

_BYTES = 1 << 16


def wanted(root: Path) -> str:
    """The id of the cycle that a person chose; "" for none."""
    try:
        held = obj(json.loads(read_bounded(_file(root), _BYTES)))
    except (Unreadable, ValueError, RecursionError):
        return ""
    return text(held.get("cycle")) if held.get("folder") == os.path.realpath(root) else ""


def choose(root: Path, id: str) -> None:
    """Show this cycle from now on; "" for the one that goes on.

    Raises:
        OSError: it cannot be written.
    """
    path = _file(root)
    if not id:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        return
    modes.private_folder(path.parent)
    held = {"folder": os.path.realpath(root), "cycle": id}
    atomic.replace(
        path, json.dumps(held).encode(errors="surrogateescape"), sync=False, private=True
    )


def _file(root: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]
    return paths.state_folder() / "cycles" / f"{name}.json"


@dataclass(frozen=True, slots=True)
class OpenProject:
    """A project as it stands when acts are bound to it.

    Attributes:
        key: its location.
        root: its folder.
        project: its cycles.
    """

    key: str
    root: Path
    project: Project

    @property
    def selected(self) -> Cycle:
        """The cycle that is shown.

        Raises:
            Refused: there is none.
        """
        if self.project.selected is None:
            raise Refused(f"{self.key}: no cycle here (start one with `acp cycle start`)")
        return self.project.selected

    def find(self, id: str) -> Cycle:
        """The cycle of this id, or whose id ends so; "" for the one that is shown.

        Raises:
            Refused: there is none, or there are several.
        """
        if id in ("", self.selected.id):
            return self.selected
        named, cycles = id.removesuffix(".json"), self.project.cycles
        known = [each for each in cycles if each.id == named]
        near = known or [each for each in cycles if each.id.endswith(named)]
        if len(near) != 1:
            names = ", ".join(each.id for each in cycles[-5:]) or "none"
            raise Refused(
                f"{id!r} is {'not a cycle' if not near else 'several cycles'} here ({names})"
            )
        return near[0]


def open_project(context: Context, now: datetime) -> OpenProject:
    """The project that an act is bound to; read where nobody did.

    Raises:
        Refused: no such folder.
    """
    if isinstance(context, OpenProject):
        return context
    root = Path(context.key).resolve()
    if not root.is_dir():
        raise Refused(f"{context.key}: no such folder")
    project = scan.scan(root, scan.listed(root), now, {}, wanted=wanted(root))
    return OpenProject(context.key, root, project)


def open_folder(folder: str) -> OpenProject:
    """The project in a folder as a command names it, read now.

    Raises:
        Refused: no such folder.
    """
    return open_project(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def is_damaged(cycle: Cycle) -> bool:
    """Whether its state is lost or not whole, so that only a rebuilt one goes on."""
    return bool(state.state_problem(cycle))
