"""Reading some collaborations once, in the workers; what does not end is left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from datetime import datetime
from functools import partial

from acp_core.fleet.member import Member
from acp_core.fleet.workers import Urgency, Workers
from acp_core.model import Snapshot

_AT_ONCE = 200  # members in one job that only looks whether anything changed


def read_once(
    members: Sequence[Member], workers: Workers, clock: Callable[[], datetime], patience: float
) -> Iterator[tuple[Member, Snapshot]]:
    """Each with its Snapshot; that of one that did not end says so.

    Args:
        patience: Seconds without any that ended or got on, after which the others are stuck.
    """
    recalled = _recall(members, workers, clock, patience)
    reading = [
        member.lane.submit(partial(member.refresh, clock()), Urgency.CHANGE)
        for member in members
        if member.key not in recalled
    ]
    pending, last = set(reading), time.monotonic()
    while pending and time.monotonic() - last < patience:
        done, pending = wait(pending, timeout=1)
        if done or any(member.progress.advances() for member in members):
            last = time.monotonic()
        workers.help()
    read = iter(reading)
    for member in members:
        known = recalled.get(member.key)
        if known is None:
            future = next(read)
            known = future.result() if future.done() else member.unfinished(clock())
        yield member, known


def _recall(
    members: Sequence[Member], workers: Workers, clock: Callable[[], datetime], patience: float
) -> dict[str, Snapshot]:
    """Those of which an earlier run says enough: many in one job, since each takes next to nothing."""

    def some(chosen: Sequence[Member]) -> dict[str, Snapshot]:
        found = ((member.key, member.recall(clock())) for member in chosen)
        return {key: snapshot for key, snapshot in found if snapshot is not None}

    parts = [members[start : start + _AT_ONCE] for start in range(0, len(members), _AT_ONCE)]
    recalling = [workers.lane().submit(partial(some, part), Urgency.CHANGE) for part in parts]
    wait(recalling, timeout=patience)
    done = [future.result() for future in recalling if future.done()]
    return {key: snapshot for part in done for key, snapshot in part.items()}
