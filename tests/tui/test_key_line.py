"""The row of keys at the foot: what fits, what a click does, what a pointer is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.widgets import Input

from acp_core.model.matter import decision
from acp_tui.widgets.key_line import KeyLine
from tests.tui.screen import change, make_app, open_screen, screen_lines, settle
from tests.tui.stage import WidgetApp, is_open, until
from tests.tui.support import HOSTILE, make_snapshot

KEYS = "c Compare  n Now  esc Back  ? Help"


class Keys(WidgetApp):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "do('back')", "Back", key_display="esc"),
        Binding("c,x", "do('compare')", "Compare", tooltip="Two moments beside each other"),
        Binding("n", "do('now')", "Now"),
        Binding("o", "do('off')", "Off"),
        Binding("h", "do('hidden')", "Hidden", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def compose(self) -> ComposeResult:
        yield Input()
        yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return None if parameters == ("off",) else True

    def action_do(self, what: str) -> None:
        self.done.append(what)

    def action_help(self) -> None:
        self.done.append("help")


def row(app: App[Any]) -> str:
    return screen_lines(app)[-1]


async def test_what_has_no_room_gives_way_and_the_ways_back_and_to_help_last() -> None:
    app = Keys()
    async with app.run_test(size=(90, 5)) as pilot:
        app.set_focus(None)
        for columns, shown in (
            (90, f" {KEYS}{' ' * 44}^p palette"),
            (48, f" {KEYS}"),  # the palette gives way first: help says its key
            (34, f" {KEYS.replace('  ', ' ')}"),
            (31, " c Compare esc Back ? Help …"),
            (20, " esc Back ? Help …"),
            (12, " ? Help …"),
        ):
            await pilot.resize_terminal(columns, 5)
            await settle(pilot)
            assert row(app) == shown


@pytest.mark.slow
async def test_a_click_is_the_key_and_the_pointer_is_told_more() -> None:
    app = Keys()
    async with app.run_test(size=(90, 5), tooltips=True) as pilot:
        app.set_focus(None)
        await pilot.pause()
        line = app.query_one(KeyLine)
        await pilot.hover(KeyLine, offset=(4, 0))
        assert str(line.tooltip) == "Two moments beside each other"
        words = row(app)
        assert "Off" not in words, "it does nothing now"
        for word in ("Back", "Compare", "Now", "?", "     ^p"):
            await pilot.click(KeyLine, offset=(words.index(word), 0))
            await pilot.pause()
        assert app.done == ["back", "compare", "now", "help"]
        await pilot.click(KeyLine, offset=(words.index("palette"), 0))
        await settle(pilot)
        assert isinstance(app.screen, CommandPalette)
        await pilot.press("escape")
        await pilot.hover(Input)
        assert line.tooltip is None


async def test_it_follows_the_focus(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        await until(pilot, lambda: " b Stop" not in row(app))  # whether it can be stopped is known
        before = row(app)
        assert "? Help" in before
        await pilot.press("d")
        await settle(pilot)
        assert is_open(app, "PickScreen")
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is screen and row(app) == before


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 120])
async def test_a_fix_stands_first_where_one_is_needed_and_only_there(
    columns: int, tmp_path: Path
) -> None:
    need = decision("stuck:1", "STUCK", "reader has not reviewed", "reader", act="relaunch")
    app = make_app(make_snapshot(needs=(need,)), folder=tmp_path)
    async with app.run_test(size=(columns, 24)) as pilot:
        await open_screen(pilot)
        await until(pilot, lambda: " b Stop" not in row(app))
        assert row(app).startswith(" f Fix ")
        for pane in "1234":
            await pilot.press(pane)
            await settle(pilot)
            assert row(app).startswith(" f Fix ")
            assert "esc Back" in row(app) and "? Help" in row(app) and "x Actions" in row(app)
        change(app, make_snapshot(needs=()))
        await until(pilot, lambda: "f Fix" not in row(app))
        change(app, make_snapshot(needs=(need,)))
        await until(pilot, lambda: row(app).startswith(" f Fix "))


async def test_the_keys_of_a_replay_stand_first_in_it(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_screen(pilot)
        await pilot.press("R")
        await settle(pilot)
        shown = [
            word for word in row(app).split() if word in ["←", "→", "space", "enter", "esc", "?"]
        ]
        assert shown[:3] == ["←", "→", "space"] and shown[-2:] == ["esc", "?"]


async def test_hostile_words_are_only_words() -> None:
    class Hostile(Keys):
        BINDINGS: ClassVar[list[BindingType]] = [
            Binding(f"f{n}", "do('no')" + " " * n, text, tooltip=text)
            for n, text in enumerate(HOSTILE[:12], 1)
        ]

    app = Hostile()
    async with app.run_test(size=(250, 5)) as pilot:
        await pilot.pause()
        shown = row(app)
        assert "[@click=app.quit]click[/]" in shown and "[/x] text" in shown
        assert shown.isprintable()
        await pilot.hover(KeyLine, offset=(8, 0))
        await pilot.pause()
        assert app.is_running and app.done == []


async def test_keys_that_write_into_a_field_are_not_offered_beside_it(tmp_path: Path) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        assert "/ Filter" in row(app) and "? Help" in row(app)
        await pilot.press("slash")
        await until(pilot, lambda: "enter Search the documents" in row(app))
        assert "/ Filter" not in row(app) and "? Help" not in row(app)
        assert "esc Clear" in row(app) and "f1 Help" in row(app)
