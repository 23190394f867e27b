"""Looking for words in a timeline, from the selected event on, a piece at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from acp_tui.widgets.timeline_filter import chunks, searched
from acp_tui.widgets.timeline_model import AT_ONCE, Model


class Search:
    """The shown events that hold some words.

    ``places`` are in order once ``complete``; before, only what was found so far.
    """

    def __init__(self, words: str) -> None:
        self.words = words
        self.places = array("l")
        self.complete = False
        self._wanted = words.lower()
        self._upto = 0

    def run(self, model: Model, start: int, wanted: Callable[[], bool]) -> Iterator[int | None]:
        """Look at every shown event, from position ``start`` on and around; slow.

        Yields the first place found as soon as it is (at most once), and then None when all
        is done. Yields nothing more once it is no longer ``wanted``.
        """
        places = array("l")
        reported = False
        self._upto = model.length
        length = len(model)
        start = min(max(0, start), length)
        for chunk in chunks([range(start, length), range(start)]):
            if not wanted():
                return
            for position in chunk:
                try:
                    place = model.place(position)
                    held = self._holds(model, place)
                except IndexError:  # the log or the filter changed meanwhile: not wanted anymore
                    return
                if held:
                    places.append(place)
                    if not reported:
                        reported = True
                        yield place
        self.places = array("l", sorted(places))
        self.complete = True
        yield None

    def extend(self, model: Model) -> bool:
        """Look at the events that came since, too; returns False where they are too many."""
        span = range(self._upto, model.length)
        if len(span) > AT_ONCE:
            return False
        self._upto = model.length
        for place in span:
            position = model.position(place)
            visible = position < len(model) and model.place(position) == place
            if visible and self._holds(model, place):
                self.places.append(place)
        return True

    def step(self, place: int | None, by: int) -> int | None:
        """The next (``by`` 1) or previous (-1) found place, around the ends; None without any."""
        if not self.places:
            return None
        if place is None:
            return self.places[0 if by > 0 else -1]
        if by > 0:
            index = bisect_right(self.places, place) % len(self.places)
        else:
            index = bisect_left(self.places, place) - 1
        return self.places[index]

    def number(self, place: int | None) -> int:
        """Which of the found ones ``place`` is, from 1; 0 where it is none."""
        if place is None:
            return 0
        index = bisect_left(self.places, place)
        return index + 1 if index < len(self.places) and self.places[index] == place else 0

    def _holds(self, model: Model, place: int) -> bool:
        return self._wanted in searched(model.events[place]).lower()
