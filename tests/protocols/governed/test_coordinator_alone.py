"""Three repositories go from nothing to the end of their initiative by the dashboard's keys alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, OptionList, Static, TextArea

from acp_tui.actions.forms import FieldView
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen, ActionsScreen
from acp_tui.screens.fleet import FleetScreen
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.multi import NAMES, ledger, state
from tests.protocols.governed.test_engine_dashboard import dashboard, opened, ready, until
from tests.tui.screen import screen_lines


class Person:
    """Somebody at the dashboard, who has nothing but keys."""

    def __init__(self, pilot: Pilot[Any], app: AcpApp) -> None:
        self.pilot, self.app = pilot, app

    async def until(self, holds: Callable[[], object], what: str) -> None:
        await until(self.pilot, holds, what)

    async def select(self, folder: Path) -> None:
        """Go down the list of all collaborations to this one."""
        await self.until(lambda: str(folder) in self.app.fleet.snapshots, f"finding {folder.name}")
        await self.pilot.press("home")
        for _ in range(20):
            screen = self.app.screen
            assert isinstance(screen, FleetScreen)
            selected = screen.in_hand()
            if selected is not None and selected.key == str(folder):
                return
            await self.pilot.press("down")
            await self.pilot.pause()
        raise AssertionError(f"{folder.name} is not in the list")

    async def choose(self, folder: Path, label: str) -> None:
        """Open the form of one of the actions that are listed for a collaboration."""
        for _ in range(100):
            await self.select(folder)
            await self.pilot.press("x")
            await self.until(lambda: isinstance(self.app.screen, ActionsScreen), "the actions")
            listed = self.app.screen.query_one(OptionList)
            await self.until(lambda listed=listed: listed.option_count, "what can be done")
            labels = [str(option.prompt).split("\n")[0] for option in listed.options]
            place = next((n for n, told in enumerate(labels) if told.startswith(label)), None)
            if place is not None:
                await self.pilot.press(*["down"] * place, "enter")
                await self.until(lambda: ready(self.app), f"the form of “{label}”")
                return
            await self.pilot.press("escape")
            await self.pilot.pause(0.02)
        raise AssertionError(f"“{label}” is not offered for {folder.name}: {labels}")

    async def confirm(self) -> str:
        """Do what the form says; returns what stands there where it does not close by itself."""
        await self.pilot.press("ctrl+s")
        await self.until(self._is_over, "doing it")
        said = "\n".join(screen_lines(self.app))
        if isinstance(self.app.screen, ActionScreen):
            await self.pilot.press("escape")
        await self.until(lambda: isinstance(self.app.screen, FleetScreen), "closing")
        return said

    def _is_over(self) -> bool:
        screen = self.app.screen
        if not isinstance(screen, ActionScreen):
            return True
        return "✗ refused" in str(screen.query_one("#why", Static).render())

    async def do(self, folder: Path, label: str) -> str:
        await self.choose(folder, label)
        return await self.confirm()

    async def work(self, root: Path) -> None:
        """Each workstream's next turn is taken by its agent and accepted."""
        for name in NAMES:
            await self.do(root / name, "Assign the next turn")
            await self.do(root / name, "Accept the turn")


def failures(root: Path) -> int:
    """How often a resync failed."""
    return sum(line["type"] == "resync_failed" for line in ledger(root))


def repositories(root: Path) -> Path:
    """Three repositories without any run, and the configuration of an initiative."""
    for name in NAMES:
        playing.repository(root / name)
        playing.git(root / name, "switch", "-q", "-c", "lamp")
    making.write(root / "agentxchain-multi.json", multi.configuration())
    return root


@pytest.mark.slow
async def test_an_initiative_from_the_dashboard_alone(tmp_path: Path) -> None:
    root = repositories(tmp_path / "house")
    agents = playing.agents(tmp_path / "bin")
    app = dashboard(tmp_path, root)
    async with app.run_test(size=(120, 36)) as pilot:
        await opened(pilot, app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the list")
        you = Person(pilot, app)

        await you.select(root)
        await pilot.press("f")  # what it asks for first
        await until(pilot, lambda: ready(app), "the form of its start")
        [asked] = [v for v in app.screen.query(FieldView) if v.field.name == "agents"]
        asked.query_one(TextArea).text = "\n".join(f"{k}={v}" for k, v in agents.items())
        await pilot.pause()
        await until(pilot, lambda: ready(app), "the preview")
        await you.confirm()
        assert {state(root, name)["phase"] for name in NAMES} == {"planning"}
        described = json.loads((root / "web/agentxchain.json").read_text())
        assert {each["type"] for each in described["runtimes"].values()} == {"local_cli"}

        await you.work(root)
        assert state(root)["barriers"]["plan-sync"]["status"] == "reached"
        await you.do(root, "Approve plan-sync")
        assert {state(root, name)["phase"] for name in NAMES} == {"implementation"}

        await you.work(root)
        for name in NAMES:  # no barrier ends this phase: each run has its own gate
            await you.do(root / name, "Approve implementation_complete")
        assert {state(root, name)["phase"] for name in NAMES} == {"verification"}

        await you.work(root)
        assert state(root)["barriers"]["ship-sync"]["status"] == "reached"
        place = root / "web/.agentxchain/state.json"
        good = place.read_bytes()
        place.write_bytes(good[: len(good) // 2])
        await you.do(root, "Approve ship-sync")
        assert state(root)["status"] == "blocked:resync_failed"
        assert {state(root, name)["status"] for name in ("auth", "gateway")} == {"blocked"}
        await you.choose(root, "Resync")
        assert "web: its state cannot be read" in " ".join("\n".join(screen_lines(app)).split())
        await pilot.press("ctrl+s")  # it is refused, and shown anew: that was noted in the files
        await until(pilot, lambda: failures(root) == 2, "that it fails again")
        await until(pilot, lambda: not app.screen.query_one("#do", Button).loading, "its end")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "closing")
        await you.do(root, "Repair web")
        assert state(root, "web")["blocked_on"] == "barrier:ship-sync"
        assert state(root)["status"] == "blocked:resync_failed", "mending alone crosses nothing"
        await you.do(root, "Resync")
        await until(
            pilot,
            lambda: app.fleet.snapshots[str(root)].headline == "completed.",
            "seeing that it is over",
        )
    assert state(root)["status"] == "completed"
    assert {state(root, name)["status"] for name in NAMES} == {"completed"}
    assert {each["status"] for each in state(root)["barriers"].values()} == {"approved"}
    kinds = [line["type"] for line in ledger(root)]
    assert kinds.count("barrier_approved") == 2
    failed = [line for line in ledger(root) if line["type"] == "resync_failed"]
    assert {line["barrier"] for line in failed} == {"ship-sync"}
    assert {"resync_failed", "workstream_failed", "workstream_mended"} <= set(kinds)
    assert kinds[-1] == "super_run_completed"
