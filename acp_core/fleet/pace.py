"""How often a collaboration is read again: a change at once, a stream of them a few times a second.

The generic cell rate algorithm: a few readings may follow each other as fast as anybody can see, and
from then on the rate is bounded, for as long as changes keep coming faster than that.
"""

from __future__ import annotations

FASTEST = 1 / 30  # s between two readings: more cannot be seen
STEADY = 0.25  # s between two of a stream: it costs half as much, and can still be followed
AT_ONCE = 4  # readings that may follow each other before a stream counts as one


class Pace:
    """The readings of one collaboration; times are seconds of a clock that only goes forward."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._used = float("-inf")  # when all of `AT_ONCE` are there to be used again

    def due(self) -> float:
        """When the next reading may begin."""
        return max(self._last + FASTEST, self._used - (AT_ONCE - 1) * STEADY)

    def begin(self, now: float) -> None:
        """A reading begins."""
        self._last = now
        self._used = max(now, self._used) + STEADY
