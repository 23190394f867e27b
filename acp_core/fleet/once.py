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


def read_once(
    members: Sequence[Member], workers: Workers, clock: Callable[[], datetime], patience: float
) -> Iterator[tuple[Member, Snapshot]]:
    """Each with its Snapshot; that of one that did not end says so.

    Args:
        patience: Seconds without any that ended or got on, after which the others are stuck.
    """
    reading = [
        member.lane.submit(partial(member.refresh, clock()), Urgency.CHANGE) for member in members
    ]
    pending, last = set(reading), time.monotonic()
    while pending and time.monotonic() - last < patience:
        done, pending = wait(pending, timeout=1)
        if done or any(member.progress.advances() for member in members):
            last = time.monotonic()
        workers.help()
    for future, member in zip(reading, members, strict=True):
        yield member, future.result() if future.done() else member.unfinished(clock())
