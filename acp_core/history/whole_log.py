"""The log that a collaboration's folder holds, taken apart into what each event brought."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.history.line_ends import LineEnds
from acp_core.history.moments import END_OF_SECOND
from acp_core.history.store import BadRecording
from acp_core.history.versions import PRESENT, Known, Versions
from acp_core.model import Event
from acp_core.model.marks import marks
from acp_core.model.tracked import PastLog

_LAST = (
    253_402_300_799.0  # the last second of the year 9999: numbers near it have no such fractions
)


def log_of(events: Sequence[Event], versions: Versions, *, exact: bool = False) -> PastLog:
    """The log with all that it holds; of the name "" where the protocol has none.

    Args:
        events: of the present.
        versions: of the tracked files.
        exact: whether a time without a fraction is that instant, and not its whole second.
    """
    name = next((each for each in versions.files if each in versions.logs), "")
    data = _newest(versions.files.get(name, []))
    latest = datetime.timestamp if exact else _latest
    times = (latest(event.at) if event.at else None for event in marks(events))
    return PastLog(name, data, tuple(event_ends(events, data)), tuple(times))


def _newest(versions: Sequence[Known]) -> bytes:
    for known in reversed(versions):
        if known.size is not None:
            try:
                return known.read()
            except (OSError, KeyError, BadRecording):
                continue
    return b""


def _latest(at: datetime) -> float:
    """The latest moment that a time stands for: one of whole seconds, for all of its second."""
    second = at.timestamp()
    return min(second + (0.0 if at.microsecond else END_OF_SECOND / 1_000_000), max(_LAST, second))


def event_ends(events: Sequence[Event], log: bytes) -> list[int]:
    """Where in the log each event's line ends, its newline included."""
    lines = LineEnds()
    lines.add(log)
    ends = (lines.of_event(events, number) for number in range(len(events)))
    return [len(log) if end is None else end for end in ends]


def last_generation(versions: Sequence[Known]) -> list[Known]:
    """The states of the log since it was last cut or rewritten."""
    states: list[Known] = []
    for known in versions:
        if known.size is None or known.source == PRESENT:
            continue
        if states and (states[-1].size or 0) > known.size:
            states = []
        states.append(known)
    return states
