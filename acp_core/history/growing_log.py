"""Where the events of a growing log end; each look costs what is new, not the whole log."""

from __future__ import annotations

import os
from collections.abc import Sequence

from acp_core.files.journal import RESTARTED, UNREADABLE, Reader
from acp_core.files.reading import Unreadable
from acp_core.history.line_ends import LineEnds
from acp_core.history.observing import LARGEST_LOG
from acp_core.model import Event


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
