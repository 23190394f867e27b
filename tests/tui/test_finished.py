"""A finished collaboration opens on what came out, and a report of it is saved from the dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Static

from acp_core.person.settings import Settings
from acp_tui.app import AcpApp
from tests.support import finished
from tests.tui.stage import opens, screen_text, shows, until


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
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, words)
        await pilot.press("ctrl+p", *"save a report")
        await shows(pilot, "Save a report")
        await pilot.press("enter")
        await opens(pilot, "ActionScreen")
        await shows(pilot, "Saves the report to")
        assert "-o" in screen_text(app) and "acp report" in screen_text(app)
        assert not list(target.iterdir()), "a preview writes nothing"
        await pilot.press("ctrl+s")
        await opens(pilot, "CollaborationScreen")
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
        await opens(pilot, "CollaborationScreen")
        await shows(pilot, "Page through orders by")
        await pilot.press("x")
        await shows(pilot, "Save a report…")
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "md"})
        await shows(pilot, "Saves the report")
        shown = str(app.screen.query_one("#what", Static).render())
        assert f"{tmp_path}/page-cursors-report.md." in shown
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "html", "file": str(target)})
        await shows(pilot, "end it in .html")
        await pilot.press("escape")
        app.perform(str(made), "report", given={"format": "md", "file": str(target)})
        await shows(pilot, "Saves the report")
        await pilot.press("ctrl+s")
        await until(pilot, target.exists)
    assert target.read_text().startswith("# page-cursors\n")
