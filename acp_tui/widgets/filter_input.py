"""The line in which the words are typed that the fleet is filtered by."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.widgets import Input

from acp_tui import keys


class FilterInput(Input):
    """Where the words are typed; hidden until they are."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.FILTER]

    def __init__(self) -> None:
        super().__init__(placeholder="name, objective, phase or participant", id="filter")
        self.display = False
