"""The log that a collaboration's folder holds, taken apart into what each event brought."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.history.moments import END_OF_SECOND
from acp_core.history.store import BadRecording
from acp_core.history.versions import PRESENT, Known, Versions
from acp_core.model import Event
from acp_core.model.tracked import PastLog

_LAST = (
    253_402_300_799.0  # the last second of the year 9999: numbers near it have no such fractions
)


def log_of(events: Sequence[Event], versions: Versions) -> PastLog:
    """The log with all that it holds; of the name "" where the protocol has none."""
    name = next((each for each in versions.files if each in versions.logs), "")
    data = _newest(versions.files.get(name, []))
    times = (_latest(event.at) if event.at else None for event in events)
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


class LineEnds:
    """Where the lines of a log end, and with them its events; fed with what is new.

    Attributes:
        size: bytes of the lines so far.
    """

    def __init__(self) -> None:
        self.size = 0
        self._ends: list[int] = []
        self._texts: list[int] = []  # of lines that hold something

    def add(self, data: bytes) -> None:
        """Go on with whole lines; the last one may lack its newline where nothing follows."""
        place = 0
        while place < len(data):
            newline = data.find(b"\n", place)
            end = newline + 1 if newline >= 0 else len(data)
            self._ends.append(self.size + end)
            if data[place:end].strip():
                self._texts.append(self.size + end)
            place = end
        self.size += len(data)

    def of_event(self, events: Sequence[Event], number: int) -> int | None:
        """Where the line of an event ends, its newline included; None where there is no such line.

        Where the events do not know their lines, each line that holds something is one.
        """
        line_of = getattr(events, "line_of", None)
        ends = self._texts if line_of is None else self._ends
        place = number if line_of is None else line_of(number) - 1
        return ends[place] if 0 <= place < len(ends) else None


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
