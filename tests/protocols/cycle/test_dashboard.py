"""A cycle is begun, steered and brought to its end from the dashboard alone, by its forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Select

from acp_core.model import OutcomeState, Status
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle.collaboration import Cycles
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from tests.protocols.cycle import conducting, making
from tests.protocols.cycle.conducting import AGENT, calls, done, start
from tests.tui.stage import hides, is_open, opens, shows, until

pytestmark = pytest.mark.usefixtures("nothing_is_left")


async def do(pilot: Pilot[Any], key: str, name: str, **values: object) -> None:
    """Open an action's form, fill it in, and do it."""
    app = pilot.app
    assert isinstance(app, AcpApp)
    app.perform_in_form(key, name)
    await fill(pilot, **values)


def ready(screen: object) -> bool:
    """Whether an action's form is there with all of its fields."""
    form = screen.form if isinstance(screen, ActionScreen) else None
    if form is None or len(form.views) != len(form.described):
        return False
    return all(each.query("SelectCurrent #label") for each in form.query(Select))


async def fill(pilot: Pilot[Any], **values: object) -> None:
    """Fill in the form that is shown, do it, and wait until it is gone."""
    app = pilot.app
    await until(pilot, lambda: ready(app.screen))
    screen = app.screen
    assert isinstance(screen, ActionScreen) and screen.form is not None
    assert values.keys() <= {view.field.name for view in screen.form.views}
    screen.form.fill(values)
    await pilot.pause()
    await pilot.press("ctrl+s")
    await until(pilot, lambda: app.screen is not screen or screen.has_class("-over"))
    if app.screen is screen:
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)


@pytest.mark.parametrize(
    "size",
    [pytest.param((120, 36), marks=pytest.mark.slow), (80, 24)],
    ids=["120x36", "80x24"],
)
async def test_a_decision_is_answered_where_it_is_asked(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    asked = making.coordination(pending_decisions=[making.decision()], blockers=[making.blocker()])
    work = making.agents(cd=making.agent("waiting"))
    root = making.cycle(tmp_path, "paused", agents=work, coordination=asked)
    app = AcpApp([str(root)])
    async with app.run_test(size=size) as pilot:
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, "Decide DEC-001: Large exports")
        await pilot.press("f")
        await shows(pilot, "1  Stream")
        await pilot.press("e")  # the whole form of the first option, with its rationale
        await shows(pilot, "DEC-001: 1. Stream  2. Refuse")
        await fill(pilot, choice="2", rationale="Too many rows")
        await hides(pilot, "Decide DEC-001")
        if size[1] >= 30:  # a low terminal keeps its four rows for what is needed next
            await shows(pilot, "Queued, not picked up yet: decide")
    held = json.loads((root / making.STATE).read_text())
    assert held["status"] == "running"
    (made,) = held["coordination"]["pending_decisions"]
    assert (made["chosen_option"], made["rationale"]) == ("Refuse", "Too many rows")
    assert held["coordination"]["blockers"][0]["resolution"] == "DEC-001: Refuse"


@pytest.mark.slow
async def test_a_cycle_goes_its_whole_way_by_forms(tmp_path: Path) -> None:
    root = tmp_path / "export-as-csv"
    root.mkdir()
    conducting.behave(root, ra=["sleep 0.5"], cd=["ask ra", "ask user", "buggy"])
    app = AcpApp([str(tmp_path)])
    key = str(root)
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "No collaboration under")
        await pilot.press("n")
        await until(pilot, lambda: app.screen.query("#protocol"))
        await until(pilot, lambda: app.screen.query("FieldView"))
        app.screen.query_one("#protocol").value = "cycle"  # type: ignore[attr-defined]
        await shows(pilot, "Task")
        await fill(pilot, objective="Export as CSV", program="command", command=AGENT)
        await until(pilot, lambda: key in app.fleet.snapshots)

        def needs() -> list[str]:
            return [need.code for need in app.fleet.snapshots[key].needs]

        await until(pilot, lambda: needs() == ["E7"])
        snapshot = app.fleet.snapshots[key]
        assert snapshot.needs[0].remedy == "decide"
        assert dict(snapshot.needs[0].given) == {"decision": "DEC-001"}
        if not is_open(app, "CollaborationScreen"):
            await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, "Decide DEC-001: Large exports?")

        await do(pilot, key, "feedback", agent="vas", text="Test the header row too")
        assert calls(root)[-1] == "cd ask user"
        await do(pilot, key, "decide", choice="2", rationale="Nobody has that many rows")
        await until(pilot, lambda: app.fleet.snapshots[key].status is Status.COMPLETED)
        snapshot = app.fleet.snapshots[key]
        assert "iteration 2/5; 10 tests, 0 failed, 100 %" in snapshot.headline
        assert snapshot.notices == ()
        assert "Test the header row too" in (root / "prompt-vas-1.txt").read_text()

        await do(pilot, key, "extend", text="Also as JSON")
        await until(pilot, lambda: "iteration 3/5" in app.fleet.snapshots[key].headline)
        await until(pilot, lambda: app.fleet.snapshots[key].status is Status.COMPLETED)
    assert calls(root) == [
        "ra sleep 0.5", "ep work", "cd ask ra", "ra work", "cd ask user", "cd buggy", "vas work",
        "cd work", "vas work", "ra work", "ep work", "cd work", "vas work",
    ]  # fmt: skip


def offered(root: Path) -> list[str]:
    return [each.name for each in Cycles(str(root)).actions(utc_now())]


def test_what_is_asked_for_is_requested_until_it_is_picked_up(tmp_path: Path) -> None:
    done(tmp_path, "start", "Export", "--cycle", conducting.ID, "--no-run")
    cycles = Cycles(str(tmp_path))
    actions = {each.name: each for each in cycles.actions(utc_now())}
    assert list(actions) == [
        "run", "feedback", "extend", "pause", "rerun", "limit", "stop",
    ]  # fmt: skip
    conduct = actions["run"]
    assert "the command is empty" in conduct.preview(conduct.inputs(program="command")).refused
    given = conduct.inputs(program="command", command="no-such-program --fast")
    assert "not found on PATH" in conduct.perform(given).sentence
    pause = actions["pause"]
    shown = pause.preview(pause.inputs())
    assert '+  "status": "paused"' in shown.changes[0].diff
    assert pause.perform(pause.inputs()).state is OutcomeState.DONE
    assert "the cycle is paused" in pause.perform(pause.inputs()).sentence
    snapshot = cycles.refresh(utc_now())
    assert [notice.sentence for notice in snapshot.notices] == ["queued, not picked up yet: pause"]
    assert "resume" in offered(tmp_path)
    conducting.behave(tmp_path, ra=["sleep 30"])
    done(tmp_path, "resume")
    conduct = {each.name: each for each in cycles.actions(utc_now())}["run"]
    given = conduct.inputs(program="command", command=AGENT)
    assert "two would overwrite each other's work" in conduct.preview(given).warnings[0]
    assert "ra command" in conduct.preview(given).notes[0]
    assert conduct.perform(given).state is OutcomeState.DONE
    conducting.wait_for(lambda: cycles.refresh(utc_now()).notices == (), "it to be picked up")


@pytest.mark.slow
def test_an_orchestrator_that_ended_is_started_again_by_an_action(tmp_path: Path) -> None:
    start(tmp_path, ra=["sleep 60"])
    conducting.wait_for(lambda: calls(tmp_path), "ra to begin")
    assert "run" not in offered(tmp_path)
    conducting.end_all()
    assert "run" in offered(tmp_path)
    conducting.behave(tmp_path)
    action = next(e for e in Cycles(str(tmp_path)).actions(utc_now()) if e.name == "run")
    assert action.preview(action.inputs()).command[:3] == ("acp", "cycle", "run")
    assert action.perform(action.inputs()).state is OutcomeState.DONE
    assert conducting.wait_for_end(tmp_path)["status"] == "completed"
    assert calls(tmp_path)[:2] == ["ra sleep 60", "ra work"], "what was stopped is begun anew"
