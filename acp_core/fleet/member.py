"""One collaboration of a fleet: opened and read so that no fault of it ends the fleet.

A change is read at once, a stream of changes a few times a second, by the generic cell rate algorithm:
a few readings may follow each other as fast as anybody can see, and from then on the rate is bounded,
for as long as changes keep coming faster than that. Of a thread that is long about its work it is told
whether it gets on with it, or waits for something outside.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from acp_core.files import claims, tree_state
from acp_core.fleet.cached_snapshot import CachedSnapshot, asked_too_early
from acp_core.fleet.workers import Lane
from acp_core.history.edits import Edits
from acp_core.history.forecast import cases_of
from acp_core.model import Snapshot, Source, SourceState, Status
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.model.past import Story
from acp_core.model.text import clean, clean_line
from acp_core.person.paths import key_of
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import DiscoveredCollaboration
from acp_core.protocols.locations import find, is_link

if TYPE_CHECKING:
    from acp_core.diagnosis.engine import Diagnosis
    from acp_core.diagnosis.observer import Observer
    from acp_core.fleet.kept_rows import LateCache
    from acp_core.fleet.snapshot_cache import Entry, SnapshotCache
    from acp_core.history.forecast import Case
    from acp_core.history.recorder import Recorder

FASTEST = 1 / 30  # s between two readings: more cannot be seen
STEADY = 0.25  # s between two of a stream: it costs half as much, and can still be followed
AT_ONCE = 4  # readings that may follow each other before a stream counts as one


class Pace:
    """The readings of one collaboration; times are seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._used = float("-inf")  # when all of `AT_ONCE` are there to be used again

    def due(self) -> float:
        """When the next reading may begin."""
        return max(self._last + FASTEST, self._used - (AT_ONCE - 1) * STEADY)

    def begin(self, now: float) -> None:
        """A reading begins."""
        self._last = now
        self._used = max(now, self._used) + STEADY


_LEAST = 0.05  # s of the processor that count; it is counted in ticks of a hundredth


class Progress:
    """The work of one thread at a time.

    A thread that computes gets on: it is slow, but it ends. One that waits, for a disk or a network,
    uses no processor.
    """

    def __init__(self) -> None:
        self._thread: int | None = None
        self._began = self._used = 0.0

    def begin(self, *, computes: bool = True) -> None:
        """The calling thread begins; unless it ``computes``, all it could do for long is wait."""
        self._used = time.thread_time() if computes else math.inf
        self._began = time.monotonic()
        self._thread = threading.get_native_id()

    def end(self) -> None:
        """It has ended."""
        self._thread = None

    def seconds(self) -> float:
        """For how long it has been at it; 0 where it is not."""
        return time.monotonic() - self._began if self._thread is not None else 0.0

    def advances(self) -> bool:
        """Whether it used the processor since this was last asked with that answer, or it began."""
        thread = self._thread
        if thread is None or self._used == math.inf:
            return False
        try:
            threads = psutil.Process().threads()
        except (psutil.Error, OSError):
            return False
        used = sum(each.user_time + each.system_time for each in threads if each.id == thread)
        if used < self._used + _LEAST:
            return False
        self._used = used
        return True


_log = logging.getLogger(__name__)


class NoCollaboration(AcpError, LookupError):
    """There is none in a place that was given; the message says why, safe to show."""


class Member:
    """A collaboration, its last Snapshot, and the lane in which everything with it happens.

    ``refresh`` and ``opened`` are for that lane; the attributes may be read from anywhere.

    Args:
        key: The collaboration's identity.
        found: What discovery found; None where the place was given and may hold nothing.
        order: Its place in the order of discovery.
        lane: Serialises what is done with it.
        observer: Knows the loops of its participants.
        recorder: Keeps what is read of it.
        touch: To be called, from any thread, when there is something new that no folder tells.
        cache: Gives what is kept of earlier runs, if anything is.
    """

    def __init__(
        self,
        key: str,
        found: DiscoveredCollaboration | None,
        order: int,
        lane: Lane,
        observer: Observer,
        recorder: Recorder | None = None,
        touch: Callable[[], None] | None = None,
        cache: LateCache | None = None,
    ) -> None:
        self.key = key
        self.order = order
        self.lane = lane
        self.snapshot: Snapshot | None = None
        self._own = frozenset[Path]() if is_link(key) else frozenset({Path(key)})
        self.watched: frozenset[Path] = self._own
        self.listed: frozenset[Path] = frozenset()  # what of that the watcher was told
        self.discovered = found is not None
        self.queued = False  # a refresh is submitted and has not begun
        self.pace = Pace()  # of its readings, by the loop's clock
        self.away = False  # another process reads it for the first time
        self.lets_go = False  # nobody wants more than its row
        self.teaches = False  # its cases are wanted where it is kept
        self.kept: Entry | None = None  # what another run can recall of it, as it was read last
        self.cases: tuple[Case, ...] | None = None  # that it taught when it was read
        self._found = found
        self._observer = observer
        self._recorder = recorder
        self._touch = touch
        self._late_cache = cache
        self._reading = threading.Lock()  # many are recalled in one job, apart from their lanes
        self._wanted = False  # somebody looks at more than its row
        self._details: Snapshot | None = None  # read for a Snapshot of an earlier run
        self._diagnosis: Diagnosis | None = None
        self._edits = Edits()
        self._collaboration: Collaboration | None = None
        self._good: Snapshot | None = None
        self.progress = Progress()
        self._fault = ""

    @cached_property
    def real(self) -> str:
        """The name by which its loops know it."""
        return (self._found.real if self._found else "") or key_of(self.key)

    @property
    def protocol(self) -> str:
        """The name of the protocol that discovery found; "" where the place was given."""
        return self._found.protocol.name if self._found else ""

    def opened(self) -> Collaboration:
        """The collaboration.

        Raises:
            NoCollaboration: there is none in this place.
        """
        if self._collaboration is None:
            if self._found is None:
                self._found = find(self.key)
            if self._found is None:
                raise NoCollaboration(nothing_at(Path(self.key), registry.installed()))
            self._collaboration = self._found.open()
            if self._touch is not None:
                self._collaboration.subscribe(self._touch)
            if self._good is not None:  # it was shown without having been read
                self._collaboration.refresh(self._good.as_of)
        return self._collaboration

    def refresh(self, now: datetime) -> Snapshot:
        """Read what changed. The very object of the last call where nothing did; never raises."""
        with self._reading:
            return self._refresh(now)

    def _refresh(self, now: datetime) -> Snapshot:
        try:
            recalled = self._recall(now)
            if recalled is not None:
                return recalled
            self.progress.begin()
            cache = self._cache() if self._collaboration is None else None
            self.kept = self.cases = None
            began, before = tree_state.now(), tree_state.read(self.key) if cache else None
            collaboration = self.opened()
            read = collaboration.refresh(now)
            if self._diagnosis is None:
                self._diagnosis = self._observer.diagnosis()
            read = self._edits.marked(read, collaboration)
            snapshot = self._observer.diagnosed(self._diagnosis, collaboration, read, now)
            self._good = snapshot
            self.watched = collaboration.watched() | self._own | self._claims()
            self._fault = ""
            if cache is not None and before is not None and collaboration.follows_from_folder():
                watched = collaboration.watched()
                self.kept = cache.keep(self.key, before, began, snapshot, watched)
            if self.kept is not None and self.teaches:
                self.cases = _taught(snapshot, collaboration)
            if self._recorder is not None:
                loops = self._observer.loops(self.key)
                self._recorder.saw(snapshot, collaboration.tracked_files, loops, now)
            elif self.kept is not None and self.lets_go:
                snapshot = self._let_go(self.kept, now)
        except NoCollaboration as error:
            snapshot = self._without(str(error), now)
        except Exception as error:  # a fault in a protocol's code must not end the fleet
            _log.info("reading %s failed", self.key, exc_info=True)
            what = clean_line(f"{type(error).__name__}: {error}")
            snapshot = self._without(f"reading failed because of a bug in acp: {what}", now)
        finally:
            self.progress.end()
        self.snapshot = snapshot
        return snapshot

    def _let_go(self, kept: Entry, now: datetime) -> Snapshot:
        """Hold no more of it than an earlier run would have told; gives its row."""
        from acp_core.fleet.snapshot_cache import recalled_from  # late: small fleets never load it

        self._good = row = recalled_from(kept, self.key, now, self._read_details).snapshot
        self.close()
        self._collaboration = self._diagnosis = None
        self._edits = Edits()
        return row

    def recall(self, now: datetime, *, wait: bool = True) -> Snapshot | None:
        """The Snapshot of an earlier run, where all is as it was and nobody needs more of it.

        As `refresh`, but that it reads nothing; from any thread.

        Args:
            now: the time.
            wait: Wait while it is read; else None.
        """
        if not self._reading.acquire(blocking=wait):
            return None
        try:
            return self._recall(now)
        finally:
            self._reading.release()

    def _cache(self) -> SnapshotCache | None:
        return self._late_cache.get() if self._late_cache is not None else None

    def _recall(self, now: datetime) -> Snapshot | None:
        cache = self._cache() if self._collaboration is None else None
        if cache is None or self._found is None or self._wanted:
            return None
        self.progress.begin(computes=False)
        try:
            before = self.snapshot
            if before is not None:
                same = before is self._good and cache.holds(self.key, self.protocol)
                return before if same else None
            recalled = cache.recall(self.key, self.protocol, now, self._read_details)
        except Exception:  # a fault here only makes it slower
            _log.info("nothing was recalled of %s", self.key, exc_info=True)
            return None
        finally:
            self.progress.end()
        if recalled is None:
            return None
        self._good = self.snapshot = recalled.snapshot
        self.watched = recalled.watched | self._own
        if recalled.has_claims:
            self.watched |= self._claims()
        return self.snapshot

    @contextmanager
    def _apart(self) -> Iterator[Collaboration]:
        """The collaboration opened once more, for one look: the member's own belongs to its lane."""
        assert self._found is not None
        opened = self._found.open()
        try:
            yield opened
        finally:
            opened.close()

    def want_whole(self) -> bool:
        """From now on it is read as others are, row or not; whether that is news. From any thread."""
        news, self._wanted = not self._wanted, True
        return news

    def _read_details(self) -> Snapshot | None:
        """All of a collaboration of which only a row was known: somebody looks at it. Any thread.

        Returns:
            None where this thread must not wait. Who draws asks for the whole before; where that
            was forgotten, it is read in the lane, and comes as a change.
        """
        details = self._details
        if details is None:
            if self._late_cache is not None and self._late_cache.must_not_wait():
                asked_too_early(self.key)
                if self.want_whole() and self._touch is not None:
                    self._touch()
                return None
            assert self._good is not None
            with self._apart() as opened:
                details = Edits().marked(opened.refresh(self._good.as_of), opened)
            self._details = details
            if self.want_whole() and self._touch is not None:
                self._touch()
        return details

    @property
    def is_recalled(self) -> bool:
        """Whether it is only known by its row: nothing of it was read here, or it was let go."""
        return self._collaboration is None and isinstance(self.snapshot, CachedSnapshot)

    def past(self) -> tuple[Snapshot, Story]:
        """Its Snapshot and its story, for whoever learns from them; in its lane.

        What was only recalled is read for that, and let go again.

        Raises:
            NoCollaboration: there is none in this place.
        """
        if self.is_recalled and self.snapshot is not None:
            with self._apart() as opened:
                return opened.refresh(self.snapshot.as_of), opened.story()
        opened = self.opened()
        return self.snapshot or opened.refresh(utc_now()), opened.story()

    def record_apart(self, now: datetime) -> bool:
        """Record it although it was only recalled, where it never was recorded. From any thread.

        Returns:
            Whether it had to be.
        """
        recorder = self._recorder
        if recorder is None or not recorder.bounds.on or not self.is_recalled:
            return False
        from acp_core.history import store  # late: most fleets are read

        if store.recording_path(self.key).exists():
            return False
        with self._apart() as opened:
            loops = self._observer.loops(self.key)
            recorder.saw(opened.refresh(now), opened.tracked_files, loops, now, again=False)
        return True

    def _claims(self) -> frozenset[Path]:
        """The folders in which something changes when somebody begins or ends to run it."""
        if is_link(self.key) or not claims.exists(self.key):
            return frozenset()
        run = claims.run_folder(self.key)
        return frozenset(each for each in (run, run / "loops") if each.is_dir()) or frozenset(
            {run.parent} if run.parent.is_dir() else ()
        )

    def close(self) -> None:
        """Let go of what the collaboration holds."""
        if self._collaboration is not None:
            self._collaboration.close()

    def unfinished(self, now: datetime) -> Snapshot:
        """What to show while a refresh does not end: that it is slow, or that it is stuck."""
        if self.progress.advances():
            note = "still reading: the collaboration is large, or this machine is busy"
            return self._with(Source(SourceState.STALE, note), now)
        note = "still reading: the disk or network does not answer"
        return self._with(Source(SourceState.UNREACHABLE, note), now)

    def _without(self, note: str, now: datetime) -> Snapshot:
        if self._fault == note and self.snapshot is not None:
            return self.snapshot
        self._fault = note
        return self._with(Source(SourceState.UNREACHABLE, note), now)

    def _with(self, source: Source, now: datetime) -> Snapshot:
        if isinstance(self._good, CachedSnapshot):
            return self._good.from_source(source, now)
        if self._good is not None:
            return replace(self._good, source=source, as_of=now, recheck_at=None)
        return Snapshot(
            key=self.key,
            protocol=self.protocol,
            dialect="",
            name=clean_line(os.path.basename(self.key) or self.key),
            objective="",
            location=clean(self.key),
            as_of=now,
            headline=source.note,
            status=Status.UNKNOWN,
            phase="",
            source=source,
        )


def _taught(snapshot: Snapshot, collaboration: Collaboration) -> tuple[Case, ...] | None:
    """The cases of a collaboration; None where nobody learns from it."""
    from acp_core.history.durations import CASES, EVENTS  # late: few ask for it

    if len(snapshot.events) > EVENTS:
        return None
    return cases_of(snapshot, collaboration.story())[-CASES:]


def nothing_at(folder: Path, known: Iterable[registry.Protocol]) -> str:
    """Why there is no collaboration in ``folder``, in one line that is safe to show."""
    if not os.path.lexists(folder):
        return "no such folder"
    if not folder.is_dir():
        return "this is a file, not the folder of a collaboration"
    if not os.access(folder, os.R_OK | os.X_OK):
        return "you do not have permission to read this folder"
    markers = sorted({marker for protocol in known for marker in protocol.markers})
    there = [marker for marker in markers if os.path.lexists(folder / marker)]
    told = f"no {', '.join(markers)}"
    if there:
        told = f"it contains {', '.join(there)}, but no collaboration"
    return clean_line(f"not a collaboration ({told})")
