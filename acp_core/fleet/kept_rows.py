"""What a fleet keeps of collaborations between runs: used, completed, and kept again.

The cache is made when it is first of use: small fleets never load it. What only came from it, and was
never recorded, is recorded at leisure: a recorder is told of what is read, and what was only recalled
would have no recording to tell a later edit by, if the run that read it ended before its recorder came
to it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.diagnosis.observer import Observer
from acp_core.fleet.cached_snapshot import CachedSnapshot
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Lane, Mail, Urgency, Workers
from acp_core.model import Snapshot

if TYPE_CHECKING:
    from acp_core.fleet.snapshot_cache import SnapshotCache
    from acp_core.history.recorder import Recorder

MANY = 32  # collaborations: fewer are read as quickly as the cache is


class LateCache:
    """Gives a fleet's `SnapshotCache` once there are many collaborations. For any thread.

    Args:
        roots: where the fleet looks; None: nothing is kept between runs.
        observer: knows the participants' programs.
        size: tells how many collaborations are known.
        is_live: tells whether the fleet is followed, by a thread that must not wait.
        rows: whether who looks at it can do with rows.
    """

    def __init__(
        self,
        roots: Sequence[Path] | None,
        observer: Observer,
        size: Callable[[], int],
        is_live: Callable[[], bool],
        rows: bool,
    ) -> None:
        self._roots = roots
        self._observer = observer
        self._size = size
        self._is_live = is_live
        self._rows = rows
        self._lock = threading.Lock()
        self._cache: SnapshotCache | None = None

    def is_of_use(self) -> bool:
        """Whether `get` gives one; costs nothing."""
        return self._rows and self._size() >= MANY

    def get(self) -> SnapshotCache | None:
        """The cache; None while there are few collaborations, and for who needs all of them."""
        if not self._rows:
            return None
        if self._cache is None and self._size() >= MANY:
            with self._lock:
                if self._cache is None:
                    from acp_core.fleet.snapshot_cache import SnapshotCache

                    roots = self._roots
                    names = None if roots is None else [str(root) for root in roots]
                    self._cache = SnapshotCache(names, self._observer)
        return self._cache

    def must_not_wait(self) -> bool:
        """Whether this is the thread of who follows the fleet: it draws, and reads nothing."""
        if not self._is_live():
            return False
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    def save(self) -> None:
        """Keep for the next run what is new; slow."""
        if self._cache is not None:
            self._cache.save()


PAUSE = 0.2  # s between two that are read for it
_AT_ONCE = 50  # members that are asked about in one job


class LateRecording:
    """Goes once through the members of a fleet. For the event loop's thread.

    Args:
        mail: of the fleet.
        lane: in which they are looked at.
        members: by key.
        clock: the time of day.
        recorder: None where nothing is recorded.
    """

    def __init__(
        self,
        mail: Mail,
        lane: Lane,
        members: Mapping[str, Member],
        clock: Callable[[], datetime],
        recorder: Recorder | None,
    ) -> None:
        self._mail = mail
        self._lane = lane
        self._members = members
        self._clock = clock
        self._recorder = recorder
        self._left: deque[Member] = deque()

    def begin(self) -> None:
        """Everything has its row: see whether all of it is recorded."""
        if self._recorder is not None:
            self._left = deque(self._members.values())
            self._mail.later("record", PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._lane.submit(self._some, Urgency.IDLE)

    def _some(self) -> None:
        """In a worker: up to the next one that has to be read."""
        for _ in range(min(_AT_ONCE, len(self._left))):
            if self._left.popleft().record_apart(self._clock()):
                break
        if self._left:
            self._mail.post(lambda: self._mail.later("record", PAUSE, self._go_on))


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
