"""Looking whether something changed, at the cost of a few stat calls.

Many loops wait on one machine: none of them holds an inotify instance, and none reads anything
as long as names, sizes and times are the same.
"""

from __future__ import annotations

import time
from pathlib import Path

from acp_core.collaboration import Collaboration
from acp_core.files.poll import Poller

_ANYWAY = 30.0  # seconds after which it is read again although nothing seems to have changed


class Parked:
    """Says when a collaboration is worth reading again.

    Args:
        collaboration: The collaboration.
    """

    def __init__(self, collaboration: Collaboration) -> None:
        self._collaboration = collaboration
        self._poller = Poller()
        self._folders: frozenset[Path] = frozenset()
        self._read_at = 0.0

    def changed(self) -> bool:
        """Whether something changed since the last call that said so, or may have.

        Changes that come while the collaboration is being read are seen by the next call.
        """
        folders = self._collaboration.watched()
        changed, _ = self._poller.changes()
        if folders != self._folders:
            self._folders = folders
            self._poller.replace(folders)
            changed = set(folders)
        if changed or time.monotonic() - self._read_at > _ANYWAY:
            self._read_at = time.monotonic()
            return True
        return False
