"""What acp wrote last into a state file: a copy beside acp's own files, and one for all accounts.

By it a change of somebody else shows, and a state that is lost or damaged is put back.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.protocols.cycle.read.state_file import digest, own_copy_path
from acp_core.protocols.cycle.write import last_written


def remember_copies(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Keep what is about to be written; where that crashes, the file itself is right.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    kept = {"digest": digest(data), "before": digest(before), "state": json.loads(data)}
    place = own_copy_path(root, id)
    with contextlib.suppress(OSError):
        modes.private_folder(place.parent)
        atomic.sweep(place)
        atomic.replace(place, json.dumps(kept).encode(), sync=False, private=True)
    last_written.remember_shared(root, id, data, before)
