"""Keys that arrive all at once: each goes where the one before it leads, none runs as a command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input, TextArea

from acp_core.agents import budgets
from acp_core.agents.state import Phase
from acp_core.model import Turn
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.actions.offered import offered_named
from acp_tui.app import AcpApp
from acp_tui.keys import LONGEST, KeyQueue
from acp_tui.screens import action as action_screen
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.card import CardScreen
from acp_tui.screens.participant import ParticipantScreen
from acp_tui.widgets.panel_view import PanelView
from tests.agents.live.asking import asking
from tests.agents.support import wait_for
from tests.loops.support import append, command, make, start, state, stop_all
from tests.loops.test_budgets import dear
from tests.protocols.folder.support import make_v1
from tests.protocols.governed import states
from tests.tui.cards import dashboard, open_card
from tests.tui.hands import installed
from tests.tui.screen import make_app, open_screen, seen, settle
from tests.tui.stage import WidgetApp, is_open, opens, shows, until
from tests.tui.support import KEY, START, make_snapshot
from tests.tui.test_replay import open_replay

WORDS = "bxnqAxaLSRTfobjections zhlbyv"
"""Thirty letters, most of which are commands where no text is typed."""


def burst(pilot: Pilot[Any], *keys: str) -> None:
    """Press keys at once: all are there before the first one is looked at."""
    for key in keys:
        name = {" ": "space", "/": "slash"}.get(key, key)
        pilot.app.post_message(events.Key(name, key if len(key) == 1 else None))


@asynccontextmanager
async def collaboration(folder: Path) -> AsyncIterator[Pilot[Any]]:
    app = make_app(make_snapshot(), folder=folder)
    async with app.run_test(size=(120, 36)) as pilot:
        await open_screen(pilot)
        yield pilot


def typed(pilot: Pilot[Any]) -> str:
    """What stands in the field that has the focus."""
    field = pilot.app.focused
    if isinstance(field, Input):
        return field.value
    return field.text if isinstance(field, TextArea) else ""


async def test_the_filter_of_the_fleet_gets_all_that_is_typed_behind_its_key(
    tmp_path: Path,
) -> None:
    app = make_app(make_snapshot(), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        burst(pilot, "/", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert len(pilot.app.screen_stack) == 1


@pytest.mark.parametrize("key", ["/", "F", "d"])
async def test_what_is_typed_in_a_collaboration_goes_to_the_line_that_was_opened(
    tmp_path: Path, key: str
) -> None:
    async with collaboration(tmp_path) as pilot:
        screens = len(pilot.app.screen_stack)
        burst(pilot, key, *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert len(pilot.app.screen_stack) == screens + (key == "d")


async def test_the_filter_of_the_inbox_gets_all_that_is_typed_behind_its_key(
    tmp_path: Path,
) -> None:
    async with collaboration(tmp_path) as pilot:
        await pilot.press("exclamation_mark")
        await settle(pilot)
        burst(pilot, "/", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)


async def test_the_search_of_help_gets_all_that_is_typed_behind_its_key(tmp_path: Path) -> None:
    async with collaboration(tmp_path) as pilot:
        await pilot.press("question_mark")
        await settle(pilot)
        burst(pilot, "/", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)


@pytest.mark.slow
async def test_the_search_of_a_log_gets_all_that_is_typed_behind_its_key(tmp_path: Path) -> None:
    async with collaboration(tmp_path) as pilot:
        pilot.app.push_screen(ParticipantScreen(KEY, "reader"))
        await settle(pilot)
        burst(pilot, "/", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert isinstance(pilot.app.screen, ParticipantScreen)


async def test_the_filter_of_a_panel_gets_all_that_is_typed_behind_its_key(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    async with dashboard(root, tmp_path) as pilot:
        await pilot.press("2")
        await settle(pilot)
        assert isinstance(pilot.app.focused, PanelView)
        burst(pilot, "/", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert states.state(root)["status"] == "paused"


async def test_the_first_field_of_a_new_collaboration_gets_what_is_typed_behind_its_key(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    attention = Attention(tmp_path / "attention.json")
    app = AcpApp([str(tmp_path / "work")], settings=Settings(bell=False), attention=attention)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "No collaboration under")
        burst(pilot, "n", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert list((tmp_path / "work").iterdir()) == []


async def test_the_palette_gets_all_that_is_typed_behind_its_key(tmp_path: Path) -> None:
    """Textual's own screen, which takes keys in turn: this holds without acp's queue, too."""
    async with collaboration(tmp_path) as pilot:
        burst(pilot, "ctrl+p", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)


async def test_a_form_that_is_being_made_gets_what_was_typed_meanwhile(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "building")
    async with dashboard(root, tmp_path) as pilot:
        await shows(pilot, "b Stop the run")
        burst(pilot, "b", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert states.state(root)["status"] == "active"


@pytest.mark.slow
async def test_a_form_that_takes_seconds_gets_what_was_typed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(*given: Any) -> Any:
        await asyncio.sleep(2.0)  # as on a busy machine
        return await offered_named(*given)

    monkeypatch.setattr(action_screen, "offered_named", slowly)
    root = states.run_in(tmp_path / "lamp", "building")
    async with dashboard(root, tmp_path) as pilot:
        await shows(pilot, "b Stop the run")
        burst(pilot, "b", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert states.state(root)["status"] == "active"


async def test_the_reason_of_a_verdict_gets_all_that_is_typed_behind_its_digit(
    tmp_path: Path,
) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        burst(pilot, "2", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert pilot.app.screen is screen and isinstance(screen, CardScreen)
        assert states.state(root)["status"] == "paused"


@pytest.mark.parametrize("key", ["O", "p", "X"])
async def test_the_pickers_of_headings_logs_and_views_get_all_that_is_typed_behind_their_key(
    tmp_path: Path, key: str
) -> None:
    turns = tuple(Turn(name, "review", START) for name in ("reader", "reviewer"))
    app = make_app(make_snapshot(turns=turns), folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        if key != "X":
            screen = await open_screen(pilot)
            screen.show_tab("document proposal.md")
            await shows(pilot, "Current Proposal")
            await pilot.press("2")
            await settle(pilot)
        screens = len(app.screen_stack)
        burst(pilot, key, *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert is_open(app, "PickScreen") and len(app.screen_stack) == screens + 1


@pytest.mark.slow
async def test_the_pickers_of_the_past_get_all_that_is_typed_behind_their_key(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "cache")
    (folder / "proposal.md").write_text("# Proposal\n\nSeven days.\n")
    append(folder, "server", "proposal_submitted", 1)
    app = AcpApp([str(folder)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await open_replay(pilot, folder)
        burst(pilot, "ctrl+g", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert is_open(app, "PickScreen")
        await pilot.press("escape")
        screen.show_tab("document proposal.md")
        await shows(pilot, "Seven days.")
        await pilot.press("C")
        await opens(pilot, "CompareScreen")
        burst(pilot, "d", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert is_open(app, "PickScreen")


async def test_the_picker_of_figures_gets_all_that_is_typed_behind_its_key(tmp_path: Path) -> None:
    folders = [make(tmp_path / "work" / name) for name in ("cache", "index")]
    app = AcpApp([str(tmp_path / "work")], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: len(app.fleet.snapshots) == len(folders))
        app.open_times(str(folders[0]))
        await opens(pilot, "TimesScreen")
        await shows(pilot, "stats")
        burst(pilot, "c", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert is_open(app, "PickScreen")


async def test_what_is_typed_behind_the_key_that_starts_loops_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(tmp_path, monkeypatch):
        root = make(tmp_path / "cache")
        async with dashboard(root, tmp_path, needs=False) as pilot:
            await shows(pilot, "L: ")
            screens = len(pilot.app.screen_stack)
            burst(pilot, "L", *WORDS)
            await opens(pilot, "ActionScreen")
            await settle(pilot)
            opened = [type(each) for each in pilot.app.screen_stack[screens:]]
            assert opened == [CardScreen, ActionScreen]  # a card that there is not, and the form
            assert "Start loops" in seen(pilot)
            assert not pilot.app.fleet.loops(str(root))  # type: ignore[attr-defined]


@pytest.mark.slow
async def test_keys_behind_the_one_that_starts_loops_act_on_the_form_that_it_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(tmp_path, monkeypatch):
        root = make(tmp_path / "cache")
        async with dashboard(root, tmp_path, needs=False) as pilot:
            await shows(pilot, "L: ")

            def place() -> int:
                screen = pilot.app.screen
                made = isinstance(screen, ActionScreen) and screen.focused is not None
                return screen.focus_chain.index(screen.focused) if made and screen.focused else -1

            burst(pilot, "L")
            await until(pilot, lambda: place() >= 0)
            await settle(pilot)
            first = place()
            await pilot.press("escape")
            await until(pilot, lambda: place() < 0)
            burst(pilot, "L", "tab")
            await until(pilot, lambda: place() == first + 1)


async def test_keys_wait_for_a_screen_together_and_no_longer_than_the_bound_whatever_it_is() -> (
    None
):
    class Making(Screen[None]):
        is_being_made = True

    app, handed, time = WidgetApp(), list[str](), [0.0]

    async def hand_on(event: events.Key | events.Paste) -> None:
        assert isinstance(event, events.Key)
        handed.append(event.key)

    async with app.run_test() as pilot:
        screen = Making()
        await app.push_screen(screen)
        queue = KeyQueue(app, hand_on, clock=lambda: time[0])
        for key in ("a", "b", "c"):
            await queue.take(events.Key(key, key))
        await pilot.pause(0.1)
        assert handed == []
        time[0] += LONGEST
        await until(pilot, lambda: handed == ["a", "b", "c"])  # those behind wait no longer
        await queue.take(events.Key("d", "d"))
        await until(pilot, lambda: handed[3:] == ["d"])
        screen.is_being_made = False
        await queue.take(events.Key("e", "e"))
        await until(pilot, lambda: handed[4:] == ["e"])
        screen.is_being_made = True  # something else of it is made now
        await queue.take(events.Key("f", "f"))
        await queue.take(events.Key("escape", None))
        await pilot.pause(0.1)
        assert handed[5:] == []
        time[0] += LONGEST
        await until(pilot, lambda: handed[5:] == ["f", "escape"])


async def test_what_is_pasted_behind_a_key_waits_for_it(tmp_path: Path) -> None:
    async with collaboration(tmp_path) as pilot:
        burst(pilot, "/")
        pilot.app.post_message(events.Paste("objection"))
        await until(pilot, lambda: typed(pilot) == "objection")


@pytest.fixture
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Places of a person's own, and no loop left afterwards."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    yield
    stop_all()


@pytest.mark.slow
@pytest.mark.usefixtures("own_places")
async def test_the_message_to_an_agent_gets_all_that_is_typed_behind_its_key(
    tmp_path: Path,
) -> None:
    root = make(tmp_path / "cache")
    start(root, "reader", command(tmp_path))
    wait_for(lambda: state(root, "reader").phase is Phase.WAITING, "the loop to wait")
    app = AcpApp([str(root)], settings=Settings(bell=False))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: str(root) in app.fleet.snapshots)
        app.open_participant(str(root), "reader")
        await shows(pilot, "reader", "process")
        burst(pilot, "m", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert isinstance(app.screen, ActionScreen)
    assert state(root, "reader").shown.nudged is None and state(root, "reader").alive


@pytest.mark.usefixtures("own_places")
async def test_a_budget_gets_all_that_is_typed_behind_the_key_that_raises_it(
    tmp_path: Path,
) -> None:
    root = make(tmp_path / "cache")
    start(root, "server", dear(tmp_path, 9), caps=(budgets.parse("turn=5usd"),))
    wait_for(lambda: any(use.is_near for use in state(root, "server").shown.budget), "80%")
    async with dashboard(root, tmp_path) as pilot:
        burst(pilot, "f", *WORDS)
        await until(pilot, lambda: typed(pilot).endswith(WORDS))
        assert isinstance(pilot.app.screen, ActionScreen)
    (use,) = state(root, "server").shown.budget
    assert use.amount == 5


@pytest.mark.usefixtures("own_places")
async def test_the_message_beside_a_rejected_permission_gets_all_that_is_typed_behind_its_digit(
    tmp_path: Path,
) -> None:
    root = make(tmp_path / "cache")
    with asking(root, "touch made.txt") as program:
        async with dashboard(root, tmp_path) as pilot:
            burst(pilot, "f", "1", "2", *WORDS)  # no card was drawn yet: none of it is a verdict
            await shows(pilot, "1  Allow once")
            screen = pilot.app.screen
            assert isinstance(screen, CardScreen)
            await until(pilot, lambda: not screen.is_being_made)
            burst(pilot, "3", *WORDS)
            await until(pilot, lambda: typed(pilot) == WORDS)
        assert program.process.poll() is None  # it waits still
    assert not (root / "made.txt").exists()


@pytest.mark.slow
async def test_the_answer_to_a_blocker_gets_all_that_is_typed_behind_its_digit(
    tmp_path: Path,
) -> None:
    (tmp_path / "cache").mkdir()
    root = make_v1(tmp_path / "cache", "classified", blocked="Which account pays?")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        burst(pilot, "1", *WORDS)
        await until(pilot, lambda: typed(pilot) == WORDS)
        assert isinstance(pilot.app.screen, CardScreen)
    assert not (tmp_path / "cache-2").exists()
