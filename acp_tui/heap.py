"""When Python looks for garbage while the dashboard runs: seldom, and not in what stays anyway.

A search goes through every lasting object: the modules, the stylesheets, each event of a log.
With 100,000 events that stops the program for 150 ms at a time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable

YOUNG = 10_000  # new objects that start a search among the young ones (Python's own: 700)
MANY = 2_000  # events of a log that are worth being put aside


class Heap:
    """Puts what stays aside, from where it is freed as ever, but no longer searched."""

    def __init__(self) -> None:
        self._aside: set[str] = set()
        self._begun = False

    @staticmethod
    def begin() -> None:
        """Search no more until `settle`: nearly everything that a start makes stays."""
        gc.disable()

    def settle(self) -> None:
        """The start is over: put everything aside, and search again."""
        if not self._begun:
            self._begun = True
            gc.set_threshold(YOUNG, 20, 10)
            gc.freeze()
        gc.enable()

    def read(self, logs: Iterable[tuple[str, int]]) -> None:
        """Of these collaborations so many events are held: put those of a long log aside once."""
        new = {key for key, events in logs if events >= MANY and key not in self._aside}
        if new and self._begun:
            self._aside |= new
            gc.freeze()
