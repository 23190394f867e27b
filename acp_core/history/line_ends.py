"""Where the lines of a log end: what a screen and a recording both need of one, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.model import Event


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
