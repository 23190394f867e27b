"""When to say what changed: the first change at once, a flood coalesced, always the last state.

Pure: the time is given (seconds of a clock that only goes forward).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acp_core.model import Snapshot

PACE = 1 / 30  # s between two batches: more cannot be seen
FIRST = 25  # snapshots that make a batch during the first look,
FIRST_WAIT = 0.05  # or the seconds that the first of them waits
PART = 2  # of what the reader knows already: one part in so many makes a batch, once that is more,
LONGEST_WAIT = 0.5  # and is waited for longer: with each batch the whole fleet is arranged anew


@dataclass(frozen=True, slots=True)
class Batch:
    """What changed in a fleet since the batch before.

    ``snapshots`` are new, in the order in which the collaborations were found; ``gone`` are
    the keys of those that are no more; ``loops`` the keys of those whose participants' loops
    changed in any way (see `Fleet.loops`). ``complete`` is False while the first look goes on.
    ``note`` says what a reader should know of how all this was found, such as
    "polling ..."; it holds until another batch says otherwise.
    """

    snapshots: tuple[Snapshot, ...]
    gone: tuple[str, ...] = ()
    complete: bool = True
    note: str = ""
    loops: tuple[str, ...] = ()


class Outbox:
    """Collects what changed until it is due."""

    def __init__(self) -> None:
        self._fresh: dict[str, Snapshot] = {}
        self._gone: dict[str, None] = {}
        self._loops: dict[str, None] = {}
        self._told: set[str] = set()  # the keys that the reader knows
        self._changed = False  # one of those has news
        self._said: tuple[bool, str] = (False, "")
        self._batch_at = self._fresh_at = float("-inf")

    def show(self, key: str, snapshot: Snapshot, now: float) -> None:
        """A new Snapshot, in place of one that was not said yet."""
        if not self._fresh:
            self._fresh_at = now
        self._gone.pop(key, None)
        self._changed = self._changed or key in self._told
        self._fresh[key] = snapshot

    def tell_loops(self, key: str) -> None:
        """Loops of a collaboration changed."""
        self._loops[key] = None

    def drop(self, key: str) -> None:
        """A collaboration is no more."""
        self._fresh.pop(key, None)
        self._loops.pop(key, None)
        if key in self._told:
            self._gone[key] = None

    def due(self, complete: bool, note: str) -> float | None:
        """When the next batch is due, None where there is nothing to say.

        The end of the first look is said at once, even where nothing was found.
        """
        if complete and not self._said[0]:
            return float("-inf")
        if not complete:
            known = len(self._told)
            if len(self._fresh) >= max(FIRST, known // PART):
                return float("-inf")
            grown = 1.0 if self._changed else max(1.0, known / (FIRST * PART))
            wait = min(LONGEST_WAIT, FIRST_WAIT * grown)
            return self._fresh_at + wait if self._fresh else None
        if self._fresh or self._gone or self._loops or note != self._said[1]:
            return self._batch_at + PACE
        return None

    def take(self, complete: bool, note: str, now: float, order: Callable[[str], int]) -> Batch:
        """The batch, with its Snapshots by ``order`` of their keys."""
        snapshots = tuple(self._fresh[key] for key in sorted(self._fresh, key=order))
        loops = tuple(sorted(self._loops, key=order))
        batch = Batch(snapshots, tuple(self._gone), complete, note, loops)
        self._told.difference_update(self._gone)
        self._told.update(self._fresh)
        self._fresh, self._gone, self._loops, self._changed = {}, {}, {}, False
        self._said, self._batch_at = (complete, note), now
        return batch
