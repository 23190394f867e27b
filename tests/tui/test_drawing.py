"""What changed is drawn, and no more than that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel
from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from acp_core.model.action import Action, Intent, Outcome, OutcomeState, Preview
from acp_core.model.matter import decision, remark
from acp_tui.screens.panes import PaneLoader
from acp_tui.widgets.row_list import Item, RowList
from acp_tui.widgets.timeline_view import TimelineView
from tests.tui.stage import (
    StageFleet,
    WidgetApp,
    dashboard,
    hides,
    screen_text,
    shows,
    snapshot,
    until,
)
from tests.tui.support import make_documents, make_event


class Nothing(BaseModel):
    """No inputs."""


BLOCK = Action(
    "block", "Block", "Blocks.", Nothing,
    lambda inputs: Preview("Blocks."), lambda inputs: Outcome(OutcomeState.DONE, "Blocked."),
    intent=Intent.STOP_EVERYTHING,
)  # fmt: skip


async def test_another_title_draws_one_line_of_a_pane(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("enter")
        await shows(pilot, "Timeline")
        await pilot.pause()
        pane = app.screen.query_one("#pane-next")
        pane.heading = "Another title"
        assert pane._dirty_regions == {Region(0, 0, pane.outer_size.width, 1)}
        await shows(pilot, "Another title")


async def test_no_row_stays_blank_where_what_it_said_is_over(tmp_path: Path) -> None:
    calm = snapshot("a")
    told = replace(calm, notices=(remark("hand", "protocol.json was written by hand"),))
    fleet = StageFleet(calm)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("enter")
        await shows(pilot, "Timeline")
        headline = app.screen.query_one("Headline")
        rows = headline.size.height
        fleet.show(told)
        await until(pilot, lambda: headline.size.height == rows + 1)
        fleet.show(calm)
        await hides(pilot, "by hand")
        await until(pilot, lambda: headline.size.height == rows)


@pytest.mark.slow
async def test_keys_are_looked_at_again_only_where_other_ones_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = StageFleet(snapshot("a"))
    fleet.offered = (replace(BLOCK, label="Block it"),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.pause(0.6)
        looks: list[None] = []
        monkeypatch.setattr(app.screen, "refresh_bindings", lambda: looks.append(None))
        fleet.show(snapshot("a", phase="reviewing"))
        await pilot.pause(0.6)
        assert not looks
        fleet.offered = (replace(BLOCK, name="other"),)
        fleet.show(snapshot("a", phase="revising"))
        await until(pilot, lambda: looks)


@pytest.mark.parametrize("count", [3, 500])
async def test_the_first_picture_of_a_collaboration_has_its_newest_event(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is drawn once, and what is slow to get is got after it."""
    said = "The newest, in more than 20 cells"
    newest = make_event(count, summary=said)
    events = (*(make_event(number) for number in range(1, count)), newest)
    seen: list[str] = []  # lines of the timeline, pictures, and what is got
    app: Any = dashboard(
        StageFleet(snapshot("a", events=events, documents=make_documents())), tmp_path
    )
    render = TimelineView.render_lines

    def drawn(view: TimelineView, crop: Region) -> list[Strip]:
        strips = render(view, crop)
        seen.extend(strip.text for strip in strips)
        return strips

    async with app.run_test(size=(160, 36)) as pilot:
        await shows(pilot, "1 live")
        monkeypatch.setattr(TimelineView, "render_lines", drawn)
        monkeypatch.setattr(app, "post_display_hook", lambda: seen.append("picture"))
        monkeypatch.setattr(PaneLoader, "load_text", lambda loader, document: seen.append("text"))
        monkeypatch.setattr(PaneLoader, "load_loops", lambda loader: seen.append("loops"))
        await pilot.press("enter")
        await until(pilot, lambda: {"text", "loops"} <= set(seen))
        first = next(n for n, each in enumerate(seen) if "reader" in each)
        end = seen.index("picture", first)
        assert any(said in line for line in seen[first:end])
        assert end < min(seen.index("text"), seen.index("loops"))


@pytest.mark.slow
async def test_a_screen_s_stylesheet_is_added_to_those_that_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = dashboard(StageFleet(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        monkeypatch.setattr(app.stylesheet, "reparse", lambda: pytest.fail("parsed anew"))
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, Screen) and app.screen.is_modal)
        await shows(pilot, "What you can do here now")


async def test_only_lines_that_show_are_asked_what_their_actions_are_called(tmp_path: Path) -> None:
    """Asking reads a whole collaboration, and there may be a thousand."""
    need = decision("gate", "GATE", "the next step is due", act="step")
    fleet = StageFleet(*(snapshot(f"c{n:03}", needs=(need,)) for n in range(200)))
    asked: set[str] = set()
    call = fleet.call

    async def asking(key: str, function: Any) -> Any:
        asked.add(key)
        return await call(key, function)

    fleet.call = asking  # type: ignore[method-assign]
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "200 need you" in screen_text(app) and len(asked) > 5)
        await pilot.pause(0.5)
        assert len(asked) < 24
        await pilot.press("end")
        await until(pilot, lambda: any(key.endswith("c199") for key in asked))


@pytest.mark.slow
async def test_rows_are_drawn_while_the_scrollbar_beside_them_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar is laid out after that: a line that left its column out was drawn blank till then."""
    events = tuple(make_event(number) for number in range(1, 40))
    fleet = StageFleet(snapshot("a", events=events[:3]))
    app: Any = dashboard(fleet, tmp_path)
    render = TimelineView.render_lines
    asked: list[tuple[int, int]] = []  # cells of a line that are wanted, and that there are

    def drawn(view: TimelineView, crop: Region) -> list[Strip]:
        strips = render(view, crop)
        asked.extend((crop.width, strip.cell_length) for strip in strips)
        return strips

    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "1 live")
        await pilot.press("enter")
        await shows(pilot, "Timeline")
        view = app.screen.query_one(TimelineView)
        monkeypatch.setattr(TimelineView, "render_lines", drawn)
        for count in range(4, len(events)):
            fleet.show(snapshot("a", events=events[:count]))
            await until(pilot, lambda number=count: view.model.length == number)
            await pilot.pause()
        assert view.show_vertical_scrollbar
        assert asked and all(wanted == given for wanted, given in asked)


class Listing(WidgetApp):
    """A list and nothing else."""

    def compose(self) -> ComposeResult:
        yield RowList(wrapped=True, empty="nothing")


async def test_rows_are_cut_beside_the_scrollbar_that_comes_with_them() -> None:
    class Short(WidgetApp):
        def compose(self) -> ComposeResult:
            yield RowList()

    async with Short().run_test(size=(30, 12)) as pilot:
        rows = pilot.app.query_one(RowList)
        long = "a sentence that is wider than the list"
        rows.items = tuple(Item(((long, ""),), key=str(n)) for n in range(40))
        await pilot.pause()
        assert rows.scrollable_content_region.width == 29
        assert rows.render_line(3).text == "  a sentence that is wider t…"
        rows.items = rows.items[:3]
        await pilot.pause()
        assert rows.render_line(2).text == "  a sentence that is wider th…"


async def test_a_list_that_grows_does_not_lay_out_the_whole_screen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Listing()
    async with app.run_test(size=(30, 12)) as pilot:
        rows = app.query_one(RowList)
        layouts: list[None] = []
        lay_out = app.screen._refresh_layout

        def counted(**how: Any) -> None:
            layouts.append(None)
            lay_out(**how)

        await pilot.pause(0.2)
        monkeypatch.setattr(app.screen, "_refresh_layout", counted)
        for number in range(1, 10):
            rows.items = tuple(Item(((f"thing {n}", ""),), key=str(n)) for n in range(number))
            await pilot.pause()
        assert rows.virtual_size.height == 9
        assert not layouts


@pytest.mark.slow
async def test_lines_that_did_not_change_are_left_and_the_others_are_right() -> None:
    chance = Random(7)
    app = Listing()
    async with app.run_test(size=(30, 12)) as pilot:
        shown = app.query_one(RowList)
        items = [Item(((f"thing {n}", ""),), key=str(n)) for n in range(10)]
        shown.items = tuple(items)
        shown.focus()
        await until(pilot, lambda: shown.has_focus)
        await pilot.pause(0.1)
        shown._dirty_regions.clear()
        shown.items = (*items[:4], Item((("another", ""),), key="4"), *items[5:])
        assert shown._dirty_regions == {Region(0, 4, 30, 1)}
        for _ in range(60):
            words = [chance.choice(("a", "b", "a long one that takes two rows")) for _ in items]
            some = [Item(((word, ""),), key=word) for word in words[: chance.randint(0, 10)]]
            shown.items = tuple(some)
            if some and chance.random() < 0.3:
                shown.select(chance.randrange(len(some)))
            await pilot.pause()
            partly = screen_text(app)
            shown.refresh()
            await pilot.pause()
            assert screen_text(app) == partly
