"""Where in the past something worth looking at happened: for whoever jumps from one to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from acp_core.history.moments import EVENT, FINDINGS, Moment

STALL = 60.0  # seconds that a wait lasts at least to count as a stall
UNUSUAL = 4.0  # times as long as the median wait of the same collaboration


def stalls(moments: Sequence[Moment]) -> list[int]:
    """The places of the events before which nothing happened for unusually long (inferred)."""
    events = [place for place, moment in enumerate(moments) if moment.kind == EVENT]
    waits = [moments[b].at - moments[a].at for a, b in pairwise(events)]
    if not waits:
        return []
    least = max(STALL, UNUSUAL * median(waits))
    return [place for place, wait in zip(events[1:], waits, strict=True) if wait >= least]


def of_kind(moments: Sequence[Moment], kind: str) -> list[int]:
    """The places of the moments of a kind.

    Args:
        moments: all of them, in order.
        kind: ``event``, ``findings`` or ``stall`` (see `stalls`).

    Raises:
        KeyError: there is no such kind.
    """
    if kind == "stall":
        return stalls(moments)
    wanted = {"event": EVENT, "findings": FINDINGS}[kind]
    return [place for place, moment in enumerate(moments) if moment.kind == wanted]


def beyond(places: Sequence[int], here: int, direction: int) -> int | None:
    """The nearest of these places in a direction (1 or -1); None where there is none."""
    ahead = [place for place in places if (place - here) * direction > 0]
    if not ahead:
        return None
    return min(ahead) if direction > 0 else max(ahead)
