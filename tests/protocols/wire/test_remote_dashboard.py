"""An agent elsewhere, opened and steered by the dashboard's forms; and where agents are found."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from textual.pilot import Pilot
from textual.widgets import Select

from acp_core.cli.start import chosen_paths, unusable
from acp_core.fleet import Fleet
from acp_core.model.errors import CommandError
from acp_core.person.settings import Settings
from acp_core.protocols import locations
from acp_core.protocols.locations import RUNNING
from acp_core.protocols.wire.network.agent_directory import folder_of
from acp_tui.app import AcpApp
from tests.protocols.wire.support import OWNER, Process, panel, post
from tests.protocols.wire.test_remote import OPTIONS, free
from tests.tui.cards import open_card
from tests.tui.stage import is_open, opens, screen_text, shows, until


async def fill(pilot: Pilot[Any], choice: str = "", **values: object) -> None:
    """Fill in the form that is shown, do it, and wait until it is gone.

    Args:
        choice: what the first field's choice is called.
    """
    app = pilot.app
    await until(
        pilot,
        lambda: is_open(app, "ActionScreen") and app.screen.form and app.screen.form.views,
    )
    screen = app.screen
    assert screen.form is not None
    first = screen.form.views[0].control
    if choice:
        assert isinstance(first, Select)
        assert choice in [str(prompt) for prompt, _ in first._options]
    screen.form.fill(values)
    await pilot.pause()
    await pilot.press("ctrl+s")
    await until(pilot, lambda: app.screen is not screen or screen.has_class("-over"))
    if app.screen is screen:
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is not screen)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=["120x36", "80x24"])
async def test_an_agent_elsewhere_is_steered_by_forms(size: tuple[int, int]) -> None:
    with Process("A", *OPTIONS) as a, Process("B", *OPTIONS) as b:
        key = locations.resolve(a.url)
        app = AcpApp([key])

        def tasks() -> list[tuple[str, ...]]:
            return panel(app.fleet.snapshots[key], "tasks")

        async with app.run_test(size=size) as pilot:
            await opens(pilot, "CollaborationScreen")
            await shows(pilot, "0 of 0 peers connected")
            app.perform(key, "connect")
            await fill(pilot, link=b.link)
            await shows(pilot, "1 of 1 peer connected")
            app.perform(key, "send")
            file = "http://192.0.2.7/my%20recipe.pdf?x=1"
            given = {"text": "Boil", "file": file, "data": '{"eggs": 2}', "new_task": True}
            await fill(pilot, "B (peer_001)", peer="peer_001", **given)
            await until(pilot, lambda: tasks() and "Boil" in " ".join(tasks()[0]))
            task = tasks()[0][0]
            await until(pilot, lambda: _there(b, task))
            parts = (await asyncio.to_thread(_task, b, task))["input"]["parts"]
            name = {"media_type": "application/pdf", "filename": "my recipe.pdf"}
            assert parts[1:] == [
                {"type": "file", "url": file, **name}, {"type": "data", "content": {"eggs": 2}},
            ]  # fmt: skip
            question = {"text": "How long?", "task_id": task}
            await asyncio.to_thread(post, b, "/message:send", question)
            asked = {"status": "input_required"}
            await asyncio.to_thread(post, b, f"/tasks/{task}:update", asked)
            await shows(pilot, "B needs input")

            def needs() -> str:
                return " ".join(need.sentence for need in app.fleet.snapshots[key].needs)

            await until(pilot, lambda: "How long? (Boil" in needs())
            await open_card(pilot)
            assert "“How long?”" in screen_text(app)
            await pilot.press("1")
            await shows(pilot, "Answer (required)")
            await pilot.press(*"ten minutes", "ctrl+s")
            await until(pilot, lambda: tasks()[0][1] == "working")
            app.perform(key, "cancel")
            await fill(pilot, task=task)
            await until(pilot, lambda: tasks()[0][1] == "canceled")
            await until(pilot, lambda: _task(b, task)["status"] == "canceled")
            app.perform(key, "forget")
            await fill(pilot, "B (peer_001)", peer="peer_001")
            await until(pilot, lambda: not panel(app.fleet.snapshots[key], "peers"))


def _task(agent: Process, task: str) -> Any:
    return httpx.get(f"{agent.url}/tasks/{task}", trust_env=False, auth=OWNER).json()


def _there(agent: Process, task: str) -> bool:
    return httpx.get(f"{agent.url}/tasks/{task}", trust_env=False, auth=OWNER).is_success


def test_agents_that_run_here_belong_to_the_fleet_and_are_seen_to_end() -> None:
    with Process("A", *OPTIONS) as a:
        key = str(folder_of("A"))

        async def follow() -> None:
            fleet = Fleet([RUNNING])
            ended = False
            try:
                async with asyncio.timeout(90):
                    async for _ in fleet.changes():
                        seen = fleet.snapshots.get(key)
                        if seen and seen.phase == "running" and not ended:
                            ended = True
                            await asyncio.to_thread(a.stop)
                        if seen and seen.phase == "stopped":
                            break
            finally:
                await fleet.close()

        asyncio.run(follow())
    assert Fleet([RUNNING]).read() == ()


def test_agents_of_the_settings_belong_to_the_fleet() -> None:
    nobody = f"http://127.0.0.1:{free()}"
    agents: dict[str, Any] = {"one": nobody, "two": {"link": "acp://h:7801/tok_1", "token": "t"}}
    chosen = chosen_paths([], Settings(agents=agents))
    assert chosen == [".", nobody, "acp://h:7801", RUNNING]
    assert chosen_paths(["x"], Settings(agents=agents)) == ["x"]
    with pytest.raises(CommandError, match=r"agents\.one"):
        chosen_paths([], Settings(agents={"one": "acp://"}))
    assert unusable("acp://h") == ""
    assert "expected acp://" in unusable("http://")
