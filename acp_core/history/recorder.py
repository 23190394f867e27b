"""The recorder: keeps what a fleet, a command or a loop sees, in a thread of its own.

Whoever reads a collaboration says `Recorder.saw`; that costs it next to nothing. What changed
now goes first; collaborations that were only looked at for the first time are kept slowly, so
that opening a thousand of them is not slowed down. What keeps it is imported by the thread, when there is
something to keep: the first picture goes before that too.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.history.schema import Bounds
from acp_core.model import Snapshot, SourceState
from acp_core.model.past import TrackedFile

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState
    from acp_core.history.observing import Observing
    from acp_core.history.store import Store

_log = logging.getLogger(__name__)
OPEN = 16  # databases that are held open at once
_REST = 3.0  # times as long as the last first look took, the next one is waited for
_SOON = 0.03  # seconds until a change is kept: whoever shows it goes before
_AGAIN = 0.06  # seconds until a file that was changed just now is looked at again
_PRUNE = 3_600.0  # seconds between two looks at what is too old
_CALM = 3.0  # times its patience until the first of them


@dataclass(slots=True)
class _Sight:
    """What is to be kept of one collaboration."""

    key: str
    meta: tuple[tuple[str, str], ...]
    tracked: tuple[TrackedFile, ...]
    observations: list[Snapshot] = field(default_factory=list)
    loops: list[tuple[RunnerState, datetime]] = field(default_factory=list)
    not_before: float = 0.0


@dataclass(slots=True)
class _Last:
    """What was said last of a collaboration: the very objects."""

    snapshot: Snapshot
    loops: tuple[RunnerState, ...]


class Recorder:
    """Keeps what it is told of, in the background. For any thread.

    Args:
        program: What looks: ``dashboard``, ``watch``, ``record``, ``loop``.
        bounds: Whether anything is recorded, and how much is kept.
        clock: Seconds since 1970; pictures set it.
        patience: Seconds for which a collaboration that is looked at for the first time waits:
            the first picture goes before.
    """

    def __init__(
        self,
        program: str,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.time,
        patience: float = 0.0,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self.bounds = bounds or Bounds()
        self._span = (f"{os.uname().nodename}-{os.getpid()}-{time.time_ns():x}", program)
        self._news = threading.Condition()
        self._urgent: OrderedDict[str, _Sight] = OrderedDict()
        self._first: OrderedDict[str, _Sight] = OrderedDict()
        self._last: dict[str, _Last] = {}
        self._files: dict[str, Observing] = {}
        self._stores: OrderedDict[str, Store] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False
        self._prune_at = time.monotonic() + _CALM * patience  # by then the start is over
        self.problem = ""

    def saw(
        self,
        snapshot: Snapshot,
        tracked: Callable[[], tuple[TrackedFile, ...]],
        loops: tuple[RunnerState, ...],
        now: datetime,
        *,
        again: bool = True,
    ) -> None:
        """A collaboration was read.

        Args:
            snapshot: What was made of it.
            tracked: Tells its files; asked only where something is new.
            loops: Of its participants.
            now: When.
            again: Whether it will be told of again, and is remembered for that.
        """
        if not self.bounds.on:
            return
        last = self._last.get(snapshot.key)
        same = last is not None and last.snapshot is snapshot
        if same and last is not None and last.loops == loops:
            return
        if again:
            self._last[snapshot.key] = _Last(snapshot, loops)
        meta = (
            ("key", snapshot.key),
            ("protocol", snapshot.protocol),
            ("name", snapshot.name),
        )
        readable = snapshot.source.state is not SourceState.UNREACHABLE
        files = tracked() if readable else ()
        with self._news:
            queue = (
                self._first if last is None and snapshot.key not in self._urgent else self._urgent
            )
            sight = queue.get(snapshot.key) or self._first.pop(snapshot.key, None)
            if sight is None:
                wait = self._patience if queue is self._first else _SOON
                sight = _Sight(snapshot.key, meta, files)
                sight.not_before = time.monotonic() + wait
            queue[snapshot.key] = sight
            sight.meta = meta
            if readable:
                sight.tracked = files
                if not same:
                    sight.observations.append(snapshot)
            sight.loops.extend((loop, now) for loop in loops)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="acp-recorder", daemon=True)
                self._thread.start()
            self._news.notify()

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until all that was said is kept; False where that takes longer than ``seconds``."""
        with self._news:
            return self._news.wait_for(
                lambda: not (self._urgent or self._first or self._busy), timeout=seconds
            )

    def close(self, seconds: float = 5.0) -> None:
        """Keep what changed, and end. What was only looked at for the first time may be left."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)

    # in the thread

    def _work(self) -> None:
        while (sight := self._next()) is not None:
            began = time.monotonic()
            first = sight.key not in self._files
            self._try_to_keep(sight)
            self._done(first, time.monotonic() - began)
        for store in self._stores.values():
            store.close()

    def _try_to_keep(self, sight: _Sight) -> None:
        from acp_core.history.store import BadRecording  # late, as everything heavy below

        try:
            self._keep(sight)
            self.problem = ""
        except BadRecording as error:
            self._drop(sight.key)
            if self.problem != str(error):
                self.problem = str(error)
                _log.warning("not recorded: %s", error)
        except Exception:  # a fault here must not end the recording of the others
            self._drop(sight.key)
            _log.warning("recording %s failed", sight.key, exc_info=True)

    def _next(self) -> _Sight | None:
        """What to keep next, waited for; None when it is over."""
        with self._news:
            while True:
                now = time.monotonic()
                for sight in self._urgent.values():
                    if sight.not_before <= now or self._closed:
                        del self._urgent[sight.key]
                        self._busy = True
                        return sight
                if self._closed:
                    return None
                if self._first and next(iter(self._first.values())).not_before <= now:
                    self._busy = True
                    return self._first.popitem(last=False)[1]
                waiting = [*self._urgent.values(), *[*self._first.values()][:1]]
                due = min((sight.not_before for sight in waiting), default=None)
                self._news.wait(None if due is None else max(0.001, due - now))

    def _done(self, first: bool, took: float) -> None:
        now = time.monotonic()
        if now >= self._prune_at:
            from acp_core.history.store import prune_recordings

            self._prune_at = now + _PRUNE
            prune_recordings(self.bounds, self._clock())
        with self._news:
            self._busy = False
            self._news.notify_all()
            if first and not self._closed:
                self._news.wait_for(lambda: bool(self._urgent) or self._closed, took * _REST)

    def _keep(self, sight: _Sight) -> None:
        from acp_core.history.observing import Observing, loop_change, seen_in
        from acp_core.history.store import OutOfStep

        store = self._store(sight.key)
        files = self._files.get(sight.key)
        if files is None:
            files = self._files[sight.key] = Observing(store.latest())
        now = self._clock()
        found = files.read_changes(sight.tracked, time.time_ns())
        observations = [seen_in(snapshot) for snapshot in sight.observations]
        loops = [loop_change(loop, at) for loop, at in sight.loops]
        for last in (False, True):
            try:
                store.add(found, observations, loops, now=now, span=self._span, meta=sight.meta)
                break
            except OutOfStep:  # another recorder was quicker: begin where it is
                if last:
                    raise
                files.forget(store.latest())
                found = files.read_changes(sight.tracked, time.time_ns())
        if files.unsettled():
            self._later(sight)

    def _later(self, sight: _Sight) -> None:
        """A file was changed just now: look once more, in case that it was changed again."""
        with self._news:
            again = self._urgent.get(sight.key)
            if again is None and not self._closed:
                again = _Sight(sight.key, sight.meta, sight.tracked)
                again.not_before = time.monotonic() + _AGAIN
                self._urgent[sight.key] = again

    def _store(self, key: str) -> Store:
        from acp_core.history.store import Store, recording_path

        store = self._stores.pop(key, None)
        if store is not None and not store.path.exists():  # it was thrown away
            store.close()
            self._files.pop(key, None)
            store = None
        if store is None:
            store = Store(recording_path(key))
        self._stores[key] = store
        while len(self._stores) > OPEN:
            self._stores.popitem(last=False)[1].close()
        return store

    def _drop(self, key: str) -> None:
        """Begin anew with a collaboration."""
        self._files.pop(key, None)
        store = self._stores.pop(key, None)
        if store is not None:
            store.close()
