"""Where the lines and the events of a growing log end; each look costs what is new, not the whole log.

A screen and a recording both need the ends of the lines; that part imports next to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from acp_core.files.journal import RESTARTED, UNREADABLE, Reader
from acp_core.files.reading import Unreadable
from acp_core.history.schema import LARGEST_LOG
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


class GrowingLog:
    """The log of one collaboration, look after look.

    Args:
        path: the log.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._reader = Reader(
            path, max_line=LARGEST_LOG, max_lines=LARGEST_LOG, max_size=LARGEST_LOG
        )
        self._lines = LineEnds()

    def read(self) -> None:
        """Look once at what is new.

        Raises:
            Unreadable: it is missing, or may not be read.
        """
        poll = self._reader.poll(0.0)
        if poll.change == UNREADABLE:
            raise Unreadable(poll.reason)
        if poll.change == RESTARTED:
            self._lines = LineEnds()
        for block in poll.blocks:
            self._lines.add(block.data)

    def end_of(self, events: Sequence[Event], number: int) -> int:
        """Where the line of an event ends, its newline included; the log's end where none is known."""
        end = self._lines.of_event(events, number)
        return self._lines.size + len(self._reader.tail) if end is None else end
