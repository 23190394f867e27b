"""What an event costs the screen: only what changed is made, and it is right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from acp_core.model import Snapshot
from acp_tui.screens.panes import PaneSwitcher
from acp_tui.terminal.painting import Cells
from acp_tui.widgets import timeline_view
from acp_tui.widgets.lines import Lines, ScrollColumn
from tests.support import piloted
from tests.tui.stage import StageFleet, dashboard, shows, snapshot, until
from tests.tui.support import make_documents, make_event

SIZE = (120, 36)
Cell = tuple[str, str]


def with_events(count: int, **others: Any) -> Snapshot:
    """A collaboration of so many events."""
    events = tuple(make_event(number) for number in range(1, count + 1))
    return snapshot("a", events=events, documents=make_documents(), **others)


def cells(strip: Strip) -> list[Cell]:
    """Each sign with its colours."""
    found = []
    for text, style, _ in strip:
        look = str(style.without_color) + str(style.color) + str(style.bgcolor) if style else ""
        found += [(sign, look) for sign in text]
    return found


class Shown:
    """What a terminal would show: what was drawn of the screen on top, piece upon piece."""

    def __init__(self, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._app = app
        self.partial = 0
        self.lines: list[list[Cell]] = []
        monkeypatch.setattr(app, "_display", self._draw)

    def _draw(self, screen: Any, update: Any) -> None:
        if isinstance(update, Cells) and self.lines:
            self.partial += 1
            for x, y, strip in update.pieces:
                new = cells(strip)
                self.lines[y][x : x + len(new)] = new
        elif update is not None:
            self.lines = self.whole(screen)
        self._app.post_display_hook()

    def whole(self, screen: Any) -> list[list[Cell]]:
        """The same as Textual draws a whole screen."""
        chops = piloted._render_chops(screen._compositor, Region(0, 0, *SIZE), lambda y: True)
        return [cells(Strip.join(chop.values())) for chop in chops]


async def opened(app: Any, pilot: Pilot[Any]) -> None:
    """Open the only collaboration, and wait until all has come to rest."""
    await shows(pilot, "1 live")
    await pilot.press("enter")
    await shows(pilot, "Timeline")
    await pilot.pause(0.5)


@pytest.mark.slow
async def test_pieces_make_the_same_picture_as_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(40))
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        shown = Shown(app, monkeypatch)
        app.screen.refresh()
        await until(pilot, lambda: bool(shown.lines))
        for step, keys in enumerate(
            ((), ("up", "up"), (), ("G",), ("tab",), ("3", "1"), ("slash", *"Step", "enter"), ())
        ):
            fleet.show(with_events(41 + step, phase=f"phase {step}"))
            if step == 2:
                app.tell("Over the panes, in a corner.", timeout=60)
            await pilot.press(*keys)
            await pilot.pause(0.1)
            assert shown.lines == shown.whole(app.screen), (step, keys)
        assert shown.partial > 8


async def test_an_event_asks_only_those_widgets_that_show_something_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(500))
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        asked: Counter[str] = Counter()

        def counting(owner: type[Widget]) -> None:
            render = owner.render_lines

            def counted(widget: Widget, crop: Region) -> list[Strip]:
                asked[type(widget).__name__] += crop.height
                return render(widget, crop)

            monkeypatch.setattr(owner, "render_lines", counted)

        for owner in (Widget, Lines, ScrollColumn):
            counting(owner)
        fleet.show(with_events(501))
        await until(pilot, lambda: "501" in screen_text_of_pieces(app))
        await pilot.pause(0.1)
        timeline = app.screen.timeline.view.size.height
        assert asked["TimelineView"] == timeline
        assert set(asked) <= {"TimelineView", "Pane", "PhaseRail", "Headline", "TabStrip"}, asked
        assert asked["Pane"] <= 1  # the line of its title
        assert sum(asked.values()) <= timeline + 6


def screen_text_of_pieces(app: Any) -> str:
    """What the panes are called: looking at the whole screen would ask every widget."""
    return str(app.screen.query_one("#pane-timeline").border_title)


async def test_rows_of_events_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(500))
    app: Any = dashboard(fleet, tmp_path)
    made: list[str] = []
    rows = timeline_view.event_rows

    def counted(event: Any, *given: Any, **how: Any) -> Any:
        made.append(event.id)
        return rows(event, *given, **how)

    events = with_events(501).events
    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        fleet.show(with_events(500))
        await pilot.pause(0.2)
        before = app.screen.snapshot
        monkeypatch.setattr(timeline_view, "event_rows", counted)
        fleet.show(replace(before, events=(*before.events, events[-1])))
        await until(pilot, lambda: "501" in screen_text_of_pieces(app))
        await pilot.pause(0.1)
        assert sorted(set(made)) == ["500", "501"]  # what was selected, and what is now
        assert len(made) == 2


@pytest.mark.slow
async def test_an_event_names_the_panes_once_and_writes_no_text_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(500))
    app: Any = dashboard(fleet, tmp_path)
    named: list[None] = []
    written: list[Any] = []
    entitle = PaneSwitcher.entitle
    update = Static.update

    def naming(panes: PaneSwitcher) -> None:
        named.append(None)
        entitle(panes)

    def writing(text: Static, *given: Any, **how: Any) -> None:
        written.append(text)
        update(text, *given, **how)

    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        fleet.show(with_events(501))
        await until(pilot, lambda: "501" in screen_text_of_pieces(app))
        await pilot.pause(0.5)
        monkeypatch.setattr(PaneSwitcher, "entitle", naming)
        monkeypatch.setattr(Static, "update", writing)
        fleet.show(with_events(502))
        await until(pilot, lambda: "502" in screen_text_of_pieces(app))
        await pilot.pause(0.2)
        assert len(named) == 1
        assert written == []


async def test_the_bar_of_a_long_list_is_drawn_again_where_it_looks_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(900))
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        view = app.screen.timeline.view
        bar = view.vertical_scrollbar
        drawn: list[None] = []
        render = ScrollColumn.render

        def counted(column: ScrollColumn) -> Any:
            drawn.append(None)
            return render(column)

        monkeypatch.setattr(ScrollColumn, "render", counted)
        fleet.show(with_events(901))
        await until(pilot, lambda: "901" in screen_text_of_pieces(app))
        await pilot.pause(0.2)
        assert bar.window_virtual_size == view.virtual_size.height
        assert drawn == []
        await pilot.press("home")
        await pilot.pause(0.2)
        assert drawn


@pytest.mark.slow
async def test_loops_of_others_are_looked_at_while_participants_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(with_events(3))
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await opened(app, pilot)
        looks: list[str] = []
        monkeypatch.setattr(fleet, "loops_of_others", lambda key: looks.append(key) or ())
        fleet.show(with_events(4))
        await pilot.pause(0.6)
        assert looks == []
        app.screen.show_tab("people")
        await until(pilot, lambda: len(looks) == 1)
        fleet.show(with_events(5))
        await until(pilot, lambda: len(looks) == 2)
