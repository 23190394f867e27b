"""Whether a run of agent workspaces stands in a folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

from acp_core.files.reading import read_bounded
from acp_core.protocols.workspaces import schema

_MOST = 200  # folders that detection looks into
_LIMIT = 1 << 20  # bytes of a status file
_SIGN = re.compile(rb'"(?:agent|task_id)"')


def detect(folder: Path | str) -> bool:
    """Whether a run of agent workspaces stands in ``folder``.

    A folder ``agent-workspaces`` (or ``workspaces``) is not enough: it must hold a manifest, a
    task specification or an agent's status file.
    """
    root = Path(folder)
    return any(_holds_run(root / name) for name in schema.FOLDERS)


def level(root: Path) -> int:
    """In how many other runs' workspaces a folder stands: 0 where no agent's workspace holds it."""
    return sum(folder.name in schema.FOLDERS and _holds_run(folder) for folder in root.parents[:-1])


def _holds_run(base: Path) -> bool:
    if base.is_symlink() or not base.is_dir():
        return False
    if (base / schema.COORD / "manifest.json").is_file():
        return True
    if (base / schema.SHARED / "task-spec.json").is_file():
        return True
    try:
        with os.scandir(base) as entries:
            names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return False
    return any(
        _is_status(base / name / file)
        for name in names[:_MOST]
        for file in ("status.json", f"{name}-status.json")
    )


def _is_status(path: Path) -> bool:
    try:
        return path.is_file() and _SIGN.search(read_bounded(path, _LIMIT)) is not None
    except OSError:
        return False
