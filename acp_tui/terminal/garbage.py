"""When Python looks for garbage while the dashboard runs: after a picture, not in the midst of one.

A search goes through every lasting object: the modules, the stylesheets, each event of a log.
With 100,000 events that stops the program for 150 ms at a time: what stays is put aside, long logs
and large fleets as they are read. And Python searches when much was made, which is while a picture is worked out: so the search is
done before that, when the last picture is out.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable

FEW = 10_000  # new objects that are worth a search in a quiet moment
QUIET = 0.02  # s after a picture: then nobody waits
YOUNG = 50_000  # new objects that start a search in any moment (Python's own: 700)
OLDER, OLDEST = 20, 10  # searches among the younger ones, after which the older are searched
MANY = 2_000  # events of a log that are worth being put aside
SOME = 25  # collaborations that are, however short their logs


class Heap:
    """Puts what stays aside, from where it is freed as ever, but no longer searched."""

    def __init__(self) -> None:
        self._aside: set[str] = set()  # of a long log
        self._known: set[str] = set()
        self._new = 0  # those that were read for the first time since the last were put aside
        self._begun = self._due = False

    @staticmethod
    def begin() -> None:
        """Search no more until `settle`: nearly everything that a start makes stays."""
        gc.disable()

    def settle(self) -> None:
        """The start is over: put everything aside, and search again."""
        if not self._begun:
            self._begun = True
            gc.set_threshold(YOUNG, OLDER, OLDEST)
            gc.freeze()
        gc.enable()

    def drawn(self) -> None:
        """A picture is out: search soon, where enough was made. For the event loop's thread."""
        if self._begun and not self._due and gc.get_count()[0] >= FEW:
            self._due = True
            asyncio.get_running_loop().call_later(QUIET, self._search)

    def _search(self) -> None:
        self._due = False
        _, middle, old = gc.get_count()
        gc.collect(0 if middle <= OLDER else 1 if old <= OLDEST else 2)

    def read(self, logs: Iterable[tuple[str, int]]) -> None:
        """Of these collaborations so many events are held: put them aside once.

        A long log at once, and shorter ones when there are `SOME` of them: a first look at
        thousands would be searched again and again while it goes on.
        """
        held = dict(logs)
        self._new += len(held.keys() - self._known)
        self._known |= held.keys()
        long = {key for key, events in held.items() if events >= MANY} - self._aside
        if self._begun and (long or self._new >= SOME):
            self._aside |= long
            self._new = 0
            gc.freeze()
