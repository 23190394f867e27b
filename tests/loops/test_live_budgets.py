"""Budgets of participants whose turns are taken in live sessions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import budgets, registry
from acp_core.agents.state import Phase
from acp_core.diagnosis import actions
from acp_core.loops import launch
from acp_core.loops.acts.names import RAISE
from tests.agents.live.support import left_of
from tests.loops.support import (
    append,
    events,
    make,
    spec,
    start,
    state,
    wait_for_phase,
    wait_for_turns,
)
from tests.loops.test_failures import opened
from tests.loops.test_live import live, where


@pytest.mark.slow
def test_a_turn_that_uses_up_its_budget_is_cancelled_and_its_session_goes_on(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "cache")
    caps = (budgets.parse("turn=3ktokens"),)
    agent = live(tmp_path / "a", behaviour="spend")
    start(folder, "server", agent, permissions="edits", caps=caps)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    note = "the budget for this turn is used up: 5,000 of 3,000 tokens"
    held = state(folder, "server")
    assert held.run is not None and held.run.stopped == held.shown.note == note
    act = actions.action(*opened(folder), RAISE)
    assert act is not None
    act.perform(act.inputs(participant="server", budget="turn=50ktokens"))
    _, second = wait_for_turns(folder, "server", 2)
    assert second["took"]
    assert [path.name for path in (tmp_path / "a" / "home").iterdir()] == ["s0"]  # the same session
    registry.stop(str(folder), "server")
    assert left_of(where(folder, "server")) == []


@pytest.mark.slow
def test_what_a_live_session_reports_at_the_end_of_a_turn_stops_the_next_one_and_is_said(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "cache")
    caps = (budgets.parse("participant=1ktokens"), budgets.parse("participant=1usd"))
    agent = replace(live(tmp_path / "a"), tells_cost="running", tells_tokens="running")
    asked = spec(folder, "server", permissions="edits", caps=caps)
    assert launch.plan(asked, agent, ask_version=False).warnings == tuple(
        f"Any command reports its {noun} at the end of a turn of its live session: the budget "
        "stops the next one"
        for noun in ("cost", "tokens")
    )
    start(folder, "server", agent, permissions="edits", caps=caps)
    wait_for_turns(folder, "server", 1)
    assert events(folder)[-1]["event"] == "proposal_submitted"
    for name in ("reader", "reviewer"):
        append(folder, name, "review_submitted", 2)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert "used up: 1,050 of 1,000 tokens" in state(folder, "server").shown.note
