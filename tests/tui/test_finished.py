"""A finished collaboration opens on what came out, and a report of it is saved from the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from acp_tui.screens.action import ActionScreen
from acp_tui.screens.collaboration import CollaborationScreen
from tests.support import finished
from tests.tui.stage import screen_text, until


@pytest.mark.slow
@pytest.mark.parametrize("kind", finished.KINDS)
async def test_a_report_is_saved_from_the_command_palette(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    make, _, words = finished.KINDS[kind]
    made, target = make(tmp_path / "work"), tmp_path / "out"
    target.mkdir()
    monkeypatch.chdir(target)
    app = AcpApp([str(made)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
        await until(pilot, lambda: words in screen_text(app))
        await pilot.press("ctrl+p", *"save a report")
        await until(pilot, lambda: "Save a report" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ActionScreen))
        await until(pilot, lambda: "Saves the report to" in screen_text(app))
        assert "-o" in screen_text(app) and "acp report" in screen_text(app)
        assert not list(target.iterdir()), "a preview writes nothing"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
    [file] = target.iterdir()
    text = file.read_text()
    assert file.name.endswith("-report.html") and "<h2>Outcome</h2>" in text
    assert text.index("<h2>Outcome</h2>") < text.index("<h2>Figures</h2>")


@pytest.mark.slow
async def test_a_report_is_saved_in_the_format_and_the_file_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, target = finished.folder(tmp_path), tmp_path / "what.md"
    monkeypatch.chdir(made)  # a report is never put among the files of the collaboration unasked
    app = AcpApp([str(made)], settings=Settings(utc=True))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, CollaborationScreen))
        await until(pilot, lambda: "Page through orders by" in screen_text(app))
        await pilot.press("x")
        await until(pilot, lambda: "Save a report…" in screen_text(app))
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "md"})
        await until(pilot, lambda: "Saves the report" in screen_text(app))
        shown = str(app.screen.query_one("#what", Static).render())
        assert f"{tmp_path}/page-cursors-report.md." in shown
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "html", "file": str(target)})
        await until(pilot, lambda: "end it in .html" in screen_text(app))
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "md", "file": str(target)})
        await until(pilot, lambda: "Saves the report" in screen_text(app))
        await pilot.press("ctrl+s")
        await until(pilot, target.exists)
    assert target.read_text().startswith("# page-cursors\n")
