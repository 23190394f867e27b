"""One collaboration, watched: what protocols that serve it to others are handed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from acp_core.fleet.live import Batch, Fleet
from acp_core.model import Action, Snapshot
from acp_core.model.errors import Refused
from acp_core.protocols.contract import Collaboration, Watched

T = TypeVar("T")


def watch(folder: str) -> Watched:
    """The collaboration in a folder (an absolute path), watched while its changes are followed."""
    return WatchedFolder(folder)


class WatchedFolder:
    """A fleet of one; see `acp_core.protocols.contract.Watched`."""

    def __init__(self, folder: str) -> None:
        self._key = folder
        self._fleet = Fleet([Path(folder)], discover=False)

    @property
    def snapshot(self) -> Snapshot | None:
        """See `Watched.snapshot`."""
        return self._fleet.snapshots.get(self._key)

    def changes(self) -> AsyncIterator[Batch]:
        """See `Watched.changes`."""
        return self._fleet.changes()

    async def call(self, work: Callable[[Collaboration], T]) -> T:
        """See `Watched.call`."""
        return await self._fleet.call(self._key, work)

    def actions(self, opened: Collaboration) -> Sequence[Action]:
        """See `Watched.actions`; what the person here notes for themselves is nobody else's."""
        from acp_core.diagnosis import actions  # late: it loads everything that can be done

        found = actions.actions(opened, self._fleet.snapshots[self._key])
        return tuple(each for each in found if not each.personal)

    def action(self, opened: Collaboration, name: str) -> Action | None:
        """See `Watched.action`."""
        from acp_core.diagnosis import actions  # late, as above

        found = actions.action(opened, self._fleet.snapshots[self._key], name)
        return None if found is None or found.personal else found

    def knows(self, opened: Collaboration, name: str) -> bool:
        """See `Watched.knows`."""
        from acp_core.loops.acts.names import NAMES

        try:
            return name in NAMES or self.action(opened, name) is not None
        except Refused:
            return True

    async def close(self) -> None:
        """See `Watched.close`."""
        await self._fleet.close()
