"""Where everything of a run stands, and the lock under which it is written.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces". No path that is
made here leaves the run's folder: names are plain, and no folder of the way is a symbolic link.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import shallow
from acp_core.files.transaction import Transaction, begin
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.read import scan

ORCHESTRATOR = "orchestrator"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = frozenset({schema.SHARED, schema.SCRATCH, ORCHESTRATOR, "integration"})
Object = dict[str, Any]


def _a(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"


def checked_name(name: str, what: str = "agent") -> str:
    """A name that can be a folder's and a file's, everywhere.

    Raises:
        Refused: it is none.
    """
    if not NAME.fullmatch(name) or name.endswith("."):
        raise Refused(
            f"{name!r} is not a valid name of {_a(what)}: use letters, digits, '.', '_' and '-', at most 64"
        )
    if what == "agent" and name.lower() in _RESERVED:
        raise Refused(f"{name!r} is a reserved name: choose another name for the agent")
    return name


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of one run. ``root`` is absolute; ``base`` holds the workspaces."""

    root: Path
    base: Path

    @property
    def coord(self) -> Path:
        """What orchestrators tell each other."""
        return self.base / schema.COORD

    @property
    def manifest(self) -> Path:
        """Who is dispatched, and how that stands."""
        return self.coord / "manifest.json"

    @property
    def triage(self) -> Path:
        """What people decided about agents."""
        return self.coord / "triage.json"

    @property
    def conflicts(self) -> Path:
        """Where outputs contradict each other, and what became of it."""
        return self.coord / "conflicts.json"

    @property
    def draft(self) -> Path:
        """The folder in which the final output is prepared."""
        return self.coord / "draft"

    @property
    def spec(self) -> Path:
        """What every agent reads first."""
        return self.base / schema.SHARED / "task-spec.json"

    @property
    def integration(self) -> Path:
        """What only the orchestrator writes."""
        return self.root / "integration"

    def workspace(self, agent: str) -> Path:
        """An agent's folder."""
        return self.base / checked_name(agent)

    def check(self) -> None:
        """See to it that no folder of the run is a symbolic link or something else.

        Raises:
            Refused: one is.
        """
        folders = [self.root, self.base, self.coord, self.base / schema.SHARED, self.integration]
        folders += [self.coord / name for name in ("prompts", "returns", "history", "draft")]
        for folder in folders[1:]:
            require_folder(folder)


def require_folder(folder: Path) -> None:
    """See to it that a folder is one, or is not there yet.

    Raises:
        Refused: something else stands there.
    """
    try:
        found = os.lstat(folder)
    except OSError:
        return
    if not stat.S_ISDIR(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no folder"
        raise Refused(f"{folder} is {what}: acp does not write there")


def layout(folder: str | os.PathLike[str]) -> Layout:
    """The places of the run in ``folder``.

    Raises:
        Refused: one of its folders is a symbolic link.
    """
    root = Path(os.path.realpath(folder))
    found = Layout(root, scan.workspaces_of(root))
    found.check()
    return found


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


def read_json(path: Path) -> Object | None:
    """An object that orchestrators share; None where there is none.

    Raises:
        Refused: something else stands there: it is not overwritten.
    """
    if not os.path.lexists(path):
        return None
    try:
        data = read_bounded(path, scan.LIMIT)
        if path.is_symlink():
            raise Refused(f"{path} is a symbolic link")
        value = json.loads(data)
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise Refused(f"{path} is not valid JSON: correct it, or move it away") from None
    if not isinstance(value, dict) or not shallow(value):
        raise Refused(f"{path} is not a JSON object: correct it, or move it away")
    return value


def read_bytes(path: Path) -> bytes:
    """What stands in a file; b"" where nothing does or it cannot be read."""
    try:
        return b"" if path.is_symlink() else read_bounded(path, scan.LIMIT)
    except Unreadable:
        return b""
