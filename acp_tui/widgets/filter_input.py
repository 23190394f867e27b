"""The lines in which a filter or a search is typed: of the fleet, and of the timeline and panels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from acp_tui import keys


class FilterInput(Input):
    """Where the words are typed; hidden until they are."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.FILTER]

    def __init__(self) -> None:
        super().__init__(placeholder="name, objective, phase or participant", id="filter")
        self.display = False


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


class Typed(Input):
    """The line in which a search or a filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.TYPED]

    class Cancelled(Message):
        """The user does not want it after all."""

    def action_cancel(self) -> None:
        """Leave the line without doing anything."""
        self.post_message(self.Cancelled())
