"""How many keys the things take that people do most, in each protocol; typed text is not counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from acp_core.agents import registry
from acp_core.model import Status
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.agents.support import wait_for
from tests.golden.states import all_states
from tests.loops import support
from tests.protocols.cycle import test_cards as cycle
from tests.protocols.folder import test_cards as folder
from tests.protocols.governed import states
from tests.protocols.wire import test_cards as wire
from tests.protocols.workspaces import running
from tests.protocols.workspaces import test_cards as workspaces
from tests.support import finished
from tests.tui.cards import dashboard, open_card
from tests.tui.hands import Hands, installed
from tests.tui.screen import seen
from tests.tui.stage import is_open, opens, shows, until

NEEDS = {
    "folder/human-reviews": "anna must review the proposal",
    "governed/run-gate-waits": "The gate planning_signoff needs your approval",
    "governed/initiative-gate-open": "its cross-repo gate needs your approval",
    "cycle/decision_open": "Which delimiter is it?",
    "workspaces/partial": "ben returned a partial result",
    "wire/tasks-of-every-state": "Input needed: Task asks",
}
"""A state of each protocol that needs somebody, and what for."""
FIXED = {
    "folder/charter-behind": "protocol.json is out of date",
    "cycle/torn_state": "is not valid JSON",
    "workspaces/torn_manifest": "is not valid JSON",
}
"""What one key and its confirmation mend, and what the red line says before."""


def made(state: str, tmp_path: Path) -> Path:
    """The folder of a collaboration in this state."""
    place = tmp_path / "work"
    place.mkdir()
    return all_states()[state].build(place)


def app_of(*places: Path, state: Path, **settings: Any) -> AcpApp:
    """The dashboard on these places."""
    attention = Attention(state / "attention.json")
    return AcpApp(
        [*map(str, places)], settings=Settings(bell=False, **settings), attention=attention
    )


@pytest.mark.slow
@pytest.mark.parametrize("state", NEEDS)
async def test_what_needs_somebody_takes_no_key(tmp_path: Path, state: str) -> None:
    root = await asyncio.to_thread(made, state, tmp_path)
    for place in root.parent, root:
        async with app_of(place, state=tmp_path).run_test(size=(120, 36)) as pilot:
            await until(pilot, lambda: NEEDS[state] in seen(pilot))


Made = Callable[[Path], Path]


def accepting(root: Path) -> Path:
    """Decisions of a folder that the last participant is to accept."""
    ready = folder.made(root, "classified", "reader")
    folder.agreed(ready, "server", "reviewer")
    return ready


def is_accepted(root: Path) -> bool:
    return '"reader","event":"decision_accepted"' in (root / "events.jsonl").read_text()


DECISIONS: dict[str, tuple[Made, str, Callable[[Path], bool]]] = {
    "staged turn": (
        lambda root: states.run_in(root, "staged"),
        "1",
        lambda root: states.state(root)["status"] == "paused",
    ),
    "decisions of a folder": (accepting, "1", is_accepted),
    "option of a cycle": (cycle.asking, "2", lambda root: cycle.held(root)["status"] == "running"),
    "final output": (
        workspaces.drafted,
        "1",
        lambda root: running.now(root).status is Status.COMPLETED,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DECISIONS)
async def test_a_decision_takes_two_keys(tmp_path: Path, kind: str) -> None:
    make, digit, is_decided = DECISIONS[kind]
    root = await asyncio.to_thread(make, tmp_path / "lamp")
    async with dashboard(root, tmp_path) as pilot:
        hands = Hands(pilot)
        await open_card(pilot, hands.key)
        await hands.key(digit)
        await until(pilot, lambda: is_decided(root))
        assert hands.keys == 2


async def test_a_question_of_another_agent_is_answered_with_two_keys(tmp_path: Path) -> None:
    with wire.Process("A", *wire.OPTIONS) as a, wire.Process("B", *wire.OPTIONS) as b:
        words = wire.text("Which store?\n1. Postgres\n2. SQLite")
        task = await asyncio.to_thread(wire.ask, a, b, words)
        async with dashboard(wire.folder_of("A"), tmp_path) as pilot:
            hands = Hands(pilot)
            await open_card(pilot, hands.key)
            await hands.key("2")
            await until(pilot, lambda: wire.get(a, f"/tasks/{task}")["status"] == "working")
            assert hands.keys == 2
        wire.until(lambda: "SQLite" in json.dumps(wire.get(b, "/messages")), "the answer's arrival")


@pytest.mark.parametrize("state", FIXED)
async def test_a_fix_takes_two_keys(tmp_path: Path, state: str) -> None:
    root = await asyncio.to_thread(made, state, tmp_path)
    app = app_of(root, state=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "f: ")
        assert FIXED[state] in seen(pilot)
        hands = Hands(pilot)
        await hands.key("f")
        await opens(pilot, "ActionScreen")
        form: Any = app.screen
        await until(pilot, lambda: not form.query_one("#do").disabled)
        await hands.key("ctrl+s")
        await until(pilot, lambda: app.screen is not form)
        await until(pilot, lambda: FIXED[state] not in seen(pilot))
        assert hands.keys == 2


@pytest.mark.slow
async def test_the_next_need_takes_one_key_and_its_decision_two(tmp_path: Path) -> None:
    """Next need: one key. Decide: two."""
    (tmp_path / "work").mkdir()
    roots = [states.run_in(tmp_path / "work" / name, "staged") for name in ("hall", "lamp")]
    app = AcpApp(
        [str(tmp_path / "work")],
        settings=Settings(bell=False),
        attention=Attention(tmp_path / "state" / "attention.json"),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "2 need you")
        await pilot.press("enter")
        hands = Hands(pilot)
        await shows(pilot, "f: Accept")
        shown = app.screen.in_hand().key  # type: ignore[attr-defined]
        (other,) = [root for root in roots if str(root) != shown]
        await hands.key("J")
        await until(pilot, lambda: app.screen.in_hand().key == str(other))  # type: ignore[attr-defined]
        await hands.key("f")
        await until(pilot, lambda: is_open(app, "CardScreen") and "1  Accept" in seen(pilot))
        await hands.key("1")
        await until(pilot, lambda: states.state(other)["status"] == "paused")
    assert hands.keys == 3


@pytest.mark.slow
async def test_two_agents_are_started_on_an_objective_of_ones_own_with_six_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with installed(tmp_path, monkeypatch):
        await _start_two(tmp_path)


async def _start_two(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    app = AcpApp([str(work)])
    async with app.run_test(size=(80, 24)) as pilot:
        await opens(pilot, "FleetScreen")
        hands = Hands(pilot)
        await hands.key("n")
        await until(pilot, lambda: is_open(app, "CreateScreen") and app.focused)
        screen = app.screen
        await until(pilot, lambda: not screen.is_being_made)
        plan = screen.query_one("#what", Static)
        await hands.type("choose a cache")
        await hands.key("tab")
        await hands.type("the key is agreed")
        await hands.key("tab")
        await hands.type("server\nreviewer")
        await until(pilot, lambda: "start reviewer: claude" in str(plan.render()))
        assert f"{work}/choose-a-cache" in str(plan.render())
        await hands.key("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
        folder = work / "choose-a-cache"
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
    assert hands.keys == 4  # of six that are allowed
    loops = {loop.participant: loop for loop in registry.runners(str(folder))}
    assert set(loops) == {"server", "reviewer"} and all(each.alive for each in loops.values())
    wait_for(lambda: len(support.events(folder)) > 3, "both agents to take turns")
    assert {each["from"] for each in support.events(folder)} == {"server", "reviewer"}


@pytest.mark.parametrize(
    "size", [(120, 36), pytest.param((80, 24), marks=pytest.mark.slow)], ids=["120x36", "80x24"]
)
@pytest.mark.parametrize("kind", finished.KINDS)
async def test_what_came_out_of_a_finished_collaboration_takes_one_key_on_the_fleet(
    tmp_path: Path, kind: str, size: tuple[int, int]
) -> None:
    make, tab, words = finished.KINDS[kind]
    made = make(tmp_path)
    app = AcpApp([str(made.parent)], settings=Settings(utc=True))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: str(made) in app.fleet.snapshots)
        await until(pilot, lambda: is_open(app, "FleetScreen") and app.screen.in_hand())
        assert app.fleet.snapshots[str(made)].status is Status.COMPLETED
        if kind == "initiative":
            await until(pilot, lambda: app.screen.in_hand().key == str(made))
        hands = Hands(pilot)
        await hands.key("enter")
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, words)
        screen = app.screen
        await until(pilot, lambda: screen.panes.active == "documents")
        shown = {each.id: each.label for each in screen.documents.all_tabs}
        assert tab in shown[screen.documents.active]
        assert screen.focused is not None
        assert screen.documents in screen.focused.ancestors
        assert hands.keys == 1
