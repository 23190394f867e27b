"""The post-mortem reader finds, among many finished folders, the one where something was said."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from acp_tui.app import AcpApp
from tests.support import toy
from tests.tui.stage import is_open, opens, screen_text, shows, until
from tests.tui.support import HOSTILE


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Thirty finished conversations; one of them settled what lamps cost."""
    toy.register(monkeypatch, tmp_path / "site", alone=True)
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    for number in range(30):
        folder = toy.make(tmp_path / "work" / f"talk-{number:02}", f"Question {number}")
        (folder / toy.NOTES).write_text(
            f"# Question {number}\n\nNothing was decided about lamps.\n"
        )
        toy.say(folder, "ann", "done", "over")
    said = tmp_path / "work" / "talk-17" / toy.NOTES
    said.write_text("# Question 17\n\n## Decisions\n\n- Lamps cost [b]eleven[/b] crowns.\n")
    return tmp_path / "work"


@pytest.mark.slow
async def test_enter_in_the_filter_finds_it_and_opens_it_at_the_line(archive: Path) -> None:
    app = AcpApp([str(archive)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "30 done")
        await pilot.press("slash", *"lamps ELEVEN", "enter")
        await shows(pilot, "1 hit in the documents of 30 collaborations")
        shown = screen_text(app)
        assert "No collaboration matches “lamps ELEVEN”." in shown
        assert "talk-17  notes.md:5" in shown
        assert "- Lamps cost [b]eleven[/b] crowns." in shown
        foot = shown.splitlines()[-1]
        assert "enter Open" in foot and "esc Clear" in foot
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
        assert is_open(app, "CollaborationScreen")
        assert app.screen.key == str(archive / "talk-17")
        await shows(pilot, "Lamps cost")
        await pilot.press("escape")
        await opens(pilot, "FleetScreen")
        await pilot.press("escape")
        await until(pilot, lambda: not app.screen.query("Hits"))
        await until(pilot, lambda: len(app.screen.query_one("FleetTable").entries) == 30)


async def test_the_mouse_opens_a_hit(archive: Path) -> None:
    app = AcpApp([str(archive)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "30 done")
        await pilot.press("slash", *"eleven", "enter")
        await shows(pilot, "talk-17  notes.md:5")
        await pilot.click("Hits OptionList", offset=(5, 1))
        await opens(pilot, "CollaborationScreen")


async def test_other_words_take_away_what_the_ones_before_found(archive: Path) -> None:
    app = AcpApp([str(archive)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "30 done")
        await pilot.press("slash", *"lamps", "enter")
        await shows(pilot, "30 hits in the documents")
        app.screen.query_one("#filter", Input).focus()
        await pilot.press("z")
        await until(pilot, lambda: not app.screen.query("Hits"))
        await pilot.press("enter")
        await shows(pilot, "0 hits in the documents of 30")
        await until(pilot, lambda: app.screen.query_one("#filter", Input).has_focus)


async def test_down_goes_from_the_filter_to_what_it_left(archive: Path) -> None:
    app = AcpApp([str(archive)])
    async with app.run_test(size=(120, 36)) as pilot:
        await shows(pilot, "30 done")
        await pilot.press("slash", *"talk-2", "down", "down")
        await pilot.pause()
        assert app.screen.query_one("FleetTable").has_focus
        assert app.screen.query_one("FleetTable").selected == str(archive / "talk-21")


@pytest.mark.slow
async def test_hostile_words_in_documents_are_only_words(archive: Path) -> None:
    for number, text in enumerate(HOSTILE):
        notes = archive / f"talk-{number:02}" / toy.NOTES
        notes.write_bytes(f"# x\n\nneedle {text}\n".encode("utf-8", "surrogatepass"))
    app = AcpApp([str(archive)])
    async with app.run_test(size=(120, 60)) as pilot:
        await shows(pilot, "30 done")
        await pilot.press("slash", *"needle", "enter")
        await until(pilot, lambda: f"{len(HOSTILE)} hits in the documents" in screen_text(app))
        for _ in HOSTILE:
            shown = screen_text(app)
            assert "notes.md:3" in shown
            assert not any(order in shown for order in "\x1b\x9b\x07\x08\r\x85\u202e\u2066\u2028")
            await pilot.press("down")
        await pilot.press("enter")
        await opens(pilot, "CollaborationScreen")
