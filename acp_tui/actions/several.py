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
        chosen = entries(self.field.default)
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
        chosen = entries(value)
        for choice, tick in zip(self.field.choices, self.query(Tick), strict=True):
            tick.value = str(choice) in chosen


class Row(Vertical):
    """A name with the choice for it."""


class Each(Vertical):
    """A choice, or nothing, for each name; its value is a list of ``NAME=CHOICE``."""

    DEFAULT_CSS = """
    Each {
        height: auto;
        & > Row { height: auto; }
        & .each--name { height: auto; text-style: bold; }
    }
    """

    def __init__(self, field: Described) -> None:
        super().__init__()
        self.field = field
        self.names = list(field.names)
        self._wished = self._chosen(field.default)

    def compose(self) -> ComposeResult:
        """The name, and what can be chosen for it."""
        for name in self.names:
            yield self._row(name, self._wished.get(name, Select.NULL))

    def _row(self, name: str, chosen: Any) -> Row:
        options = [
            (text.searchable(self.field.labels.get(str(each), str(each))), str(each))
            for each in self.field.choices
        ]
        title = Static(self._title(name), classes="each--name")
        choice = Select(options, value=chosen, prompt="no agent", allow_blank=True)
        return Row(title, choice)

    def _title(self, name: str) -> Content:
        return text.plain(self.field.labels.get(f"{name}=", name))

    async def rename(self, names: Iterable[str]) -> None:
        """Give a choice to each of these names: what was chosen for it, else the usual one."""
        choices = self._choices(names)
        rows, self.names = len(self.names), list(choices)
        for row in [*self.query(Row)][len(choices) :]:
            await row.remove()
        await self.mount_all(self._row(*each) for each in [*choices.items()][rows:])
        titles = self.query(".each--name").results(Static)
        for name, title, select in zip(choices, titles, self.query(Select), strict=True):
            title.update(self._title(name))
            select.value = choices[name]

    def value_for(self, names: Iterable[str]) -> list[str]:
        """What is chosen for these names, though their rows may not be drawn yet."""
        choices = self._choices(names).items()
        return [f"{name}={choice}" for name, choice in choices if choice is not Select.NULL]

    def _choices(self, names: Iterable[str]) -> dict[str, Any]:
        wanted = list(dict.fromkeys(name for name in names if "=" not in name))
        usual = self.field.bare if self.field.bare in self.field.choices else Select.NULL
        before = {**self._wished, **dict(self._pairs())}
        if len(wanted) == len(self.names):  # a name is being typed: its row stays
            pairs = zip(wanted, self.names, strict=True)
            before |= {new: before.get(old, usual) for new, old in pairs}
        return {name: before.get(name, usual) for name in wanted}

    def remember(self, names: Iterable[str], value: object) -> None:
        """Take what was chosen for these names, nothing among it, before their rows are there."""
        self._wished = {**dict.fromkeys(names, Select.NULL), **self._chosen(value)}

    def _chosen(self, value: object) -> dict[str, Any]:
        """The choices by name; a name without one gets the usual one."""
        pairs = (each.partition("=") for each in entries(value))
        given = {name: choice if equals else self.field.bare for name, equals, choice in pairs}
        return {name: choice for name, choice in given.items() if choice in self.field.choices}

    def _pairs(self) -> list[tuple[str, Any]]:
        return [
            (name, select.value)
            for name, select in zip(self.names, self.query(Select), strict=False)
        ]

    @property
    def value(self) -> list[str]:
        """What is chosen."""
        return [f"{name}={choice}" for name, choice in self._pairs() if choice is not Select.NULL]

    @value.setter
    def value(self, value: object) -> None:
        self._wished = self._chosen(value)
        for name, select in zip(self.names, self.query(Select), strict=True):
            select.value = self._wished.get(name, Select.NULL)


def entries(value: object) -> list[str]:
    """The entries of a list; one text stands for a list of it."""
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [] if value in (None, "") else [str(value)]
