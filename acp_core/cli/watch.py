"""``acp watch``: one line for every change, until all is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from acp_core.cli import changes, fields
from acp_core.cli.changes import Change
from acp_core.cli.opening import sort_out
from acp_core.cli.output import complain, dump, say, terminal, warn
from acp_core.cli.start import load_settings
from acp_core.files import interrupts
from acp_core.fleet import Batch, Fleet
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.model import Snapshot, SourceState, Status, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import SearchRoot

SCHEMA = "acp.watch/1"
COMPLETED, RUNNING, UNREADABLE, BLOCKED = 0, 1, 2, 5
WORST = (UNREADABLE, BLOCKED, RUNNING, COMPLETED)
PATIENCE = 2.0  # seconds for which something is unreadable before it counts as such
STYLES = {
    "need": "need",
    "finding": "warning",
    "history": "error",
    "source": "warning",
    "gone": "error",
    "phase": "head",
    "status": "head",
    "state": "head",
}


def watch(given: Values) -> int:
    """Print changes until all is over.

    Raises:
        CommandError: there is no collaboration, or no such place.
    """
    good, problems = sort_out(given.paths)
    if not good:
        raise CommandError("; ".join(problems))
    for problem in problems:
        complain(problem)
    settings = load_settings()
    recorder = Recorder("watch", Bounds.of(settings.recording))
    watching = Watching(_printer(given.json, given.utc or settings.utc), recorder=recorder)
    if given.once:
        watching.print_once(good)
    else:
        interrupts.run_loop(lambda: watching.follow(good))
    if not watching.codes:
        where = ", ".join(str(path) for path in good)
        raise CommandError(f"no collaboration in or below {where}")
    return worst([*watching.codes, *(UNREADABLE for _ in problems)])


def worst(codes: Iterable[int]) -> int:
    """The exit code that says most of what is wrong."""
    return min(codes, key=WORST.index)


class Watching:
    """Follows a fleet and prints what changes.

    Args:
        show: Prints a change of a collaboration.
        clock: Seconds that never go back; tests set it.
        recorder: Keeps what changes.
    """

    def __init__(
        self,
        show: Callable[[Snapshot, Change], None],
        clock: Callable[[], float] = time.monotonic,
        recorder: Recorder | None = None,
    ) -> None:
        self._show = show
        self._clock = clock
        self._recorder = recorder
        self._last: dict[str, Snapshot] = {}
        self._gone: set[str] = set()
        self._unreadable_since: dict[str, float] = {}
        self._complete = False  # whether everything was looked at once

    @property
    def codes(self) -> list[int]:
        """The exit code of each collaboration as it stands."""
        gone = [UNREADABLE for _ in self._gone]
        return gone + [_code(snapshot) for snapshot in self._last.values()]

    def print_once(self, paths: list[SearchRoot]) -> None:
        """Print how the collaborations under ``paths`` stand."""
        for snapshot in Fleet(paths, rows=True).read():
            self._take(snapshot)

    async def follow(self, paths: list[SearchRoot]) -> None:
        """Follow the collaborations under ``paths`` until all are over."""
        fleet = Fleet(paths, recorder=self._recorder)
        batches = fleet.changes()
        following = asyncio.ensure_future(anext(batches))
        try:
            while not self.over():
                done, _ = await asyncio.wait({following}, timeout=self._patience())
                if done:
                    self.take(following.result())
                    following = asyncio.ensure_future(anext(batches))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await fleet.close()

    def take(self, batch: Batch) -> None:
        """Print what a batch brings."""
        self._complete = batch.complete
        if batch.note:
            warn(batch.note)
        for snapshot in batch.snapshots:
            self._take(snapshot)
        for key in batch.gone:
            last = self._last.pop(key, None)
            if last:
                self._gone.add(key)
                self._show(last, changes.gone(last, utc_now()))

    def over(self) -> bool:
        """Whether everything has ended; what is unreadable only after a moment's patience."""
        running = any(_code(snapshot) == RUNNING for snapshot in self._last.values())
        return self._complete and not running and not self._patience()

    def _patience(self) -> float | None:
        """Seconds until the newest unreadable collaboration counts; None where none is new."""
        if not self._unreadable_since:
            return None
        left = max(self._unreadable_since.values()) + PATIENCE - self._clock()
        return max(0, left)

    def _take(self, snapshot: Snapshot) -> None:
        old = self._last.get(snapshot.key)
        self._gone.discard(snapshot.key)
        self._last[snapshot.key] = snapshot
        if _code(snapshot) == UNREADABLE:
            self._unreadable_since.setdefault(snapshot.key, self._clock())
        else:
            self._unreadable_since.pop(snapshot.key, None)
        for change in changes.between(old, snapshot) if old else changes.first(snapshot):
            self._show(snapshot, change)


def _code(snapshot: Snapshot) -> int:
    if snapshot.source.state is SourceState.UNREACHABLE:
        return UNREADABLE
    return {Status.COMPLETED: COMPLETED, Status.BLOCKED: BLOCKED}.get(snapshot.status, RUNNING)


def _printer(as_json: bool, utc: bool) -> Callable[[Snapshot, Change], None]:
    shown_on = terminal()

    def as_object(snapshot: Snapshot, change: Change) -> None:
        told = {
            "schema": SCHEMA,
            "type": change.type,
            "at": fields.time(change.at),
            "collaboration": snapshot.key,
            "name": snapshot.name,
        }
        say(dump(told | change.fields, indent=None), now=True)

    def as_line(snapshot: Snapshot, change: Change) -> None:
        at = format.zoned(change.at, utc).strftime("%H:%M:%S")
        text = shown_on.paint(change.text, STYLES.get(change.type, ""))
        say(f"{shown_on.paint(at, 'dim')}  {snapshot.name}  {text}", now=True)

    return as_object if as_json else as_line
