"""Tells everybody who follows the log that it has grown."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

from acp_core.protocols.wire.write import messages
from acp_core.protocols.wire.write.database import Database, Entry

RECENT = 4096  # entries that followers get without asking the store
PAGE = 256


class Hub:
    """The end of the log. Followers keep a place in it each, so none can miss or get one twice."""

    def __init__(self) -> None:
        self.last = 0
        self._recent: list[Entry] = []
        self._complete_after = 0  # what follows this number is all in `_recent`
        self._grown = asyncio.Event()
        self.closed = False
        self.followers = 0  # streams that are open

    def start(self, last: int) -> None:
        """Begin behind the last number that was given."""
        self.last = self._complete_after = last

    def publish(self, entries: list[Entry]) -> None:
        """Add committed entries, in order."""
        self._recent += entries
        if len(self._recent) > 2 * RECENT:
            self._complete_after = self._recent[-RECENT - 1].seq
            del self._recent[:-RECENT]
        self.last = entries[-1].seq
        grown, self._grown = self._grown, asyncio.Event()
        grown.set()

    def close(self) -> None:
        """Wake everybody: nothing will come any more."""
        self.closed = True
        self._grown.set()

    async def grown(self, place: int, seconds: float) -> bool:
        """Wait until the log goes beyond ``place``; False when that took too long, or is over."""
        while self.last <= place and not self.closed:
            try:
                async with asyncio.timeout(seconds):
                    await self._grown.wait()
            except TimeoutError:
                break
        return self.last > place

    async def after(self, place: int, store: Database) -> list[Entry]:
        """The entries that follow ``place``, at most `PAGE`; empty when there is none."""
        if place >= self.last:
            return []
        if place >= self._complete_after:
            start = bisect_right(self._recent, place, key=lambda entry: entry.seq)
            return self._recent[start : start + PAGE]
        return await store.read(lambda db: messages.after(db, place, PAGE))
