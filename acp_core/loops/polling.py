"""Looking whether something changed, at the cost of a few stat calls.

Many loops wait on one machine: none of them holds an inotify instance, and none reads anything
as long as names, sizes and times are the same.
"""

from __future__ import annotations

import time
from pathlib import Path

from acp_core.files.poll import Poller
from acp_core.files.reading import Stamp, stamp
from acp_core.protocols.contract import Collaboration

_ANYWAY = 30.0  # seconds after which it is read again although nothing seems to have changed
_CALM = 60.0  # seconds without a change after which it is looked at half as often


class Polling:
    """Says when a collaboration is worth reading again.

    Args:
        collaboration: The collaboration.
    """

    def __init__(self, collaboration: Collaboration) -> None:
        self._collaboration = collaboration
        self._poller = Poller()
        self._folders: frozenset[Path] = frozenset()
        self._signs = collaboration.turn_signs()
        self._stamps: list[Stamp | None] = []
        self._read_at = 0.0
        self._changed_at = time.monotonic()

    def changed(self) -> bool:
        """Whether something changed since the last call that said so, or may have.

        Changes that come while the collaboration is being read are seen by the next call.
        """
        now = time.monotonic()
        if self._signs_changed() if self._signs else self._folders_changed():
            self._changed_at = self._read_at = now
            return True
        if now - self._read_at > _ANYWAY:
            self._read_at = now
            return True
        return False

    def pause(self, interval: float) -> float:
        """How long to wait until the next look, in seconds."""
        calm = time.monotonic() - self._changed_at > _CALM
        return 2 * interval if calm else interval

    @property
    def signs(self) -> dict[str, object]:
        """The files that alone matter, with their stamps at the last look; empty without such."""
        pairs = zip(self._signs, self._stamps, strict=False)
        return {str(path): None if seen is None else list(seen) for path, seen in pairs}

    def _signs_changed(self) -> bool:
        stamps = [stamp(path) for path in self._signs]
        before, self._stamps = self._stamps, stamps
        return stamps != before

    def _folders_changed(self) -> bool:
        folders = self._collaboration.watched()
        changed, _ = self._poller.changes()
        if folders != self._folders:
            self._folders = folders
            self._poller.replace(folders)
            return True
        return bool(changed)
