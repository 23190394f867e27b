"""The dashboard starts, follows the fleet, finds its way between screens, and leaves cleanly."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from textual.widgets import OptionList

from acp_core.fleet import Batch
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.matter import decision
from acp_core.person.settings import SettingsError
from acp_tui import theme
from acp_tui.app import AcpApp, run
from tests.support import toy
from tests.tui.stage import (
    StageFleet,
    dashboard,
    finished,
    hides,
    needy,
    opens,
    screen_text,
    shows,
    snapshot,
    until,
)
from tests.tui.support import HOSTILE, hostile_snapshot


async def test_enter_opens_a_collaboration_and_escape_comes_back_to_it(tmp_path: Path) -> None:
    app = dashboard(StageFleet(snapshot("a"), snapshot("b")), tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.press("down", "enter")
        await opens(pilot, "CollaborationScreen")
        await pilot.press("escape")
        await opens(pilot, "FleetScreen")
        assert app.screen.query_one("FleetTable").selected == "/work/b"


async def test_every_change_of_the_fleet_is_one_signal_with_its_batch(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a"))
    app = dashboard(fleet, tmp_path)
    heard: list[Batch] = []
    async with app.run_test() as pilot:
        app.snapshots_changed.subscribe(app.screen, heard.append)
        fleet.show(snapshot("b"))
        await until(pilot, lambda: "/work/b" in {s.key for batch in heard for s in batch.snapshots})
        await pilot.press("q")
    assert fleet.closed


async def test_what_the_fleet_shows_goes_on_changing_under_another_screen(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("a"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
        fleet.show(needy("b"))
        await until(pilot, lambda: app.title == "1 needs you · acp")


async def test_a_fleet_that_breaks_is_said_and_the_screen_stays(tmp_path: Path) -> None:
    class Broken(StageFleet):
        async def changes(self) -> Any:
            yield Batch((snapshot("a"),))
            raise RuntimeError("[/x] no more watches")

    app = dashboard(Broken(snapshot("a")), tmp_path)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await shows(pilot, "no longer sees changes")
        await shows(pilot, "RuntimeError('[/x] no more")
        await opens(pilot, "FleetScreen")


@pytest.mark.parametrize(
    "name", ["textual-dark", "textual-light", "ansi-dark", "ansi-light", "nord"]
)
async def test_every_theme_draws_every_state(tmp_path: Path, name: str) -> None:
    app = dashboard(
        StageFleet(needy("a"), snapshot("b"), finished("c")), tmp_path, settings={"theme": name}
    )
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        assert app.theme == name
        assert "needs you" in screen_text(app)


async def test_a_theme_that_does_not_exist_is_said_and_another_one_taken(tmp_path: Path) -> None:
    app = dashboard(StageFleet(), tmp_path, settings={"theme": "[/x]"})
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await shows(pilot, "Unknown theme '[/x]'")
        assert app.theme == theme.DEFAULT


async def test_the_palette_opens_collaborations_and_offers_what_can_be_done(tmp_path: Path) -> None:
    fleet = StageFleet(snapshot("checkout"), snapshot("billing"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p", *"open checkout")
        await shows(pilot, "Open checkout")
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")


class Nothing(BaseModel):
    """No inputs."""


def offered(name: str, label: str) -> Action:
    """An action that asks for nothing and does nothing."""
    done = Outcome(OutcomeState.DONE, "Done.")
    return Action(
        name, label, f"{label}.", Nothing, lambda given: Preview("It."), lambda given: done
    )


async def test_the_palette_begins_with_what_can_be_done_here_and_tells_equal_names_apart(
    tmp_path: Path,
) -> None:
    need = decision("stuck:1", "STUCK", "no review came", "reader", act="halt_all")
    here = snapshot("a/checkout", needs=(need,))
    fleet = StageFleet(here, snapshot("b/checkout"), snapshot("other"))
    fleet.offered = (offered("halt_all", "Halt everything"), offered("pause", "Pause one"))
    app = dashboard(fleet, tmp_path)
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p")
        await shows(pilot, "Open other")
        shown = screen_text(app)
        fix, other = "Halt everything: checkout  (f)", "Pause one: checkout"
        opened = [f"Open checkout  /work/{folder}" for folder in "ab"]
        places = [shown.index(each) for each in (fix, other, *opened, "Open other", "Sort by name")]
        assert places == sorted(places)
        await pilot.press(*"checkout")
        await hides(pilot, "Open other")
        await shows(pilot, fix)
        shown = screen_text(app)
        assert shown.index(fix) < shown.index(opened[0])


@pytest.mark.slow
async def test_hostile_text_gives_no_orders_on_the_fleet_in_the_palette_and_in_help(
    tmp_path: Path,
) -> None:
    given = [hostile_snapshot(f"/work/{number}", text) for number, text in enumerate(HOSTILE)]
    calm = [replace(each, key=f"{each.key}c", needs=(), notices=()) for each in given]
    every = " ".join(HOSTILE)
    fleet = StageFleet(*given, *calm, note=every)
    app = dashboard(
        fleet,
        tmp_path,
        paths=tuple(f"/work/{text}" for text in HOSTILE),
        settings={"keys": dict.fromkeys(HOSTILE, "o")},
    )
    async with app.run_test(size=(200, 60), notifications=True) as pilot:
        await pilot.pause()
        assert_calm(app)
        await pilot.hover("FleetTable", offset=(30, 2))
        await pilot.press("slash", "z", "z")
        await pilot.pause()
        assert_calm(app)
        await pilot.press("escape", "y", "v", "A", "A", "a")
        await until(pilot, lambda: app.screen.query("FieldView"))
        assert_calm(app)
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("ctrl+p")
        await opens(pilot, "CommandPalette")
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count > len(HOSTILE))
        assert_calm(app)
        await pilot.press("o", "p", "e", "n")
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count > len(HOSTILE))
        assert_calm(app)
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("question_mark")
        await shows(pilot, "What you can do here now")
        assert_calm(app)
        await pilot.press("end")
        await shows(pilot, "fleet.times")
        assert_calm(app)
        assert app.is_running


def assert_calm(app: AcpApp) -> None:
    shown = screen_text(app)
    for order in "\x1b\x9b\x07\x08\r\x85\u202e\u2066\u2028":
        assert order not in shown


# with real files


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for conversations; their protocol is installed."""
    toy.register(monkeypatch, tmp_path / "site")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def test_events_on_disk_and_new_collaborations_show_by_themselves(toys: Path) -> None:
    folder = toy.make(toys / "colours")
    app = AcpApp([str(toys)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "colours")
        assert "needs you" not in screen_text(app)
        toy.say(folder, "ann", "asked", "red or blue?")
        await shows(pilot, "ann asks: red or blue?")
        await until(pilot, lambda: app.title == "1 needs you · acp")
        toy.make(toys / "lamps")
        await shows(pilot, "lamps")


async def test_a_need_is_settled_by_its_key_and_the_files_say_so(toys: Path) -> None:
    folder = toy.make(toys / "colours")
    toy.say(folder, "ann", "asked", "red or blue?")
    app = AcpApp([str(toys)])
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "→ f: Answer")
        await pilot.press("f")
        await shows(pilot, "What you say to it.")
        await pilot.press(*"blue")
        await shows(pilot, "answered blue")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.title == "acp")
    assert (folder / toy.LOG).read_text().endswith("you answered blue\n")


async def test_a_collaboration_is_started_and_what_will_be_written_shows_before(toys: Path) -> None:
    app = AcpApp([str(toys)])
    async with app.run_test(size=(240, 40)) as pilot:
        await shows(pilot, "No collaboration under")
        await pilot.press("n")
        await until(pilot, lambda: app.screen.query("FieldView"))
        app.screen.query_one("#protocol").value = "toy"  # type: ignore[attr-defined]
        await until(pilot, lambda: app.screen.query("FieldView Input:focus"))
        await pilot.press(*"Which lamp")
        shown = ("+Which lamp", "Starts a conversation in")
        await until(pilot, lambda: all(text in screen_text(app) for text in shown))
        assert not (toys / "which-lamp").exists()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (toys / "which-lamp" / "toy.json").exists())
        await opens(pilot, "FleetScreen")
        await until(
            pilot, lambda: app.screen.query_one("FleetTable").selected == str(toys / "which-lamp")
        )


async def test_one_path_that_is_a_collaboration_opens_on_top_of_the_fleet(toys: Path) -> None:
    folder = toy.make(toys / "colours")
    app = AcpApp([str(folder)])
    async with app.run_test(size=(120, 36)) as pilot:
        await opens(pilot, "CollaborationScreen")
        await pilot.press("escape")
        await opens(pilot, "FleetScreen")
        await shows(pilot, "colours")


async def test_a_picture_is_saved_and_said_wherever_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = tmp_path / "[/x] down"
    downloads.mkdir(parents=True)
    monkeypatch.setattr("textual.app.user_downloads_path", lambda: downloads)
    app = dashboard(StageFleet(snapshot("checkout")), tmp_path)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p", *"screenshot")
        await shows(pilot, "Save this screen as SVG")
        await pilot.press("enter")
        await until(pilot, lambda: list(downloads.glob("acp-*.svg")))
        await shows(pilot, "Saved")
        (picture,) = downloads.glob("acp-*.svg")
        await until(pilot, lambda: "</svg>" in picture.read_text())
        assert "checkout" in picture.read_text()


async def test_a_collaboration_that_went_away_under_its_form_is_said_to_be_gone(toys: Path) -> None:
    folder = toy.make(toys / "colours")
    toy.say(folder, "ann", "asked", "red or blue?")
    app = AcpApp([str(toys)])
    async with app.run_test(size=(120, 40)) as pilot:
        await shows(pilot, "→ f: Answer")
        await pilot.press("f")
        await shows(pilot, "What you say to it.")
        shutil.rmtree(folder)
        await until(pilot, lambda: not app.fleet.snapshots)
        await pilot.press(*"blue")
        await shows(pilot, "The collaboration no longer exists")


def test_nothing_heavy_is_imported_before_the_first_picture() -> None:
    """The rest is imported when it is used: told by what was imported, not by seconds."""
    source = """
import sys
import acp_tui.app
from textual.app import App

async def shown(self):
    heavy = {"pydantic", "watchfiles", "msgspec", "markdown_it", "pygments", "acp_core.fleet"}
    print(sorted(heavy & set(sys.modules)))
    self.exit()

acp_tui.app.AcpApp._follow = lambda self: self.run_worker(shown(self))
acp_tui.app.AcpApp().run(headless=True)
"""
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", source]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert ran.stdout.strip() == "[]"


def test_settings_that_cannot_be_read_end_it_before_anything_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path))
    (tmp_path / "config.toml").write_text("theme = 3\n")
    with pytest.raises(SettingsError, match="theme"):
        run(["."])
