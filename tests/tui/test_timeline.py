"""The coordinator reads what happened: follows it, searches it, filters it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from acp_core.model import Event
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.timeline import Source, Timeline
from acp_tui.widgets.timeline_model import LastSeen, parse
from tests.tui.stage import WidgetApp, until
from tests.tui.support import NOW, START, ManyEvents, make_event, make_events, make_snapshot


class Stage(WidgetApp):
    """A timeline alone."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[Event] = []

    def compose(self) -> ComposeResult:
        yield Timeline(id="timeline")

    def on_timeline_source_wanted(self, message: Timeline.SourceWanted) -> None:
        self.wanted.append(message.event)


def timeline(app: App[None]) -> Timeline:
    return app.query_one(Timeline)


def visible_rows(app: App[None]) -> list[str]:
    """The rows of the timeline that are on the screen."""
    view = app.query_one("TimelineView")
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def status(app: App[None]) -> str:
    return str(app.query_one("#timeline-status").render())


def show(pane: Timeline, log: Sequence[Event], now: datetime = NOW) -> None:
    """A Snapshot with these events arrives, or the time goes on."""
    pane.data = PaneData(make_snapshot(events=log), (), now, utc=True)


async def start(pilot: Pilot[None], log: Sequence[Event]) -> Timeline:
    pane = timeline(pilot.app)
    show(pane, log)
    pane.view.focus()
    await pilot.pause()
    return pane


# --- stories -------------------------------------------------------------------------------


async def test_a_new_event_appears_at_the_end_and_is_followed() -> None:
    async with Stage().run_test(size=(110, 20)) as pilot:
        pane = await start(pilot, make_events())
        assert " ".join(visible_rows(pilot.app)[2].split()) == (
            "❯ 12:03Z 3 ◆ reviewer review_submitted ↳2 Wants a limit on the size of a session"
        )
        show(pane, (*make_events(), make_event(4, summary="Fine")))
        await pilot.pause()
        assert "12:04Z  4 ◆ reader" in visible_rows(pilot.app)[3]
        assert pane.view.selected is not None and pane.view.selected.id == "4"
        assert pane.title == "Timeline · 4"


async def test_the_selected_event_says_what_it_replies_to_and_where() -> None:
    async with Stage().run_test(size=(50, 20)) as pilot:
        await start(pilot, make_events())
        rows = visible_rows(pilot.app)
        assert rows[2].startswith("❯ 12:03Z")
        assert [rows[3].strip(), rows[4].strip()] == ["↳ replies to 2 server", "proposal_submitted"]
        assert [rows[5].strip(), rows[6].strip()] == ["Wants a limit on the size of a", "session"]
        assert rows[7].strip() == "→ review.md:5"
        await pilot.press("k")
        assert visible_rows(pilot.app)[2].strip() == "↳ replies to 1 server initialized"


async def test_scrolling_up_pauses_following_and_says_what_is_new() -> None:
    async with Stage().run_test(size=(80, 16)) as pilot:
        pane = await start(pilot, ManyEvents(100))
        await pilot.press("pageup")
        assert not pane.view.follow
        top = pane.view.scroll_offset.y
        show(pane, ManyEvents(112))
        await pilot.pause()
        assert pane.view.scroll_offset.y == top
        assert "12 new" in status(pilot.app)
        assert pane.title == "Timeline · 112 · 12 new"
        await pilot.press("G")
        assert pane.view.follow
        assert "Step 112" in "\n".join(visible_rows(pilot.app))
        assert status(pilot.app) == ""
        show(pane, ManyEvents(113))
        await pilot.pause()
        assert "Step 113" in "\n".join(visible_rows(pilot.app))


async def test_the_wheel_pauses_and_resumes_too() -> None:
    async with Stage().run_test(size=(80, 16)) as pilot:
        pane = await start(pilot, ManyEvents(100))
        await pilot._post_mouse_events([events.MouseScrollUp], pane.view)
        await until(pilot, lambda: not pane.view.follow)
        await pilot.pause(0.4)
        pane.view.scroll_end(animate=False)
        await until(pilot, lambda: pane.view.follow)


async def test_a_hundred_thousand_events_are_looked_at_only_where_they_show() -> None:
    async with Stage().run_test(size=(100, 30)) as pilot:
        log = ManyEvents(100_000)
        pane = await start(pilot, log)
        assert log.built < 300
        assert "Step 100000" in "\n".join(visible_rows(pilot.app))
        await pilot.press("home")
        assert "Step 1 " in visible_rows(pilot.app)[0] + " "
        assert log.built < 900
        grown = ManyEvents(100_001)
        show(pane, grown)
        await pilot.pause()
        assert grown.built < 300
        assert pane.view.unseen == 1


async def test_unread_events_are_marked_under_a_rule() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, make_events())
        pane.last_seen = LastSeen(1, START)
        await pilot.pause()
        rows = visible_rows(pilot.app)
        assert rows[1].startswith("─ 2 new events since your last visit, 50m ago ──")
        assert rows[2].startswith("• ") and rows[3].startswith("❯ ")
        await pilot.press("g", "u")
        assert pane.view.selected is not None and pane.view.selected.id == "2"
        pane.last_seen = LastSeen(3, START)
        await pilot.pause()
        assert not any(row.startswith("─") for row in visible_rows(pilot.app))


async def test_an_illegal_event_is_told_apart_without_colour() -> None:
    problem = "review_submitted is not allowed from phase drafting"
    illegal = make_event(4, actor="reader", problem=problem)
    for wide, expected in (
        (120, f"✗ reader review_submitted illegal: {problem}"),
        (50, "✗ reader review_submitted illegal"),
    ):
        async with Stage().run_test(size=(wide, 20)) as pilot:
            await start(pilot, (*make_events(), illegal))
            assert expected in " ".join(visible_rows(pilot.app)[3].split())
            assert f"✗ illegal: {problem}" in " ".join(
                " ".join(visible_rows(pilot.app)[4:7]).split()
            )


async def test_search_goes_to_the_next_match_and_around() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, ManyEvents(300))
        await pilot.press("slash", *"STEP 7", "enter")
        await pilot.pause()
        assert pane.view.selected is not None and pane.view.selected.id == "7"
        assert "/STEP 7 1/11" in status(pilot.app)
        await pilot.press("n")
        assert pane.view.selected.id == "70"
        assert "2/11" in status(pilot.app)
        await pilot.press("N", "N")
        assert pane.view.selected.id == "79"
        show(pane, ManyEvents(701))
        assert "11/13" in status(pilot.app)
        await pilot.press("escape")
        assert "STEP 7" not in status(pilot.app)
        await pilot.press("slash", *"nowhere", "enter")
        await pilot.pause()
        assert "not found" in status(pilot.app)


async def test_search_in_a_long_log_does_not_hold_up_the_screen() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, ManyEvents(20_000))
        pane.search("Step 12345 of")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert pane.view.selected is not None and pane.view.selected.id == "12345"
        assert "1/1" in status(pilot.app)
        highlighted = pane.view.row(pane.view.model.row(12344))
        assert ("Step 12345 of", "muted match") in highlighted


async def test_filter_by_who_and_what() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, make_events())
        await pilot.press("F", *"from:server event:proposal*", "enter")
        await pilot.pause()
        assert len(pane.view.model) == 1
        assert "proposal_submitted" in visible_rows(pilot.app)[0]
        assert "filter from:server event:proposal* 1 event" in status(pilot.app)
        assert pane.title == "Timeline · 1 of 3"
        # what comes is filtered too
        show(pane, (*make_events(), make_event(4, "proposal_submitted", "server")))
        await pilot.pause()
        assert len(pane.view.model) == 2
        # what is pointed to is shown although the filter hides it
        assert pane.go_to("3")
        assert not pane.view.model.filter and pane.view.selected.id == "3"  # type: ignore[union-attr]


@pytest.mark.slow
async def test_filter_of_a_long_log_takes_in_what_comes_meanwhile() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, ManyEvents(9_000))
        pane.filter(parse("from:reader"))
        show(pane, ManyEvents(9_009))
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert len(pane.view.model) == 3_003
        await pilot.press("escape")
        assert len(pane.view.model) == 9_009


async def test_details_follow_the_selection_and_close() -> None:
    app = Stage()
    async with app.run_test(size=(80, 30)) as pilot:
        pane = await start(pilot, make_events())
        await pilot.press("enter")
        pane.details.source = Source("3", '{"seq":3,"from":"reviewer"}')
        pane.details.source = Source("2", '{"seq":"of another event"}')

        def shown() -> str:
            rows = range(pane.details.size.height)
            return "\n".join(pane.details.render_line(y).text for y in rows)

        await until(pilot, lambda: '"from": "reviewer"' in shown())
        text = shown()
        assert "2, server proposal_submitted: Proposal: keep sessions" in text
        assert "2026-05-03 12:03:00 UTC, 47m ago" in text
        assert "another" not in text
        await pilot.press("k")
        await until(pilot, lambda: [event.id for event in app.wanted] == ["3", "2"])
        await pilot.press("escape")
        assert not pane.details.display


async def test_click_selects_and_a_second_click_opens() -> None:
    app = Stage()
    async with app.run_test(size=(80, 30)) as pilot:
        pane = await start(pilot, make_events())
        await pilot.click("TimelineView", offset=(10, 0))
        assert pane.view.selected is not None and pane.view.selected.id == "1"
        assert not app.wanted
        await pilot.click("TimelineView", offset=(10, 0))
        await pilot.pause()
        assert [event.id for event in app.wanted] == ["1"]


async def test_times_can_be_shown_as_ages_that_grow() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        pane = await start(pilot, make_events())
        await pilot.press("t")
        assert visible_rows(pilot.app)[0].split()[:2] == ["49m", "1"]
        show(pane, pane.view.model.events, NOW + timedelta(minutes=1))
        await pilot.pause()
        assert visible_rows(pilot.app)[0].split()[:2] == ["50m", "1"]


async def test_a_log_over_several_days_shows_the_day() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        late = make_event(4, at=START + timedelta(days=1))
        await start(pilot, (*make_events(), late))
        assert "3 May 12:01Z" in visible_rows(pilot.app)[0]
        assert "4 May 12:00Z" in visible_rows(pilot.app)[3]


async def test_a_rewritten_log_is_shown_anew() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        pane = await start(pilot, ManyEvents(50))
        await pilot.press("g")
        show(pane, make_events())
        await pilot.pause()
        assert "initialized" in visible_rows(pilot.app)[0]
        assert pane.title == "Timeline · 3"


async def test_marked_text_can_be_copied() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        pane = await start(pilot, make_events())
        pane.view.text_select_all()
        await pilot.pause()
        selected = pilot.app.screen.get_selected_text()
        assert selected is not None
        assert "12:01Z  1 ○ server" in selected and "↳ replies to 2" in selected


async def test_an_empty_log_says_what_will_happen() -> None:
    async with Stage().run_test(size=(80, 20)) as pilot:
        pane = await start(pilot, ())
        assert pilot.app.query_one("#timeline-empty").display
        await pilot.press("G", "k", "enter", "u", "i", "y")
        show(pane, make_events())
        await pilot.pause()
        assert not pilot.app.query_one("#timeline-empty").display


async def test_a_filter_is_completed_while_it_is_typed() -> None:
    async with Stage().run_test(size=(100, 20)) as pilot:
        pane = await start(pilot, make_events())
        await pilot.press("F", *"from:revi")
        await pilot.pause()
        await pilot.press("right", "space", *"event:rev")
        await pilot.pause()
        await pilot.press("right", "enter")
        await pilot.pause()
        assert str(pane.view.model.filter) == "from:reviewer event:review_submitted"
        assert len(pane.view.model) == 1
