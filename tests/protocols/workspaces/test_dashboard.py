"""A run is carried out from the dashboard alone, by its forms."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Select

from acp_core.model import Status
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from tests.protocols.workspaces.making import agent, run
from tests.protocols.workspaces.running import FIVE, begun, now, program, states, told
from tests.tui.stage import opens, screen_text, shows, until


async def do(pilot: Pilot[Any], name: str, **values: object) -> None:
    """Open an action's form, fill it in, do it, and wait until it is done."""
    app = pilot.app
    assert isinstance(app, AcpApp)
    key = next(iter(app.fleet.snapshots))
    app.perform_in_form(key, name)
    await fill(pilot, **values)


async def fill(pilot: Pilot[Any], **values: object) -> None:
    """Fill in the form that is shown, do it, and wait until it is gone."""
    app = pilot.app
    await until(pilot, lambda: ready(app.screen))
    screen = app.screen
    assert isinstance(screen, ActionScreen) and screen.form is not None
    names = {view.field.name for view in screen.form.views}
    assert values.keys() <= names, (values, names)
    screen.form.fill(values)
    await pilot.pause()
    await pilot.press("ctrl+s")
    await until(pilot, lambda: app.screen is not screen or screen.has_class("-over"))
    if app.screen is screen:
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)


def ready(screen: object) -> bool:
    """Whether an action's form is there with all of its fields."""
    form = screen.form if isinstance(screen, ActionScreen) else None
    if form is None or len(form.views) != len(form.described):
        return False
    return all(each.query("SelectCurrent #label") for each in form.query(Select))


@pytest.mark.slow
async def test_a_need_is_settled_by_its_key(tmp_path: Path) -> None:
    root = run(tmp_path / "queues")
    agent(root, "ben", "partial")
    app = AcpApp([str(root)])
    async with app.run_test(size=(120, 36)) as pilot:
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, "f: ")
        await pilot.press("f")
        await shows(pilot, "1  Accept the result as it is")
        assert "The rest is missing." in screen_text(app)
        await pilot.press("e")  # the whole form
        await until(pilot, lambda: ready(app.screen))
        await fill(pilot, decision="accept", reason="enough")
        await shows(pilot, "ready to integrate")
    assert states(root) == {"ann": "success", "ben": "partial (accept)"}


@pytest.mark.slow
async def test_a_run_of_five_is_finished_from_the_dashboard(tmp_path: Path) -> None:
    work, own = tmp_path / "work", tmp_path / "own"
    work.mkdir()
    words = program(own, **{**FIVE, "cat": ["failure", "success"]})
    app = AcpApp([str(work)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "No collaboration under")
        await pilot.press("n")
        await until(pilot, lambda: app.screen.query("#protocol"))
        await until(pilot, lambda: app.screen.query("FieldView"))
        app.screen.query_one("#protocol").value = "workspaces"  # type: ignore[attr-defined]
        await shows(pilot, "An agent and its task")
        agents = [f"{name}=Compare the queues as {name} sees them." for name in FIVE]
        await fill(pilot, objective="Queues", agents=agents)
        root = next(work.iterdir())
        await until(pilot, lambda: root in map(Path, app.fleet.snapshots))
        assert "ready to dispatch" in str(now(root).needs)

        command = {"program": "command", "command": shlex.join(words), "limit": "5"}
        await do(pilot, "dispatch", **command)
        through = {"ann": "success", "ben": "partial", "cat": "failure", "eve": "success"}
        await until(pilot, lambda: states(root) == {**through, "dan": "working"})
        assert [need.code for need in now(root).needs] == ["undecided", "undecided"]
        await do(pilot, "triage", agent="ben", decision="accept", reason="enough")
        await do(pilot, "triage", agent="dan", decision="gap", reason="it never returns")
        await do(pilot, "rerun", agent="cat", feedback="Rerun")
        done = {**through, "ben": "partial (accept)", "cat": "success", "dan": "missing (gap)"}
        await until(pilot, lambda: states(root) == done)
        assert sorted(begun(own)) == ["ann", "ben", "cat", "cat", "dan", "eve"]
        assert [need.remedy for need in now(root).needs] == ["compare"]

        await do(pilot, "compare")
        for hint in told("conflicts", root)["conflicts"]:
            if "price" in hint["topic"]:
                await do(pilot, "resolve", conflict=hint["id"], keep=hint["agents"][0])
            else:
                await do(pilot, "dismiss", conflict=hint["id"], reason="the same")
        by = {"program": "command", "command": shlex.join(words)}
        await do(pilot, "synthesise", how="by a program", **by)
        await until(pilot, lambda: [need.code for need in now(root).needs] == ["draft"])
        await do(pilot, "finish", gaps=["Nobody looked at latency."])
        assert now(root).status is Status.COMPLETED
        assert now(root).headline.startswith("integrated with gaps")
    assert (root / "integration/final-output.md").read_text().count("Conflict between") == 1
