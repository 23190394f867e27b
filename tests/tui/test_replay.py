"""The past on the screen: stepping, jumping, playing, comparing, on real folders."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot

from acp_core.fleet import Fleet
from acp_core.history.moments import EVENT, Moment
from acp_core.history.recorder import Recorder
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.replay import Position, Scrubber
from tests.loops.support import append, make
from tests.protocols.folder.support import make_v1
from tests.tui.screen import seen
from tests.tui.stage import WidgetApp, closes, hides, opens, shows, until

HOSTILE = "\x1b]0;owned\x07[red]bold[/red]"


def record(folder: Path) -> None:
    recorder = Recorder("test")
    Fleet([folder], recorder=recorder).read()
    recorder.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three events; two recorded versions of the proposal."""
    folder = make(tmp_path / "cache")
    proposal = folder / "proposal.md"
    proposal.write_text("# Proposal\n\nKeep it for seven days.\n")
    record(folder)
    append(folder, "server", "proposal_submitted", 1)
    record(folder)
    time.sleep(0.02)
    proposal.write_text(f"# Proposal\n\nKeep it for thirty days. {HOSTILE}\n")
    record(folder)
    append(folder, "reader", "review_submitted", 2)
    record(folder)
    return folder


@pytest.fixture(params=[(120, 36), pytest.param((80, 24), marks=pytest.mark.slow)])
def size(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    return request.param


async def open_replay(pilot: Pilot[Any], folder: Path) -> Any:
    app = pilot.app
    assert isinstance(app, AcpApp)
    await until(pilot, lambda: str(folder) in app.fleet.snapshots)
    app.open_replay(str(folder))
    screen = await opens(pilot, "ReplayScreen")
    await until(pilot, lambda: screen._then is not None)
    return screen


async def go_to_event(pilot: Pilot[Any], screen: Any, event: str) -> None:
    past = screen._past
    assert past is not None
    place = past.index(event)
    assert place is not None
    screen._go(place)
    await until(pilot, lambda: screen._place == place)


@pytest.mark.slow
async def test_stepping_shows_phase_waiting_and_documents_as_they_were(
    folder: Path, size: tuple[int, int]
) -> None:
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=size) as pilot:
        screen = await open_replay(pilot, folder)
        await shows(pilot, "reviewing")
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: screen._place == 0)
        await pilot.press("shift+right")
        await shows(pilot, "server: initialized")
        await shows(pilot, "drafting")
        await pilot.press("shift+right")
        await shows(pilot, "server: proposal_submitted")
        if size[0] == 80:
            await pilot.press("2")
        await shows(pilot, "seven days")
        await pilot.press("shift+right")
        await shows(pilot, "reader: review_submitted")
        await shows(pilot, "in this step", "review.md")
        screen.show_tab("document proposal.md")
        await shows(pilot, "thirty days")
        await until(pilot, lambda: "\x1b" not in seen(pilot) and "[red]" in seen(pilot))
        await pilot.press("shift+left")
        await shows(pilot, "seven days")
        assert "Block" not in seen(pilot), "nothing can be done in the past"
        await pilot.press("escape")
        await closes(pilot, "ReplayScreen")


@pytest.mark.slow
async def test_what_is_looked_at_in_the_past_is_not_remembered_as_seen(folder: Path) -> None:
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_replay(pilot, folder)
        await pilot.press("left_curly_bracket")
        await until(pilot, lambda: screen._place == 0)
        await pilot.press("escape")
        await closes(pilot, "ReplayScreen")
        await pilot.pause(0.5)
        assert app.attention.last_visit(str(folder)) is None


async def test_the_bar_of_moments_shows_below_words_that_are_too_long() -> None:
    class Bar(WidgetApp):
        def compose(self) -> ComposeResult:
            yield Scrubber()

    async with Bar().run_test(size=(60, 5)) as pilot:
        scrubber = pilot.app.query_one(Scrubber)
        moments = [Moment(0.0, EVENT, 1, "a long sentence " * 9) for _ in range(9)]
        scrubber.position = Position(moments, 8, moments[8].what, "▶ 2/s")
        await pilot.pause()
        bar = scrubber.render_line(0).text
        assert bar.startswith(" REPLAY a long sentence") and "…" in bar
        assert bar.endswith("▶ 2/s ")
        assert set(scrubber.render_line(1).text) == {"▪", "━", "◆"}


@pytest.mark.parametrize("columns", [80, 120, 200])
async def test_the_steps_take_the_whole_width_and_a_click_goes_to_one(columns: int) -> None:
    sought: list[int] = []

    class Bar(WidgetApp):
        def compose(self) -> ComposeResult:
            yield Scrubber()

        def on_scrubber_sought(self, message: Scrubber.Sought) -> None:
            sought.append(message.place)

    async with Bar().run_test(size=(columns, 5)) as pilot:
        scrubber = pilot.app.query_one(Scrubber)
        moments = [Moment(0.0, EVENT, 1, "an event") for _ in range(5)]
        scrubber.position = Position(moments, 2, "an event")
        await pilot.pause()
        bar, track = (scrubber.render_line(row).text for row in (0, 1))
        assert (len(bar), len(track)) == (columns, columns)
        assert track[0] == track[-1] == "▪" and track.count("▪") == 4
        await pilot.click(Scrubber, offset=(columns - 1, 1))
        await pilot.click(Scrubber, offset=(0, 1))
        await pilot.pause()
        assert sought == [4, 0]


async def test_the_document_that_changed_at_a_step_is_followed_with_what_changed(
    folder: Path, size: tuple[int, int]
) -> None:
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=size) as pilot:
        screen = await open_replay(pilot, folder)
        await shows(pilot, " REPLAY step ")
        await pilot.press("2")
        screen.show_tab("document review.md")
        past = screen._past
        assert past is not None
        place = max(n for n, each in enumerate(past.moments) if each.name == "proposal.md")
        screen._go(place)
        await until(pilot, lambda: screen._place == place)
        await shows(pilot, "thirty days")
        await shows(pilot, "+1 -1 in this step")
        row = next(line for line in seen(pilot).split("\n") if "thirty days" in line)
        assert "▌" in row
        shown = seen(pilot)
        assert "← Step back" in shown and "→ Step on" in shown and "e Edit" not in shown
        await pilot.press("full_stop")  # the review changed
        await until(pilot, lambda: screen.documents.active == "document review.md")
        screen.show_tab("gates")
        await go_to_event(pilot, screen, "2")
        await until(pilot, lambda: screen.documents.active == "gates")  # no document was open


@pytest.mark.slow
async def test_two_versions_are_compared_word_by_word(folder: Path) -> None:
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(160, 40)) as pilot:
        screen = await open_replay(pilot, folder)
        await go_to_event(pilot, screen, "2")
        await pilot.press("M")
        await shows(pilot, "marked")
        await go_to_event(pilot, screen, "3")
        screen.show_tab("document proposal.md")
        await pilot.press("C")
        await opens(pilot, "CompareScreen")
        await shows(pilot, "Keep it for seven days.")
        row = next(line for line in seen(pilot).split("\n") if "seven days" in line)
        assert "thirty days" in row, "side by side where there is room"
        await pilot.press("B")
        await until(pilot, lambda: not any(
            "seven days" in line and "thirty days" in line for line in seen(pilot).split("\n")
        ))  # fmt: skip
        await shows(pilot, "changed: Proposal")
        await shows(pilot, "# Proposal")
        await pilot.press("r")
        await hides(pilot, "# Proposal")
        await shows(pilot, "seven days", "thirty days")
        assert "\x1b" not in seen(pilot)
        await pilot.press("escape")
        await opens(pilot, "ReplayScreen")


@pytest.mark.slow
async def test_it_plays_by_itself_and_goes_on_when_more_happens(folder: Path) -> None:
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_replay(pilot, folder)
        past = screen._past
        assert past is not None
        count = len(past.moments)
        for _ in range(5):
            await pilot.press("plus")
        await pilot.press("space")
        await until(pilot, lambda: screen._place == count - 1 and screen._playing is None)
        append(folder, "reviewer", "review_submitted", 2)
        await until(pilot, lambda: screen._past is not past)
        await shows(pilot, "reviewer: review_submitted")


@pytest.mark.slow
async def test_without_a_recording_it_says_so(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    append(folder, "server", "proposal_submitted", 1)
    settings = Settings(utc=True, recording={"on": False})
    app = AcpApp([str(folder)], settings=settings)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_replay(pilot, folder)
        await shows(pilot, "nothing was recorded")
        await pilot.press("apostrophe")
        await shows(pilot, "nothing was recorded")


@pytest.mark.slow
async def test_no_problem_is_made_up_where_nothing_was_recorded(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "cache", "completed")
    app = AcpApp([str(folder)], settings=Settings(utc=True, recording={"on": False}))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_replay(pilot, folder)
        for place in reversed(range(len(screen._past.moments))):
            screen._go(place)
            await until(pilot, lambda place=place: screen._place == place)
            assert "Invalid" not in seen(pilot) and "Needs you" not in seen(pilot)


@pytest.mark.slow
async def test_what_needed_somebody_is_shown_as_recorded(folder: Path) -> None:
    append(folder, "reader", "blocked", 2)
    record(folder)
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await open_replay(pilot, folder)
        await shows(pilot, "! Blocked in reviewing by reader: Stepping in")
        assert "Continue" not in seen(pilot), "nothing can be done in the past"
