"""What other accounts could read of a person's own files."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def open_to_others() -> list[str]:
    """The files and folders of the state folder that another account may read, write or enter.

    Not what agents write into the folders for their drafts, which acp does not write.
    """
    state = Path(os.environ["ACP_STATE"])
    return [
        str(path.relative_to(state))
        for path in sorted(state.rglob("*"))
        if "drafts" not in path.parent.parts and _mode(path) & (stat.S_IRWXG | stat.S_IRWXO)
    ]


def _mode(path: Path) -> int:
    """Its permissions; none for a link, and for a file of a database that has gone meanwhile."""
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return 0
    return 0 if stat.S_ISLNK(found) else stat.S_IMODE(found)
