"""From an empty folder to agents at work: what is asked, how many keys it takes, what really runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Select, Static

from acp_core.agents import registry
from acp_core.person import journal
from acp_tui.actions.forms import FieldView
from acp_tui.app import AcpApp
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops import support
from tests.tui.cards import dashboard, open_card
from tests.tui.hands import installed
from tests.tui.screen import seen, settle
from tests.tui.stage import opens, shows, until


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Claude Code and Codex are installed, and no other agent."""
    with installed(tmp_path, monkeypatch) as folder:
        yield folder


def field(screen: Any, name: str) -> FieldView:
    return next(view for view in screen.query(FieldView) if view.field.name == name)


def shown(screen: Any) -> str:
    return str(screen.query_one("#what", Static).render())


@pytest.mark.slow
async def test_agents_that_are_not_installed_are_marked_and_never_preselected(
    tmp_path: Path, programs: Path
) -> None:
    (programs / "claude").unlink()
    app = AcpApp([str(tmp_path)])
    async with app.run_test(size=(120, 40)) as pilot:
        await opens(pilot, "FleetScreen")
        await pilot.press("n")
        screen = await opens(pilot, "CreateScreen")
        await until(pilot, lambda: not screen.is_being_made)
        field(screen, "objective").value = "Choose"
        field(screen, "gates").value = ["Chosen"]
        field(screen, "participants").value = ["server", "reviewer", "me"]
        agents = field(screen, "agent")
        usual = ["server=codex", "reviewer=codex", "me=codex"]
        await until(pilot, lambda: agents.value == usual)
        first, second, third = agents.query(Select)
        prompts = [str(prompt) for prompt, _ in first._options]
        assert "codex" in prompts and "claude (not installed)" in prompts
        third.clear()  # a person takes part by hand
        second.value = "claude"
        await until(pilot, lambda: "claude: not found on PATH" in str(
            screen.query_one("#why", Static).render()))  # fmt: skip
        assert screen.query_one("#do").disabled
        await pilot.press("ctrl+s")
        assert "choose" not in os.listdir(tmp_path)  # nothing is written by halves

        # The form is left and opened again: a person still gets no program.
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("n")
        screen = await opens(pilot, "CreateScreen")
        await until(pilot, lambda: not screen.is_being_made)
        agents = field(screen, "agent")
        await until(pilot, lambda: agents.value == ["server=codex", "reviewer=claude"])
        assert screen.form and screen.form.values()["agent"] == agents.value
        first, second, third = agents.query(Select)

        # Another participant is put before: each keeps its own choice.
        second.value = "codex"
        field(screen, "participants").value = ["boss", "server", "reviewer", "me"]
        assert screen.form and screen.form.values()["agent"] == ["boss=codex", *usual[:2]]
        await until(pilot, lambda: agents.value == ["boss=codex", *usual[:2]])


@pytest.mark.slow
async def test_the_form_that_starts_loops_begins_with_who_is_waited_for(tmp_path: Path) -> None:
    folder = support.make(tmp_path / "cache")
    app = AcpApp([str(folder)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        await shows(pilot, "Waiting for server")
        await pilot.press("L")
        screen = await opens(pilot, "ActionScreen")
        await until(pilot, lambda: not screen.is_being_made)
        assert field(screen, "participant").value == ["server=claude"]
        prompts = [str(each) for each, _ in screen.query(Select).first()._options]
        assert prompts.index("codex") < prompts.index("gemini (not installed)")
        await until(pilot, lambda: not screen.query_one("#do").disabled)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
    (loop,) = registry.runners(str(folder))
    assert loop.participant == "server" and loop.alive


@pytest.mark.slow
async def test_an_answer_continues_with_the_same_programs(tmp_path: Path, programs: Path) -> None:
    folder = support.make(tmp_path / "work" / "cache")
    for name in ("server", "reviewer"):
        support.start(folder, name, support.presets.named("codex", support.presets.bundled()))
    support.stop_all()
    support.append(folder, "server", "blocked", len(support.events(folder)))
    async with dashboard(folder, tmp_path) as pilot:
        card = await open_card(pilot)
        assert "continue in a new folder with the same agents" in seen(pilot)
        await pilot.press("1")
        await until(pilot, lambda: card.query(FieldView))
        answer, start = card.query(FieldView)
        assert start.value is True and "server, reviewer" in start.field.description
        answer.value = "Use the path."
        await pilot.press("ctrl+s")
        await until(pilot, lambda: pilot.app.screen is not card)
        await settle(pilot)
    new = tmp_path / "work" / "cache-2"
    loops = registry.runners(str(new))
    assert {each.participant for each in loops} == {"server", "reviewer"}
    assert all(each.alive and each.folder == str(new) for each in loops)
    wait_for(lambda: len(support.events(new)) > 1, "the owner to take its turn in the new folder")


def test_one_command_creates_and_starts(tmp_path: Path) -> None:
    acp = Acp(tmp_path, {"PATH": os.environ["PATH"]})
    words = ("new", "cache", "server=codex", "reviewer", "me", "--objective", "Choose a cache",
             "--completion", "The key is agreed")  # fmt: skip
    ran = acp(*words, "--dry-run", "--json")
    told = json.loads(ran.stdout)
    assert [each["participant"] for each in told["loops"]] == ["server"] and not told["done"]
    refused = acp(*words, "--agent", "reviewer=gemini")
    assert refused.returncode == 2 and "gemini: not found on PATH" in refused.stderr
    refused = acp(*words, "--agent", "reader=codex")
    assert refused.returncode == 2 and "'reader' is not a participant" in refused.stderr
    assert not (tmp_path / "cache").exists()
    ran = acp(*words, "--agent", "reviewer=claude")
    assert ran.returncode == 0 and "Started server (process" in ran.stdout, ran.stderr
    folder = tmp_path / "cache"
    loops = {each.participant: each.shown.program for each in registry.runners(str(folder))}
    assert loops == {"server": "codex", "reviewer": "claude"}
    acts = [(act.action, act.state) for act in journal.read(str(folder))]
    assert acts == [("create", "refused"), ("create", "refused"), ("create", "done")]
    wait_for(lambda: len(support.events(folder)) > 2, "the agents to take turns")


def test_a_command_continues_with_the_same_programs_where_it_is_asked_to(tmp_path: Path) -> None:
    acp = Acp(tmp_path, {"PATH": os.environ["PATH"]})
    folder = support.make(tmp_path / "cache")
    support.start(folder, "server", support.presets.named("codex", support.presets.bundled()))
    support.stop_all()
    support.append(folder, "server", "blocked", len(support.events(folder)))
    ran = acp("continue", str(folder), "--answer", "Use the path.", "--start")
    assert ran.returncode == 0 and "Started server (process" in ran.stdout, ran.stderr
    (loop,) = registry.runners(str(tmp_path / "cache-2"))
    assert loop.alive and loop.shown.program == "codex"


def test_what_a_form_preselects_no_command_starts(tmp_path: Path) -> None:
    acp = Acp(tmp_path, {"PATH": os.environ["PATH"]})
    folder = support.make(tmp_path / "cache")
    for words in (("act", str(folder), "launch", "--yes"), ("launch", str(folder))):
        ran = acp(*words)
        told = ran.stdout + ran.stderr
        assert ran.returncode == 2 and "no loop was started here before" in told
    assert not registry.runners(str(folder))


def test_nothing_is_created_where_a_loop_of_an_earlier_folder_still_runs(tmp_path: Path) -> None:
    acp, folder = Acp(tmp_path, {"PATH": os.environ["PATH"]}), support.make(tmp_path / "cache")
    support.start(folder, "server", support.presets.named("codex", support.presets.bundled()))
    folder.rename(tmp_path / "old")
    words = ("--objective", "Choose a cache", "--completion", "The key is agreed")
    ran = acp("new", "cache", "server=codex", "reader=claude", *words)
    assert ran.returncode == 2 and "server already has a loop (process" in ran.stderr, ran
    assert not folder.exists() and not registry.find(str(folder), "reader")
