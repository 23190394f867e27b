"""From need to need: one key goes to the next one, here and in the next collaboration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.loops.wording import is_idle
from acp_core.model import Matter, Participant, Runner, Status
from acp_core.model.matter import decision
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.protocols.folder.support import make_v1
from tests.tui.screen import headline, seen
from tests.tui.stage import (
    NOW,
    StageFleet,
    dashboard,
    hides,
    is_open,
    needy,
    opens,
    shows,
    snapshot,
    until,
)

REVIEW = decision(
    "stuck:1", "STUCK", "reader has not reviewed", "reader", NOW - timedelta(minutes=19)
)
STORE = decision(
    "asks:2", "ASKS", "server asks: Which store?", "server", NOW - timedelta(minutes=3)
)


def top(app: AcpApp) -> str:
    """The headline's rows of the collaboration that is open."""
    assert is_open(app, "CollaborationScreen")
    return "\n".join(headline(app.screen))


async def test_the_next_need_is_one_key_away_and_keys_act_on_the_one_that_shows(
    tmp_path: Path,
) -> None:
    fleet = StageFleet(needy("a", needs=(REVIEW, STORE)))
    app: Any = dashboard(fleet, tmp_path, paths=("/work",))
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("enter")
        await shows(pilot, "1 of 2 · J next")
        assert "reader has not reviewed" in top(app) and "Which store?" not in top(app)
        await pilot.press("J")
        assert "Which store? · 3m" in top(app) and "2 of 2 · J next" in top(app)
        fleet.show(needy("a", needs=(REVIEW, STORE), headline="Something happened."))
        await until(pilot, lambda: "Something happened" in top(app))
        assert "2 of 2" in top(app)  # the need in hand stays in hand
        await pilot.press("a")
        await opens(pilot, "ActionScreen")
        await shows(pilot, "acp ack /work/a asks:2")
        await pilot.press("escape")
        await pilot.press("J")  # no other collaboration needs anybody: the first one again
        assert "reader has not reviewed" in top(app)


async def test_a_need_stands_on_top_or_in_the_list_but_not_in_both(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(needy("a", needs=(REVIEW, STORE))), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("enter")
        await shows(pilot, "Which store?")
        assert seen(pilot).count("reader has not reviewed") == 1
        assert "Next · 1 more for you" in seen(pilot)
        await pilot.press("J")
        await until(pilot, lambda: "Which store?" in top(app))
        await shows(pilot, "reader has not reviewed")
        assert seen(pilot).count("Which store?") == 1


@pytest.mark.slow
async def test_the_key_that_fixes_acts_on_the_need_that_shows_and_says_where_to_go_without_an_action(
    tmp_path: Path,
) -> None:
    by_hand = Matter(
        "W1",
        "the agent is stopped",
        instruction="start it: acp agent",
        evidence=("open: task 1",),
        key="stuck:1",
    )
    stopped = decision(by_hand.key, "W1", by_hand.sentence, None, NOW - timedelta(minutes=9))
    asks = decision("asks:2", "ASKS", "Which store?", "server", NOW, "answer_it")
    a = needy("a", needs=(stopped, asks), causes=(by_hand,))
    app: Any = dashboard(StageFleet(a), tmp_path, paths=("/work",))
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "→ enter: open")
        assert " f Fix" not in seen(pilot)
        await pilot.press("f")
        (told,) = (each.message for each in app._notifications)
        assert told.endswith("press enter to open it.")
        await pilot.press("question_mark")
        await shows(pilot, "What you can do here now")
        assert "Fix:" not in seen(pilot)
        await pilot.press("escape", "enter")
        await until(pilot, lambda: "w: why" in top(app))
        assert " f Fix" not in seen(pilot)
        await pilot.press("f")
        await shows(pilot, "Start it: acp agent")  # what w shows
        assert is_open(app, "CollaborationScreen")
        await pilot.press("J")
        await until(pilot, lambda: "f: Do it" in top(app) and " f Fix" in seen(pilot))
        await pilot.press("question_mark")
        await shows(pilot, "Fix: Do it  Which store?")


@pytest.mark.slow
async def test_after_the_last_need_comes_the_next_collaboration_that_has_one(
    tmp_path: Path,
) -> None:
    first, second = needy("a", needs=(REVIEW, STORE)), needy("b", needs=(REVIEW,))
    app: Any = dashboard(StageFleet(first, snapshot("calm"), second), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "2 need you")
        await pilot.press("J")
        assert app.screen.in_hand().name == "b"
        await pilot.press("J")
        assert app.screen.in_hand().name == "a"
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
        for key, name in zip("JJJ", ("a — ", "b — ", "a — "), strict=True):
            await pilot.press(key)
            await until(pilot, lambda name=name: top(app).startswith(name))
        await pilot.press("escape")
        assert is_open(app, "FleetScreen")  # one screen took the other's place


async def test_where_nothing_needs_anybody_the_key_says_so(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(snapshot("calm")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "calm")
        await pilot.press("J")
        assert [each.message for each in app._notifications] == ["Nothing needs you."]


async def test_where_acp_runs_nothing_the_key_that_starts_it_is_named(tmp_path: Path) -> None:
    root = make_v1(tmp_path)
    soon = datetime(2026, 1, 2, 3, 15, tzinfo=UTC)  # after the last of its events
    app = AcpApp(
        [str(root)],
        clock=lambda: soon,
        settings=Settings(bell=False),
        attention=Attention(tmp_path / "state" / "attention.json"),
    )
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "acp runs no agent here · L: Start loops")
        assert not app.fleet.snapshots[str(root)].needs  # and no bell rings
        await pilot.press("L")
        await opens(pilot, "ActionScreen")
        await until(pilot, lambda: "Start loops" in str(app.screen.query_one("#title").render()))


async def test_nothing_is_to_be_started_while_a_loop_runs_or_only_a_person_is_waited_for() -> None:
    assert is_idle(snapshot())
    assert not is_idle(snapshot(runners=(Runner("reader"),)))
    assert not is_idle(snapshot(participants=(Participant("reader", "human"),)))
    assert not is_idle(snapshot(status=Status.COMPLETED))


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["120x36", "80x24"])
async def test_next_announces_no_need_that_stands_at_the_top_only(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    alone = needy("a", needs=(REVIEW,), turns=(), next_actions=())
    app: Any = dashboard(StageFleet(alone), tmp_path)
    async with app.run_test(size=size) as pilot:
        await shows(pilot, "needs you")
        await pilot.press("enter")
        await until(pilot, lambda: "reader has not reviewed" in top(app))
        await hides(pilot, "for you")
        assert seen(pilot).count("reader has not reviewed") == 1
        assert "Next · at the top" in seen(pilot) or size[0] == 80
