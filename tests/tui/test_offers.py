"""The footer offers what can be done, and calls it what the collaboration calls it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from textual.widgets import Input

from acp_core.model import Finding, Need, Severity
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_tui.screens.action import ActionScreen
from tests.tui.stage import StageFleet, dashboard, screen_text, snapshot, until


class Nothing(BaseModel):
    """No inputs."""


class Who(BaseModel):
    """Whom it is about."""

    who: str


def action(name: str, label: str) -> Action:
    return Action(
        name, label, f"{label}.", Nothing,
        lambda inputs: Preview(label), lambda inputs: Outcome(OutcomeState.DONE, label),
    )  # fmt: skip


def can_block(app: Any) -> bool:
    return bool(app.screen.active_bindings["b"].enabled)


async def test_block_is_dimmed_where_it_cannot_be_done(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a"), snapshot("b"))
    fleet.offered = (action("step", "Take the next step"),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "2 live" in screen_text(app) and not can_block(app))
        fleet.offered = (action("block", "Block"),)
        await pilot.press("down")
        await until(pilot, lambda: can_block(app))


async def test_a_need_names_its_remedy_by_its_label(tmp_path: Path) -> None:
    need = Need("gate", "GATE", "the next step is due", action="step")
    fleet = StageFleet(replace(snapshot("a"), needs=(need,)))
    fleet.offered = (action("step", "Take [the] next step\x1b"),)
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "f: Take [the] next step" in screen_text(app))
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: "f: Take [the] next step" in screen_text(app))
        assert "\x1b" not in screen_text(app)


async def test_next_and_findings_call_an_action_by_its_label(tmp_path: Path) -> None:
    need = Need("gate", "GATE", "the next step is due", action="step")
    finding = Finding("T1", Severity.ERROR, "it is late", action="mend", given=(("who", "ann"),))
    one = replace(snapshot("a"), needs=(need,), findings=(finding,))
    fleet = StageFleet(one)
    fleet.offered = (
        action("step", "Take [the] next step\x1b"),
        replace(action("mend", "Mend it"), inputs=Who),
    )
    app: Any = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "1 live" in screen_text(app))
        await pilot.press("enter", "4", "up")
        await until(pilot, lambda: "enter: Take [the] next step" in screen_text(app))
        await pilot.press("3", "up")
        await until(pilot, lambda: "f: Mend it" in screen_text(app))
        assert "\x1b" not in screen_text(app)
        await pilot.press("f")
        await until(pilot, lambda: isinstance(app.screen, ActionScreen) and app.screen.form)
        await until(pilot, lambda: app.screen.query_one(Input).value == "ann")
