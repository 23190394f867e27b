"""A governed run on the dashboard: a gate is approved with a key, and the run goes on by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Static

from acp_core.person.attention import Attention
from acp_core.person.settings import Settings
from acp_core.protocols.governed.conduct.taking import take
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.collaboration import CollaborationScreen
from acp_tui.widgets.documents import Documents
from tests.protocols.governed import making
from tests.protocols.governed.acting import accept, dispatch, state, told
from tests.tui.screen import screen_lines
from tests.tui.stage import until


def dashboard(tmp_path: Path, root: Path) -> AcpApp:
    """The dashboard over one run."""
    return AcpApp(
        [str(root)],
        settings=Settings(bell=False),
        attention=Attention(tmp_path / "state" / "attention.json"),
    )


async def opened(pilot: Pilot[Any], app: AcpApp) -> None:
    await until(
        pilot,
        lambda: isinstance(app.screen, CollaborationScreen) and app.fleet.snapshots,
        "opening",
    )


def ready(app: AcpApp) -> bool:
    """Whether an action's form stands there, with its preview worked out."""
    screen = app.screen
    if not isinstance(screen, ActionScreen) or not screen.query("#do"):
        return False
    return screen.form is not None and not screen.query_one("#do", Button).disabled


async def act(pilot: Pilot[Any], app: AcpApp, root: Path, name: str) -> str:
    """Do an action from its form; returns what its preview said."""
    await app.push_screen(ActionScreen(str(root), name))
    await until(pilot, lambda: ready(app), f"the form of {name}")
    shown = str(app.screen.query_one("#what", Static).render())
    await pilot.press("ctrl+s")
    await until(
        pilot,
        lambda: not isinstance(app.screen, ActionScreen) or app.screen.has_class("-over"),
        f"doing {name}",
    )
    if isinstance(app.screen, ActionScreen):
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ActionScreen), "closing")
    return shown


async def test_a_gate_is_approved_with_a_key_and_the_run_moves(tmp_path: Path, root: Path) -> None:
    given = dispatch(root, now=datetime.now(UTC))
    assert take(root, given.turn_id).staged
    accept(root, now=datetime.now(UTC))
    app = dashboard(tmp_path, root)
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await until(
            pilot,
            lambda: any("planning_signoff needs your" in x for x in screen_lines(app)),
            "the gate",
        )
        await pilot.press("f")
        await until(pilot, lambda: " 1  Approve" in "\n".join(screen_lines(app)), "the card")
        shown = "\n".join(screen_lines(app))
        assert "pm asks to enter implementation" in shown and "OBJ-001" in shown
        await pilot.press("1")
        await until(pilot, lambda: state(root)["phase"] == "implementation", "the approval")
        await until(
            pilot,
            lambda: any("No active turn" in line for line in screen_lines(app)),
            "the next phase",
        )
    [line] = [x for x in told(root, "decision-ledger.jsonl") if x.get("type") == "gate_approved"]
    assert line["by"]


@pytest.mark.slow
async def test_the_age_of_a_turn_goes_on_while_nothing_is_written(tmp_path: Path) -> None:
    since = datetime(2026, 3, 1, 10, tzinfo=UTC)
    turn = making.turn(assigned_at=since.isoformat())
    root = making.make_run(tmp_path, of_state=making.state(active_turns={making.TURN: turn}))
    app = dashboard(tmp_path, root)
    now = [since + timedelta(minutes=5)]
    app.now = lambda: now[0]  # type: ignore[method-assign]

    def row() -> str:
        return next((line for line in screen_lines(app) if "dispatch" in line), "")

    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: " 5m " in row(), "the age of the turn")
        now[0] = since + timedelta(hours=2)
        await until(pilot, lambda: " 2h " in row(), "an older turn")


async def test_what_is_pressing_shows_first_until_a_tab_is_chosen(tmp_path: Path) -> None:
    root = making.make_run(tmp_path, of_state=making.under_way())
    gate = {"from": "planning", "to": "implementation", "gate": "planning_done"}
    app = dashboard(tmp_path, root)

    def documents() -> Documents:
        return app.screen.query_one(Documents)

    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: documents().active == "panel turns", "the turn under way")
        waits = making.state(status="paused", pending_phase_transition=gate)
        making.write(root / ".agentxchain/state.json", waits)
        await until(pilot, lambda: documents().active == "panel gate", "the gate that waits")
        documents().activate("panel turns")
        making.write(root / ".agentxchain/state.json", waits | {"turn_sequence": 9})
        await pilot.pause(0.5)
        assert documents().active == "panel turns", "a chosen tab stays"
