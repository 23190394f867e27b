"""From an empty folder to agents at work: what is asked, how many keys it takes, what really runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Select, Static

from acp_core.agents import registry
from acp_core.person import journal
from acp_core.protocols import registry as protocols
from acp_tui.actions.forms import FieldView
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.create import CreateScreen
from acp_tui.screens.fleet import FleetScreen
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops import support
from tests.tui.cards import dashboard, open_card
from tests.tui.screen import seen, settle
from tests.tui.stage import until


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Claude Code and Codex are installed, and no other agent."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(protocols, "_handed_in", {})
    protocols.hand_in(protocols.START, "acp_core.loops.acts.new_folder:STARTER")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("codex", "claude"):
        support.stand_in(folder, name)
    python = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join([str(folder), str(python), "/usr/bin", "/bin"]))
    yield folder
    support.stop_all()


class Hands:
    """Presses keys, and counts those that are no typed text."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self.pilot, self.keys = pilot, 0

    async def key(self, *keys: str) -> None:
        self.keys += len(keys)
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        names = {"\n": "enter", " ": "space"}
        await self.pilot.press(*(names.get(each, each) for each in text))


def field(screen: ActionScreen, name: str) -> FieldView:
    return next(view for view in screen.query(FieldView) if view.field.name == name)


def shown(screen: ActionScreen) -> str:
    return str(screen.query_one("#what", Static).render())


async def test_two_agents_are_started_on_an_objective_of_ones_own_with_few_keys(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    app = AcpApp([str(work)])
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        hands = Hands(pilot)
        await hands.key("n")
        await until(pilot, lambda: isinstance(app.screen, CreateScreen) and app.focused)
        screen = app.screen
        assert isinstance(screen, CreateScreen)
        await until(pilot, lambda: not screen.is_being_made)
        await hands.type("choose a cache")
        await hands.key("tab")
        await hands.type("the key is agreed")
        await hands.key("tab")
        await hands.type("server\nreviewer")
        await until(pilot, lambda: "start reviewer: claude" in shown(screen))
        assert f"{work}/choose-a-cache" in shown(screen)
        await hands.key("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
        folder = work / "choose-a-cache"
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
    assert hands.keys <= 6
    loops = {loop.participant: loop for loop in registry.runners(str(folder))}
    assert set(loops) == {"server", "reviewer"} and all(each.alive for each in loops.values())
    wait_for(lambda: len(support.events(folder)) > 3, "both agents to take turns")
    assert {each["from"] for each in support.events(folder)} == {"server", "reviewer"}


async def test_agents_that_are_not_installed_are_marked_and_never_preselected(
    tmp_path: Path, programs: Path
) -> None:
    (programs / "claude").unlink()
    app = AcpApp([str(tmp_path)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, CreateScreen))
        screen = app.screen
        assert isinstance(screen, CreateScreen)
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
        await until(pilot, lambda: isinstance(app.screen, CreateScreen))
        screen = app.screen
        assert isinstance(screen, CreateScreen)
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


async def test_the_form_that_starts_loops_begins_with_who_is_waited_for(tmp_path: Path) -> None:
    folder = support.make(tmp_path / "cache")
    app = AcpApp([str(folder)])
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: str(folder) in app.fleet.snapshots)
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, ActionScreen))
        screen = app.screen
        assert isinstance(screen, ActionScreen)
        await until(pilot, lambda: not screen.is_being_made)
        assert field(screen, "participant").value == ["server=claude"]
        prompts = [str(each) for each, _ in screen.query(Select).first()._options]
        assert prompts.index("codex") < prompts.index("gemini (not installed)")
        await until(pilot, lambda: not screen.query_one("#do").disabled)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.screen is not screen)
    (loop,) = registry.runners(str(folder))
    assert loop.participant == "server" and loop.alive


async def test_an_answer_continues_with_the_same_programs(tmp_path: Path, programs: Path) -> None:
    folder = support.make(tmp_path / "work" / "cache")
    for name in ("server", "reviewer"):
        support.start(folder, name, support.presets.named("codex", support.presets.bundled()))
    support.stop_all()
    support.append(folder, "server", "blocked", len(support.events(folder)))
    async with dashboard(folder, tmp_path) as pilot:
        card = await open_card(pilot)
        assert "continue in a new folder with the same programs" in seen(pilot)
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
