"""What is next is offered after every act, however slow the machine and hasty the person."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from acp_tui.app import AcpApp
from acp_tui.opening import Opening
from acp_tui.screens import action, card
from acp_tui.screens.action import ResultScreen
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from tests.protocols.cycle.test_cards import asking
from tests.tui.screen import seen
from tests.tui.stage import is_open, opens, shows, until


def dashboard(tmp_path: Path) -> AcpApp:
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
    monkeypatch.setattr(Opening, "_look", lambda _: None)  # it takes too long
    monkeypatch.setattr(Opening, "_open", late)
    monkeypatch.setattr(card, "performed", held(decided, card.performed))
    app: Any = dashboard(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await shows(pilot, "Working")
        looked.set()
        await until(pilot, opened.is_set)
        assert is_open(app, "CardScreen")
        decided.set()
        await opens(pilot, "ResultScreen")
        await shows(pilot, "enter: Start the orchestrator")
        assert [type(each) for each in app.screen_stack] == [FleetScreen, ResultScreen]


async def test_what_is_opened_over_a_card_while_acp_works_does_not_hide_what_is_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = threading.Event()
    monkeypatch.setattr(card, "performed", held(decided, card.performed))
    app: Any = dashboard(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await opens(pilot, "CollaborationScreen")
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await shows(pilot, "Working")
        while not is_open(app, "ReadingScreen"):  # to the first row that is a document's
            await pilot.press("down", "enter")
        decided.set()
        await opens(pilot, "ResultScreen")
        await shows(pilot, "enter: Start the orchestrator")
        kinds = [type(each) for each in app.screen_stack]
        assert kinds == [FleetScreen, CollaborationScreen, ResultScreen]


async def test_who_goes_on_before_what_is_next_is_known_is_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = threading.Event()
    monkeypatch.setattr(action, "_next_step", held(known, action._next_step))
    app: Any = dashboard(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await opens(pilot, "CollaborationScreen")
        await card_of_the_first_need(pilot)
        await pilot.press("1")
        await opens(pilot, "CollaborationScreen")
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen.is_modal)
        known.set()
        await until(pilot, lambda: bool(app._notifications))
        (told,) = (each.message for each in app._notifications)
        assert "Next: acp runs no agent here (Start the orchestrator)." in told
