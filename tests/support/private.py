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
        if not path.is_symlink()
        and "drafts" not in path.parent.parts
        and stat.S_IMODE(path.lstat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    ]
