"""Which of a project's cycles a person wants to look at: kept by acp, never in the project.

Without such a wish it is the one that goes on, else the latest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.person import paths
from acp_core.protocols.cycle.schema import obj, text

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
