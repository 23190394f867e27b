"""Inputs that hold several choices: a switch for each choice, or a choice for each name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Checkbox, Select, Static

from acp_tui import text


class Described(Protocol):
    """What is needed of a field; see `acp_tui.actions.forms.Field`."""

    @property
    def choices(self) -> tuple[Any, ...]:
        """What can be chosen."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What choices are called; ``NAME=`` for a name."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each gets a choice."""

    @property
    def bare(self) -> object:
        """The choice of a name that is given without one."""

    @property
    def default(self) -> object:
        """What is chosen at first."""


class Tick(Checkbox):
    """A switch that is told from its contrary without colours: the box is empty, or it is not."""

    def render(self) -> Content:
        """Draw it."""
        self.BUTTON_INNER = "X" if self.value else " "
        return super().render()


class Several(Vertical):
    """A switch for each choice; its value is those that are on."""

    DEFAULT_CSS = "Several { height: auto; }"

    def __init__(self, field: Described) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        """One switch for each."""
        chosen = _texts(self.field.default)
        for choice in map(str, self.field.choices):
            label = text.line(self.field.labels.get(choice, choice))
            yield Tick(label, choice in chosen, compact=True)

    @property
    def value(self) -> list[str]:
        """What is chosen."""
        ticks = zip(self.field.choices, self.query(Tick), strict=True)
        return [str(choice) for choice, tick in ticks if tick.value]

    @value.setter
    def value(self, value: object) -> None:
        chosen = _texts(value)
        for choice, tick in zip(self.field.choices, self.query(Tick), strict=True):
            tick.value = str(choice) in chosen


class Each(Vertical):
    """A choice, or nothing, for each name; its value is a list of ``NAME=CHOICE``."""

    DEFAULT_CSS = """
    Each { height: auto; & > .each--name { height: auto; text-style: bold; } }
    """

    def __init__(self, field: Described) -> None:
        super().__init__()
        self.field = field

    def compose(self) -> ComposeResult:
        """The name, and what can be chosen for it."""
        options = [
            (text.searchable(self.field.labels.get(str(each), str(each))), str(each))
            for each in self.field.choices
        ]
        chosen = self._chosen(self.field.default)
        for name in self.field.names:
            label = self.field.labels.get(f"{name}=", name)
            yield Static(text.plain(label), classes="each--name")
            value = chosen.get(name, Select.NULL)
            yield Select(options, value=value, prompt="no program", allow_blank=True)

    def _chosen(self, value: object) -> dict[str, Any]:
        """The choices by name; a name without one gets the usual one."""
        pairs = (each.partition("=") for each in _texts(value))
        given = {name: choice if equals else self.field.bare for name, equals, choice in pairs}
        return {name: choice for name, choice in given.items() if choice in self.field.choices}

    @property
    def value(self) -> list[str]:
        """What is chosen."""
        selects: Iterable[Select[str]] = self.query(Select)
        both = zip(self.field.names, selects, strict=True)
        return [f"{name}={select.value}" for name, select in both if not select.is_blank()]

    @value.setter
    def value(self, value: object) -> None:
        chosen = self._chosen(value)
        for name, select in zip(self.field.names, self.query(Select), strict=True):
            select.value = chosen.get(name, Select.NULL)


def _texts(value: object) -> list[str]:
    """The entries of a list; one text stands for a list of it."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [] if value in (None, "") else [str(value)]
