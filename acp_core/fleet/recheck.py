"""When collaborations are looked at although nobody said that something changed."""

from __future__ import annotations

import time

LEAST, EACH = 10.0, 0.2  # s between two looks at what is known: at least, and for each of them


class RecheckSchedule:
    """When everything is read again, so that a change that nobody signalled is seen too.

    Args:
        whole: seconds between two looks at everything, for new collaborations too. What is
            known already is looked at sooner where it is little.
    """

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self._last_whole = time.monotonic()

    def begin(self) -> None:
        """Everything is looked at now."""
        self._last_whole = time.monotonic()

    def pause(self, members: int) -> float:
        """Seconds until the next look."""
        return min(self._whole, max(LEAST, EACH * members))

    def is_whole(self) -> bool:
        """Whether it is time to look at everything, and not only at what is known."""
        due = time.monotonic() >= self._last_whole + self._whole
        if due:
            self.begin()
        return due
