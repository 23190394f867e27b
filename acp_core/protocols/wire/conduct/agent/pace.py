"""How fast one peer may talk: beyond that it is read more slowly, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import time


class Pace:
    """So many turns a second, with a reserve of one second's."""

    def __init__(self, rate: int) -> None:
        self._rate = self._left = float(rate)
        self._at = time.monotonic()

    async def turn(self) -> None:
        """Wait until it is the next one's turn."""
        now = time.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate) - 1
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)
