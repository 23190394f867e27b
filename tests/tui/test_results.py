"""After an act its outcome shows on top, and then what stands, however slow the machine and hasty the person."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Outcome, OutcomeState
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from acp_tui.app import AcpApp
from acp_tui.opening import Opening
from acp_tui.screens import card
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from acp_tui.widgets import outcome_line
from tests.protocols.cycle.test_cards import asking
from tests.protocols.folder.support import make_v1
from tests.tui.screen import seen
from tests.tui.stage import (
    StageFleet,
    dashboard,
    hides,
    is_open,
    needy,
    opens,
    screen_text,
    shows,
    snapshot,
    until,
)
from tests.tui.test_needs import REVIEW, STORE

DECIDED = Outcome(OutcomeState.DONE, "Decided [bold]so.")
SIZES = [(80, 24), (40, 10), (120, 36)]


@pytest.fixture
def passes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_line, "SECONDS", 0.01)


@pytest.fixture
def does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_line, "SECONDS", 3_600.0)


def over_one(tmp_path: Path) -> AcpApp:
    """Over one collaboration, in which a decision is asked for."""
    root = asking(tmp_path / "export")
    attention = Attention(tmp_path / "state" / "attention.json")
    return AcpApp([str(root)], settings=Settings(bell=False), attention=attention)


async def card_of_the_first_need(pilot: Any) -> None:
    """Open it, and wait until it takes a verdict."""
    await shows(pilot, "f: Decide")
    await pilot.press("f")
    await until(pilot, lambda: is_open(pilot.app, "CardScreen") and "1  " in seen(pilot))
    await until(pilot, lambda: pilot.app.screen._drawn_at < time.monotonic())


def held(until_set: threading.Event, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which first waits; as on a slow machine."""

    def waiting(*arguments: Any) -> Any:
        until_set.wait(60)
        return function(*arguments)

    return waiting


def lines(app: Any) -> list[str]:
    """The lines of the outcome that shows; none where none does."""
    return [str(each.render()) for each in app.screen.query(outcome_line.OutcomeLine)]


@pytest.mark.usefixtures("does_not_pass")
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_the_outcome_stands_where_what_is_needed_stood_and_moves_nothing(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app: Any = dashboard(StageFleet(needy("a", needs=(REVIEW, STORE))), tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.screen.in_hand() is not None)
        await pilot.press("enter")
        await shows(pilot, "reader has not reviewed")
        before = screen_text(app).splitlines()
        (row,) = (n for n, each in enumerate(before) if "! reader has not reviewed" in each)
        app.outcomes.tell(DECIDED)
        await shows(pilot, "✓ Decided [bold]so.")
        after = screen_text(app).splitlines()
        assert after[row].strip() == "✓ Decided [bold]so."
        assert [n for n, each in enumerate(before[:-1]) if after[n] != each] == [row]
        app.outcomes.end()
        await until(pilot, lambda: screen_text(app).splitlines()[:-1] == before[:-1])


@pytest.mark.usefixtures("does_not_pass")
@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_on_fleet_inbox_and_participant_it_stands_in_the_first_row(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app: Any = dashboard(StageFleet(needy("a"), snapshot("b")), tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.screen.in_hand() is not None)
        app.outcomes.tell(DECIDED)
        await until(pilot, lambda: screen_text(app).strip().startswith("✓ Decided"))
        await pilot.press("exclamation_mark")  # it goes along
        await opens(pilot, "InboxScreen")
        await until(pilot, lambda: screen_text(app).strip().startswith("✓ Decided"))
        app.open_participant("/work/a", "reader")
        await opens(pilot, "ParticipantScreen")
        await until(pilot, lambda: screen_text(app).strip().startswith("✓ Decided"))
        assert not [each for each in app.screen_stack[:-1] if each.query(outcome_line.OutcomeLine)]


@pytest.mark.usefixtures("passes_at_once")
async def test_what_went_well_passes_and_the_next_need_does_not_wait_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app: Any = dashboard(StageFleet(needy("a", needs=(REVIEW, STORE))), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("enter")
        await shows(pilot, "1 of 2")
        app.outcomes.tell(DECIDED)
        await until(pilot, lambda: app.outcomes.shown is None)
        await shows(pilot, "1 of 2")
        assert not lines(app)
        monkeypatch.setattr(outcome_line, "SECONDS", 3_600.0)
        app.outcomes.tell(DECIDED)
        await shows(pilot, "✓ Decided")
        await pilot.press("J")
        await shows(pilot, "2 of 2")
        assert "Decided" not in seen(pilot)


@pytest.mark.usefixtures("passes_at_once")
@pytest.mark.parametrize(
    ("outcome", "kept"),
    [
        (
            Outcome(OutcomeState.REFUSED, "Could not save it: no space."),
            "Could not save it: no space.",
        ),
        (Outcome(OutcomeState.UNKNOWN, "The peer is gone."), "The peer is gone."),
        (Outcome(OutcomeState.DONE, "Saved /work/a/report.html."), "/work/a/report.html"),
        (Outcome(OutcomeState.DONE, "Shared: https://host:81/x?y=1."), "https://host:81/x?y=1"),
        (Outcome(OutcomeState.DONE, "Done in part.", failed=("no hook",)), "Done in part."),
    ],
    ids=lambda each: each.state.value if isinstance(each, Outcome) else "",
)
async def test_what_there_is_to_keep_stays_until_a_key_and_one_key_copies_it(
    tmp_path: Path, outcome: Outcome, kept: str
) -> None:
    app: Any = dashboard(StageFleet(needy("a", needs=(REVIEW, STORE))), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("enter")
        await shows(pilot, "1 of 2")
        app.outcomes.tell(outcome)
        await shows(pilot, f"{outcome.sentence} · y: copy")
        app.outcomes.end_passing()
        assert app.outcomes.shown is not None
        await pilot.press("y")
        await until(pilot, lambda: app.clipboard == kept)
        await until(pilot, lambda: not lines(app))
        app.outcomes.tell(outcome)
        await shows(pilot, "· y: copy")
        await pilot.press("escape")
        await until(pilot, lambda: not lines(app))
        assert is_open(app, "CollaborationScreen")
        app.outcomes.tell(outcome)
        await shows(pilot, "· y: copy")
        await pilot.press("J")  # any other key does what it does, too
        await until(pilot, lambda: "2 of 2" in seen(pilot) and not lines(app))


@pytest.mark.usefixtures("passes_at_once")
async def test_an_outcome_waits_for_the_dialog_that_was_opened_meanwhile(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(needy("a")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen.is_modal)
        app.outcomes.tell(Outcome(OutcomeState.DONE, "Saved /work/a/report.html."))
        await pilot.press("escape")
        await shows(pilot, "✓ Saved /work/a/report.html. · y: copy")
        app.outcomes.end()
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen.is_modal)
        app.outcomes.tell(DECIDED)
        await pilot.pause(0.1)
        assert app.outcomes.shown is not None, "it passes only where it shows"
        await pilot.press("escape")
        await until(pilot, lambda: app.outcomes.shown is None)


@pytest.mark.slow
@pytest.mark.usefixtures("does_not_pass")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_after_a_decision_its_outcome_shows_and_then_what_stands(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    app: Any = over_one(tmp_path)
    async with app.run_test(size=size) as pilot:
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await opens(pilot, "CollaborationScreen")
        await until(pilot, lambda: lines(app))
        assert lines(app)[0].startswith("… Written.")
        app.outcomes.end()
        await shows(pilot, "acp runs no agent here · L: Start the orchestrator")
        await hides(pilot, "f: Decide")


@pytest.mark.slow
@pytest.mark.usefixtures("does_not_pass")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=str)
async def test_a_folder_that_was_continued_is_selected_in_the_fleet(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    make_v1(tmp_path / "work" / "cache", blocked="No access to the sandbox")
    attention = Attention(tmp_path / "state" / "attention.json")
    settings = Settings(bell=False)
    app: Any = AcpApp([str(tmp_path / "work")], settings=settings, attention=attention)
    async with app.run_test(size=size) as pilot:
        await shows(pilot, "f: Continue in a new folder")
        await pilot.press("f")
        await until(pilot, lambda: is_open(app, "CardScreen") and "1  " in seen(pilot))
        await pilot.press("e")
        await until(pilot, lambda: is_open(app, "ActionScreen") and app.focused)
        await pilot.press(*"Yes")
        form = app.screen
        await until(pilot, lambda: not form.query_one("#do").disabled)
        await pilot.press("ctrl+s")
        await opens(pilot, "FleetScreen")
        await until(pilot, lambda: lines(app))
        new = str(tmp_path / "work" / "cache-2")
        await until(pilot, lambda: app.screen.in_hand() and app.screen.in_hand().key == new)


@pytest.mark.slow
async def test_a_collaboration_that_opens_late_does_not_come_between_a_card_and_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow machine the fleet is there first, and a hasty person decides there."""
    looked, decided = threading.Event(), threading.Event()

    root = tmp_path / "export"

    def late(opening: Opening, _: object) -> None:
        looked.wait(60)
        open_found(opening, identify(root, bundled()))
        opened.set()

    open_found, opened = Opening._open, threading.Event()
    monkeypatch.setattr(outcome_line, "SECONDS", 3_600.0)
    monkeypatch.setattr(Opening, "_look", lambda _: None)  # it takes too long
    monkeypatch.setattr(Opening, "_open", late)
    monkeypatch.setattr(card, "performed", held(decided, card.performed))
    app: Any = over_one(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await shows(pilot, "Working")
        looked.set()
        await until(pilot, opened.is_set)
        assert is_open(app, "CardScreen")
        decided.set()
        await opens(pilot, "FleetScreen")
        await until(pilot, lambda: lines(app))
        assert [type(each) for each in app.screen_stack] == [FleetScreen]


@pytest.mark.usefixtures("does_not_pass")
async def test_what_is_opened_over_a_card_while_acp_works_does_not_hide_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = threading.Event()
    monkeypatch.setattr(card, "performed", held(decided, card.performed))
    app: Any = over_one(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await opens(pilot, "CollaborationScreen")
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await shows(pilot, "Working")
        while not is_open(app, "ReadingScreen"):  # to the first row that is a document's
            await pilot.press("down", "enter")
        decided.set()
        await opens(pilot, "CollaborationScreen")
        await until(pilot, lambda: lines(app))
        kinds = [type(each) for each in app.screen_stack]
        assert kinds == [FleetScreen, CollaborationScreen]
