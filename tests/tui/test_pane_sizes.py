"""A larger terminal shows no less of timeline and findings, and panes are as large as what they hold."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.model import Finding, Severity, Snapshot
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.panes import sizes
from tests.golden.states import all_states
from tests.tui.screen import change, make_app, open_screen, screen_lines, settle
from tests.tui.stage import is_open, until
from tests.tui.support import make_event, make_events, make_snapshot

SMALL, LARGER = (80, 24), ((120, 36), (200, 50))
SCENES = (
    *("folder/unclassified", "folder/v2-wrong-digest", "governed/files-gate-waits"),
    *("cycle/feedback_sent", "workspaces/conflicts_open"),
    pytest.param("folder/completed", marks=pytest.mark.slow),
    pytest.param("cycle/completed", marks=pytest.mark.slow),
    pytest.param("workspaces/half_way", marks=pytest.mark.slow),
)
LONG = "wants a limit on the size of a session, and says which pages of the report depend on it"


def shown(pilot: Pilot[Any], pane: str) -> list[str]:
    """The rows of a pane as they are on the screen, without its frame."""
    region = pilot.app.screen.query_one(f"#pane-{pane}", "Pane").content_region
    lines = screen_lines(pilot.app)[region.y : region.bottom]
    return [line[region.x : region.right].strip("▁▂▃▄▅▆▇█▊ ") for line in lines]


def words(lines: list[str]) -> str:
    """The words of some rows, as if they stood in one."""
    return re.sub(r"\s+", " ", " ".join(lines))


async def panes(root: Path, state: Path, size: tuple[int, int]) -> tuple[list[str], list[str]]:
    """What timeline and findings show on a terminal of this size."""
    attention = Attention(state / "attention.json")
    app = AcpApp([str(root)], settings=Settings(bell=False, utc=True), attention=attention)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: is_open(app, "CollaborationScreen") and app.screen.data)
        await pilot.press("1")  # a completed one opens on what came out
        await settle(pilot)
        timeline = shown(pilot, "timeline")
        await pilot.press("3")
        await settle(pilot)
        return timeline, shown(pilot, "findings")


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
async def test_every_word_of_a_small_terminal_is_on_larger_ones(scene: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    root = await asyncio.to_thread(all_states()[scene].build, place)
    small = await panes(root, tmp_path, SMALL)
    assert any(small[0])
    for size in LARGER:
        for before, after in zip(small, await panes(root, tmp_path, size), strict=True):
            there = "".join(after).replace(" ", "")
            words = {word for line in before for word in line.split() if "…" not in word}
            missing = {word for word in words if word not in there}
            assert not (missing and after), (size, missing, after)


async def test_a_low_terminal_shows_summaries_beside_documents_too(tmp_path: Path) -> None:
    events = (*make_events(), make_event(4, summary=LONG), make_event(5, summary="short"))
    app = make_app(make_snapshot(events=events), folder=tmp_path)
    async with app.run_test(size=(100, 24)) as pilot:
        await open_screen(pilot)
        assert "wants a limit on the size of a session" in words(shown(pilot, "timeline"))


async def test_long_summaries_go_on_below_their_events(tmp_path: Path) -> None:
    long = f"{LONG}, and where a session goes that nobody has used for a month and who ends it"
    events = (*make_events(), make_event(4, summary=long), make_event(5, summary="short"))
    app = make_app(make_snapshot(events=events), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        view = screen.timeline.view
        lines = shown(pilot, "timeline")
        assert "and where a session goes that nobody has used for a month a…" in words(lines)
        assert sum("review_submitted" in line for line in lines) == 3
        assert any("review_submitted" in line and "short" in line for line in lines)
        await pilot.press("up", "up")
        await settle(pilot)
        assert view.selected is not None and view.selected.order == 3
        region = screen.query_one("#pane-timeline").content_region
        below = next(n for n, line in enumerate(shown(pilot, "timeline")) if "month a…" in line)
        await pilot.click(offset=(region.x + 50, region.y + below))
        await settle(pilot)
        assert view.selected.order == 4, "a click on any of its rows selects an event"
        assert words(shown(pilot, "timeline")).count(long) == 1, "the selected one says all, once"
        assert "month a…" not in words(shown(pilot, "timeline"))
        for size in LARGER[1], (160, 40):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert words(shown(pilot, "timeline")).count(long) == 1


async def test_an_empty_pane_is_one_line_and_findings_are_as_high_as_they_need(
    tmp_path: Path,
) -> None:
    clean = make_snapshot(findings=(), needs=(), next_actions=(), notices=())
    app = make_app(clean, folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        findings, following = (
            screen.query_one(f"#pane-{name}", "Pane") for name in ("findings", "next")
        )
        assert (findings.outer_size.height, following.outer_size.height) == (1, 1)
        assert "Findings · none" in "\n".join(screen_lines(app))
        for size in (80, 24), (120, 36):
            await pilot.resize_terminal(*size)
            await settle(pilot)
        assert "Findings · none" in "\n".join(screen_lines(app))
        await pilot.press("3")
        assert app.focused is screen.findings, "the key of an empty pane goes to it, too"
        finding = Finding("ACP1", Severity.ERROR, LONG, "proposal.md", 1)
        change(app, make_snapshot(findings=(finding,)))
        await settle(pilot)
        await pilot.press("1")
        await settle(pilot)
        assert 5 <= findings.outer_size.height <= 6
        assert LONG in words(shown(pilot, "findings"))
        await pilot.press("3")
        await settle(pilot)
        assert findings.outer_size.height >= 10, "with room for what it says about one"


@pytest.mark.parametrize("columns", range(100, 321, 20))
@pytest.mark.parametrize("rows", [20, 24, 36, 50, 90])
def test_every_pane_keeps_room_whatever_the_others_hold(columns: int, rows: int) -> None:
    for needed in (0, 60, 500):
        for held in (0, 1, 7, 1000):
            made = sizes(columns, rows, needed, *[lambda _, held=held: held] * 2)
            assert 40 <= made.timeline <= columns - 45
            for height in (made.findings, made.next):
                assert height == 1 if not held else 5 <= height <= rows // 2


@pytest.mark.slow
async def test_panes_do_not_move_with_every_event(tmp_path: Path) -> None:
    def holding(count: int) -> Snapshot:
        found = [
            Finding("ACP1", Severity.ERROR, f"wrong {n}", "proposal.md", n) for n in range(count)
        ]
        return make_snapshot(findings=tuple(found))

    app = make_app(holding(1), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_screen(pilot)
        pane = screen.query_one("#pane-findings")
        low = pane.outer_size.height
        heights = []
        for count in (8, 1, 8, 1):
            change(app, holding(count))
            await settle(pilot)
            heights.append(pane.outer_size.height)
        assert heights[0] > low, "it grows at once"
        assert set(heights) == {heights[0]}, "and stays while things change"
        await until(pilot, lambda: pane.outer_size.height == low, "giving the rows back")


def test_findings_get_the_rows_that_few_events_leave() -> None:
    many, few = (
        sizes(200, 50, 60, lambda _: 30, lambda _: 3, events=events) for events in (1_000, 3)
    )
    assert few.findings > many.findings and few.next == many.next


async def test_a_zoomed_timeline_shows_no_less_than_a_narrow_one(tmp_path: Path) -> None:
    long = f"{LONG}, and where a session goes that is old"
    app = make_app(make_snapshot(events=(make_event(1, summary=long),)), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        await pilot.press("1", "z")
        await settle(pilot)
        assert long in words(shown(pilot, "timeline"))
