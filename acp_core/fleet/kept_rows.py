"""What a fleet keeps of collaborations between runs: used, completed, and kept again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.diagnosis.observer import Observer
from acp_core.fleet.cached_snapshot import CachedSnapshot
from acp_core.fleet.late_cache import LateCache
from acp_core.fleet.late_recording import LateRecording
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Urgency, Workers
from acp_core.model import Snapshot

if TYPE_CHECKING:
    from acp_core.history.recorder import Recorder


class KeptRows:
    """The rows of earlier runs, for one fleet.

    Args:
        roots: where the fleet looks; none where what it shows is given.
        observer: knows the participants' programs.
        members: of the fleet, by key.
        mail: of the fleet.
        workers: in which rows are kept.
        clock: the time of day.
        recorder: None where nothing is recorded.
        wanted: whether who follows the fleet can do with rows.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        observer: Observer,
        members: Mapping[str, Member],
        mail: Mail,
        workers: Workers,
        clock: Callable[[], datetime],
        recorder: Recorder | None,
        wanted: bool,
    ) -> None:
        self._members = members
        self._workers = workers
        self._begun = False
        self.cache = LateCache(
            roots,
            observer,
            lambda: len(members) if roots else 0,
            lambda: mail.box is not None,
            wanted,
        )
        self._recording = LateRecording(mail, workers.lane(), members, clock, recorder)

    def begin(self) -> None:
        """Everything has its row: keep what is new, and record what never was."""
        if not self._begun:
            self._begun = True
            self._workers.lane().submit(self.cache.save, Urgency.IDLE)
            self._recording.begin()

    def whole(
        self, snapshot: Snapshot | None, key: str, read: Callable[[Member, Urgency], None]
    ) -> Snapshot | None:
        """A Snapshot, if all its details are at hand; else it is read, and comes as a change.

        Args:
            snapshot: the latest one.
            key: of the collaboration.
            read: has a member read.
        """
        if not isinstance(snapshot, CachedSnapshot):
            return snapshot
        member = self._members.get(key)
        if member is not None and member.want_whole():
            read(member, Urgency.CALL)
        return None
