"""A screen that covers another is drawn for its own changes only, and both learn of a new size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from textual._compositor import Compositor
from textual.app import ComposeResult
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from acp_tui.terminal.painting import PaintingApp
from tests.tui.stage import until


class Below(Screen[None]):
    """A screen with a text that changes."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Static("below", id="text")

    def change(self, text: str) -> None:
        self.query_one("#text", Static).update(text)


class Above(Screen[None]):
    """A screen that covers it."""


class Through(ModalScreen[None]):
    """A screen through which one sees it."""


class Stack(PaintingApp):
    """An app with the screen below."""

    def get_default_screen(self) -> Screen[None]:
        return Below()


@contextmanager
def whole_pictures() -> Iterator[list[int]]:
    """Counts how often a whole screen is drawn."""
    drawn: list[int] = []
    before = Compositor.render_full_update

    def counted(self: Compositor, simplify: bool = False) -> object:
        drawn.append(1)
        return before(self, simplify)

    Compositor.render_full_update = counted  # type: ignore[assignment,method-assign]
    try:
        yield drawn
    finally:
        Compositor.render_full_update = before  # type: ignore[method-assign]


async def test_a_change_that_nobody_can_see_draws_nothing() -> None:
    app = Stack()
    async with app.run_test() as pilot:
        below = app.screen
        assert isinstance(below, Below)
        await app.push_screen(Above())
        await pilot.pause()
        with whole_pictures() as drawn:
            for number in range(3):
                below.change(f"unseen {number}")
                await pilot.pause(0.05)
        assert drawn == []
        app.pop_screen()
        await pilot.pause()
        assert "unseen 2" in app.export_screenshot().replace("&#160;", " ")


async def test_what_can_be_seen_behind_a_question_is_drawn() -> None:
    app = Stack()
    async with app.run_test() as pilot:
        below = app.screen
        assert isinstance(below, Below)
        await app.push_screen(Through())
        await pilot.pause()
        below.change("seen through")
        await until(pilot, lambda: "seen through" in app.export_screenshot().replace("&#160;", " "))


async def test_a_covered_screen_learns_of_a_new_size() -> None:
    app = Stack()
    async with app.run_test(size=(80, 24)) as pilot:
        below = app.screen
        assert below.has_class("-narrow")
        await app.push_screen(Above())
        await pilot.pause()
        await pilot.resize_terminal(120, 24)
        await pilot.pause()
        assert below.has_class("-wide")
        assert not below.has_class("-narrow")
