"""Starting and stopping real loops from the dashboard, and what is shown before."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Select, Static

from acp_core.agents import registry
from acp_core.loops.acts.about import About
from acp_core.loops.acts.starting import bind_launch
from acp_core.model import Action, OutcomeState, Snapshot
from acp_core.model.clock import utc_now
from acp_core.person import journal
from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from acp_tui.actions.forms import FieldView
from acp_tui.app import AcpApp
from tests.loops.support import make, stand_in, stop_all
from tests.tui.screen import make_app, settle
from tests.tui.stage import until

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(f"#!{sys.executable}\nprint('2.9.9 (Claude Code)')\n")
    (programs / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    yield
    stop_all()


def begun(folder: Path) -> Snapshot:
    """A collaboration that waits for its owner's proposal."""
    found = identify(make(folder / "review"), bundled())
    assert found is not None
    collaboration = found.open()
    return collaboration.refresh(utc_now())


def launching(snapshot: Snapshot) -> Action:
    """The act that starts loops."""
    return bind_launch(About(snapshot.key, snapshot), utc_now())


def test_every_program_is_shown_whole_before_it_is_started(tmp_path: Path) -> None:
    snapshot = begun(tmp_path)
    action = launching(snapshot)
    inputs = action.inputs
    assert (
        action.preview(inputs(participant=[])).refused
        == "choose an agent for at least one participant"
    )
    given = inputs(
        participant=["reader=claude", "reviewer=command"],
        command=f"my-agent --key {SECRET} '{{prompt}}'",
        timeout="30m",
    )
    preview = action.preview(given)
    claude, other = preview.changes
    assert claude.path.startswith("reader: claude 2.9.9")
    assert f"program  {tmp_path}/bin/claude" in claude.diff
    assert f"runs in  {snapshot.key}" in claude.diff
    assert "command  " in claude.diff and str(tmp_path / "bin" / "claude") in claude.diff
    assert other.path.startswith("reviewer: command") and "refused  " in other.diff
    assert preview.refused.startswith("reviewer: ") and "my-agent" in preview.refused
    assert preview.command[:5] == ("acp", "launch", snapshot.key, "reader=claude", "reviewer")
    assert "--timeout" in preview.command and SECRET not in " ".join(preview.command)
    assert action.perform(inputs(participant=[])).state is OutcomeState.REFUSED


def test_a_command_that_cannot_be_read_is_refused_in_a_line(tmp_path: Path) -> None:
    action = launching(begun(tmp_path))
    given = action.inputs(participant=["server=command"], command="agent 'unfinished")
    assert "cannot be read" in action.preview(given).refused
    assert action.perform(given).state is OutcomeState.REFUSED
    given = action.inputs(participant=["server=command"])
    assert "the command is empty" in action.preview(given).refused


def stage(snapshot: Snapshot, folder: Path) -> AcpApp:
    app = make_app(snapshot, folder=folder)
    fleet: Any = app.fleet
    fleet.loops = lambda key: tuple(registry.runners(key))
    return app


async def open_form(pilot: Pilot[Any], key: str) -> Any:
    await pilot.press(key)
    await settle(pilot)
    screen = pilot.app.screen
    await until(pilot, lambda: "Looking" not in str(screen.query_one("#title").render()))
    return screen


def field(screen: Any, name: str) -> FieldView:
    return next(view for view in screen.query(FieldView) if view.field.name == name)


@pytest.mark.slow
async def test_loops_are_started_and_stopped_by_a_form(tmp_path: Path) -> None:
    snapshot = begun(tmp_path)
    app = stage(snapshot, tmp_path)
    agent = stand_in(tmp_path, "agent")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        screen = await open_form(pilot, "L")
        waited, choice = list(field(screen, "participant").query(Select))[:2]
        assert waited.value == "claude"  # installed, and server is waited for
        waited.clear()
        choice.value = "command"
        field(screen, "command").value = f"{agent} --task"
        button = screen.query_one("#do", Button)
        what = screen.query_one("#what", Static)
        await until(pilot, lambda: "start reader: command" in str(what.render()))
        await until(pilot, lambda: not button.disabled)
        shown = str(what.render())
        assert f"command  {agent} --task" in shown and "server" not in shown
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
        (loop,) = registry.runners(snapshot.key)
        assert loop.participant == "reader" and loop.alive

        screen = await open_form(pilot, "S")
        await until(
            pilot, lambda: "Stops reader (process" in str(screen.query_one("#what").render())
        )
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
        (loop,) = registry.runners(snapshot.key)
        assert not loop.alive
    acts = journal.read(snapshot.key)
    assert [(act.action, act.state) for act in acts] == [
        ("launch", "done"),
        ("stop", "done"),
    ]


async def test_it_is_said_where_nothing_runs_or_a_preset_is_wrong(tmp_path: Path) -> None:
    snapshot = begun(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("[presets.mine]\nprogram = 3\n")
    app = make_app(snapshot, folder=tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        screen = await open_form(pilot, "S")
        await until(
            pilot, lambda: "No loop is running here" in str(screen.query_one("#why").render())
        )
        assert screen.query_one("#do", Button).disabled
        await pilot.press("escape")
        source = app.fleet.sources[snapshot.key]  # type: ignore[attr-defined]
        source.has_turns = False
        screen = await open_form(pilot, "L")
        assert "have no turns" in str(screen.query_one("#title", Static).render())
        source.has_turns = True
        await pilot.press("escape")
        screen = await open_form(pilot, "L")
        said = str(screen.query_one("#title", Static).render())
        assert "presets.mine.program: must be a text" in said
