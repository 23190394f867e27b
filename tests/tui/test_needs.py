"""From need to need: one key goes to the next one, here and in the next collaboration."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from acp_core.model import Need
from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.card import CardScreen
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.screens.fleet import FleetScreen
from tests.protocols.governed import states
from tests.tui.screen import headline, seen
from tests.tui.stage import NOW, StageFleet, dashboard, needy, snapshot, until

REVIEW = Need("stuck:1", "STUCK", "reader has not reviewed", "reader", NOW - timedelta(minutes=19))
STORE = Need("asks:2", "ASKS", "server asks: Which store?", "server", NOW - timedelta(minutes=3))


def top(app: AcpApp) -> str:
    """The headline's rows of the collaboration that is open."""
    assert isinstance(app.screen, CollaborationScreen)
    return "\n".join(headline(app.screen))


async def test_the_next_need_is_one_key_away_and_keys_act_on_the_one_that_shows(
    tmp_path: Path,
) -> None:
    fleet = StageFleet(needy("a", needs=(REVIEW, STORE)))
    app: Any = dashboard(fleet, tmp_path, paths=("/work",))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "needs you" in seen(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "1 of 2 · J next" in seen(pilot))
        assert "reader has not reviewed" in top(app) and "Which store?" not in top(app)
        await pilot.press("J")
        assert "Which store? · 3m" in top(app) and "2 of 2 · J next" in top(app)
        fleet.show(needy("a", needs=(REVIEW, STORE), headline="Something happened."))
        await until(pilot, lambda: "Something happened" in top(app))
        assert "2 of 2" in top(app)  # the need in hand stays in hand
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ActionScreen))
        await until(pilot, lambda: "acp ack /work/a asks:2" in seen(pilot))
        await pilot.press("escape")
        await pilot.press("J")  # no other collaboration needs anybody: the first one again
        assert "reader has not reviewed" in top(app)


async def test_a_need_stands_on_top_or_in_the_list_but_not_in_both(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(needy("a", needs=(REVIEW, STORE))), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "needs you" in seen(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "Which store?" in seen(pilot))
        assert seen(pilot).count("reader has not reviewed") == 1
        assert "Next · 2 for you" in seen(pilot)
        await pilot.press("J")
        await until(pilot, lambda: "Which store?" in top(app))
        await until(pilot, lambda: "reader has not reviewed" in seen(pilot))
        assert seen(pilot).count("Which store?") == 1


async def test_after_the_last_need_comes_the_next_collaboration_that_has_one(
    tmp_path: Path,
) -> None:
    first, second = needy("a", needs=(REVIEW, STORE)), needy("b", needs=(REVIEW,))
    app: Any = dashboard(StageFleet(first, snapshot("calm"), second), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "2 need you" in seen(pilot))
        await pilot.press("J")
        assert app.screen.in_hand().name == "b"
        await pilot.press("J")
        assert app.screen.in_hand().name == "a"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
        for key, name in zip("JJJ", ("a — ", "b — ", "a — "), strict=True):
            await pilot.press(key)
            await until(pilot, lambda name=name: top(app).startswith(name))
        await pilot.press("escape")
        assert isinstance(app.screen, FleetScreen)  # one screen took the other's place


async def test_where_nothing_needs_anybody_the_key_says_so(tmp_path: Path) -> None:
    app: Any = dashboard(StageFleet(snapshot("calm")), tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "calm" in seen(pilot))
        await pilot.press("J")
        assert [each.message for each in app._notifications] == ["Nothing needs you."]


async def test_from_one_decision_to_the_next_and_decided_in_three_keys(tmp_path: Path) -> None:
    """Next need: one key. Decide: two."""
    (tmp_path / "work").mkdir()
    roots = [states.run_in(tmp_path / "work" / name, "staged") for name in ("hall", "lamp")]
    app = AcpApp(
        [str(tmp_path / "work")],
        settings=Settings(bell=False),
        attention=Attention(tmp_path / "state" / "attention.json"),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "2 need you" in seen(pilot))
        await pilot.press("enter")
        await until(pilot, lambda: "f: Accept" in seen(pilot))
        shown = app.screen.in_hand().key  # type: ignore[attr-defined]
        (other,) = [root for root in roots if str(root) != shown]
        await pilot.press("J")
        await until(pilot, lambda: app.screen.in_hand().key == str(other))  # type: ignore[attr-defined]
        await pilot.press("f")
        await until(
            pilot, lambda: isinstance(app.screen, CardScreen) and "1  Accept" in seen(pilot)
        )
        await pilot.press("1")
        await until(pilot, lambda: states.state(other)["status"] == "paused")
