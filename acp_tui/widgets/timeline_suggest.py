"""Ends words while a filter is typed: names of participants, kinds of events."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.suggester import Suggester

NAMES = ("from:", "event:", "is:illegal", "is:new")


class FilterSuggester(Suggester):
    """Suggests the rest of the last word of a filter."""

    def __init__(self, known: Callable[[], tuple[Iterable[str], Iterable[str]]]) -> None:
        """Make it; ``known`` gives the participants and the kinds there are."""
        super().__init__(use_cache=False, case_sensitive=True)
        self._known = known

    async def get_suggestion(self, value: str) -> str | None:
        """The whole value with its last word ended, or None."""
        before, blank, word = value.rpartition(" ")
        if not word:
            return None
        actors, kinds = self._known()
        words = [*NAMES, *(f"from:{name}" for name in actors), *(f"event:{kind}" for kind in kinds)]
        ended = next((each for each in words if each.startswith(word) and each != word), None)
        return None if ended is None or " " in ended else before + blank + ended
