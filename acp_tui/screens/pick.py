"""Choosing one of many: type to narrow the list, enter to take what is selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from acp_tui import keys
from acp_tui.text import line
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.row_list import Item, RowList


class PickScreen(ModalScreen[str | None]):
    """A list over the screen; gives the key of what was chosen, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.PICKING]

    DEFAULT_CSS = """
    PickScreen {
        align: center middle;
        & #pick {
            width: 100; max-width: 90%; height: auto; max-height: 80%;
            border: round $accent; padding: 0 1; background: $surface;
        }
        & #pick-title { height: 1; text-style: bold; }
        & #pick-words { border: none; height: 1; padding: 0; background: transparent; }
        & RowList { height: auto; max-height: 50vh; margin-top: 1; }
        &:ansi #pick { background: ansi_default; }
    }
    """

    def __init__(self, title: str, items: Sequence[Item], selected: str = "") -> None:
        """Make it.

        Args:
            title: What is chosen.
            items: What there is, each with a key.
            selected: The key of the one that is selected first.
        """
        super().__init__()
        self._title = title
        self._items = tuple(items)
        self._selected = selected
        self._list = RowList(id="pick-list", empty="No match.")

    def compose(self) -> ComposeResult:
        with Vertical(id="pick"):
            yield Static(line(self._title), id="pick-title")
            yield Input(placeholder="type to filter", id="pick-words", compact=True)
            yield self._list

    def on_mount(self) -> None:
        """Show everything; the words can be typed at once."""
        self._list.can_focus = False
        self._show("")
        self.query_one(Input).focus()

    def _show(self, words: str) -> None:
        wanted = words.lower().split()
        items = [
            item for item in self._items if all(w in text_of(item.pieces).lower() for w in wanted)
        ]
        self._list.items = tuple(items)
        keys = [item.key for item in items]
        if not items:
            return
        self.call_after_refresh(
            self._list.select, keys.index(self._selected) if self._selected in keys else 0
        )

    @on(Input.Changed, "#pick-words")
    def _typed(self, message: Input.Changed) -> None:
        if message.value:
            self._selected = ""
        self._show(message.value)

    @on(Input.Submitted, "#pick-words")
    def _submitted(self) -> None:
        item = self._list.selected
        self.dismiss(item.key if item is not None else None)

    @on(RowList.Chosen, "#pick-list")
    def _chosen(self, message: RowList.Chosen) -> None:
        self.dismiss(message.item.key)

    def action_move(self, by: int) -> None:
        """Select another one."""
        self._list.action_cursor(by)

    def action_close(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


class Options(OptionList):
    """Textual's list, with its key named."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.OPTIONS]
