"""Which rows of a panel to show: typed words narrow them, some of them in one column only."""

from __future__ import annotations

from typing import NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static

from acp_core.fleet.search import fold
from acp_core.model import Panel, Row
from acp_core.model.format import grouped
from acp_tui.text import safe_line
from acp_tui.widgets.timeline_typed import Typed


def narrowed(panel: Panel, typed: str) -> tuple[Row, ...]:
    """The rows in which every word stands, in whatever case; of a tree also those above them.

    ``column:word`` looks into the column of that name alone (blanks in its name left out).
    """
    words = [_word(panel, word) for word in fold(typed).split()]
    if not words:
        return panel.rows
    matching: dict[int, Row] = {}  # by place
    above: list[int] = []  # the places of the rows that the present one hangs below
    for place, row in enumerate(panel.rows):
        while above and panel.rows[above[-1]].depth >= row.depth:
            above.pop()
        if all(_holds(row, column, word) for column, word in words):
            matching |= {each: panel.rows[each] for each in (*above, place)}
        above.append(place)
    return tuple(matching[place] for place in sorted(matching))


def _word(panel: Panel, word: str) -> tuple[int | None, str]:
    name, colon, rest = word.partition(":")
    names = [fold(column).replace(" ", "") for column in panel.columns]
    return (names.index(name), rest) if colon and name in names else (None, word)


def _holds(row: Row, column: int | None, word: str) -> bool:
    cells = row.cells if column is None else row.cells[column : column + 1]
    return any(word in fold(cell) for cell in cells)


class Count(NamedTuple):
    """How many of a panel's rows hold ``words``."""

    words: str = ""
    matching: int = 0
    total: int = 0


class PanelFilter(Vertical):
    """The line below a panel in which words are typed; then it says how many rows hold them."""

    DEFAULT_CSS = """
    PanelFilter {
        height: auto;
        & Static { height: 1; padding: 0 1; color: $text-muted; display: none; }
        & Typed {
            height: 1; border: none; padding: 0 1; display: none; background: transparent;
        }
        &.-typing Typed { display: block; }
        &.-narrowed Static { display: block; }
        &.-typing Static { display: none; }
    }
    """

    class Changed(Message):
        """Other words are typed."""

        def __init__(self, words: str) -> None:
            super().__init__()
            self.words = words

    class Left(Message):
        """The line is left: what it narrowed is wanted."""

    count: var[Count] = var(Count(), init=False)
    """What is said while no words are typed; nothing where no words hold."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._typed = Typed(id="panel-typed", compact=True)
        self._status = Static(id="panel-status", markup=False)

    def compose(self) -> ComposeResult:
        yield self._status
        yield self._typed

    def begin(self, panel: Panel | None, words: str) -> None:
        """Let words be typed.

        Args:
            panel: What is narrowed; None for a list without columns.
            words: Those that hold now.
        """
        columns = panel.columns if panel is not None else ()
        names = [column.replace(" ", "").lower() for column in columns if column]
        example = f"  {safe_line(names[min(1, len(names) - 1)])}:WORD" if names else ""
        self._typed.placeholder = f"words to search for{example}"
        self._typed.value = words
        self.add_class("-typing")
        self._typed.focus()

    def watch_count(self, count: Count) -> None:
        """Say how many rows hold the words."""
        words, matching, total = count
        self.set_class(bool(words), "-narrowed")
        self._status.update(
            Content(f"/{safe_line(words)}  {grouped(matching)} of {grouped(total)} rows")
        )

    def end(self) -> None:
        """No words are typed any more."""
        self.remove_class("-typing")

    @property
    def typing(self) -> bool:
        """Whether words are being typed."""
        return self.has_class("-typing")

    @on(Input.Changed)
    def _changed(self, message: Input.Changed) -> None:
        message.stop()
        if self.typing:
            self.post_message(self.Changed(message.value.strip()))

    @on(Input.Submitted)
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.post_message(self.Changed(message.value.strip()))
        self.post_message(self.Left())

    @on(Typed.Cancelled)
    def _cancelled(self, message: Typed.Cancelled) -> None:
        message.stop()
        self.post_message(self.Changed(""))
        self.post_message(self.Left())
