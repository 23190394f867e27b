"""The cache of a fleet's rows, made when it is first of use: small fleets never load it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.diagnosis.observer import Observer

if TYPE_CHECKING:
    from acp_core.fleet.snapshot_cache import SnapshotCache

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
