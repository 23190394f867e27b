"""An agent asks for a permission: seen in the fleet and the inbox, answered on a card with one key."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from acp_core.agents.live import answers
from acp_core.model.clock import utc_now
from acp_core.person.permissions import Verdict
from acp_tui.app import AcpApp
from tests.agents.live.asking import asking
from tests.loops.support import make
from tests.tui.cards import dashboard, open_card
from tests.tui.screen import seen
from tests.tui.stage import closes, hides, opens, shows

SIZES = [(80, 24), (120, 36)]
HOSTILE = "echo '[red]x[/red]\x1b[31m'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    return make(tmp_path / "checkout")


async def answered(pilot: Pilot[None]) -> None:
    await closes(pilot, "CardScreen")
    await hides(pilot, "asks to")


@pytest.mark.parametrize("size", SIZES)
async def test_a_command_is_read_and_allowed_with_two_keys(
    folder: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    with asking(folder, "touch made.txt", program="codex") as program:
        async with dashboard(folder, tmp_path, size) as pilot:
            assert "reviewer's agent asks to run: touch made.txt" in seen(pilot)
            await open_card(pilot)
            shown = seen(pilot)
            for fact in ("Command", "touch made.txt", "/project", "codex ends its turn", "Policy"):
                assert fact in shown, fact
            assert "1  Allow once" in shown and "2  Reject" in shown
            await pilot.press("1")
            await answered(pilot)
        assert program.end().startswith("allow by ")
    assert (folder / "made.txt").exists()


@pytest.mark.slow
async def test_a_change_is_opened_and_rejected_with_a_message(folder: Path, tmp_path: Path) -> None:
    with asking(folder, "edit /project/[b]a[/b].txt") as program:
        async with dashboard(folder, tmp_path) as pilot:
            await open_card(pilot)
            assert "/project/[b]a[/b].txt  +1 −1" in seen(pilot)
            assert "Paths" not in seen(pilot)  # the change says which
            await pilot.press("enter")
            await opens(pilot, "ReadingScreen")
            await shows(pilot, "+three", "-two")
            await pilot.press("escape", "3")
            await shows(pilot, "Message")
            await pilot.press(*"Keep two", "ctrl+s")
            await answered(pilot)
        assert program.end().endswith(": Keep two")


async def test_a_question_is_answered_with_the_key_of_its_option(
    folder: Path, tmp_path: Path
) -> None:
    with asking(folder, "question", program="qwen") as program:
        async with dashboard(folder, tmp_path, (80, 24)) as pilot:
            assert "reviewer's agent asks you: Which one?" in seen(pilot)
            screen = await open_card(pilot)
            shown = seen(pilot)
            for fact in ("1  Answer: A", "2  Answer: B", "Answer in your own words", "second"):
                assert fact in shown, fact
            facts = [text for each in screen.facts.items for text, _ in each.pieces]
            assert not any("Which one?" in text for text in facts)  # its headline says so
            assert "with your message" not in shown  # the answer goes to the agent itself
            await pilot.press("2")
            await answered(pilot)
        assert program.end().endswith(": B")


async def test_a_hostile_question_and_its_options_are_text(folder: Path, tmp_path: Path) -> None:
    with asking(folder, f"question {HOSTILE}", program="qwen") as program:
        async with dashboard(folder, tmp_path) as pilot:
            await open_card(pilot)
            shown = seen(pilot)
            assert shown.count("[red]x[/red]␛[31m") >= 2  # the question, and its option
            assert not set("\x1b\u202e") & set(shown)
            await pilot.press("2")
            await answered(pilot)
        assert "[red]x[/red]" in program.end()


async def test_hostile_text_is_shown_as_text_wherever_it_can_be_answered(
    folder: Path, tmp_path: Path
) -> None:
    with asking(folder, HOSTILE, "unattended") as program:
        async with dashboard(folder, tmp_path) as pilot:
            assert "echo '[red]x[/red]␛[31m'" in seen(pilot)
            await pilot.press("exclamation_mark")
            await opens(pilot, "InboxScreen")
            await shows(pilot, "[red]x[/red]␛[31m")
            await pilot.press("f")
            await opens(pilot, "CardScreen")
            await shows(pilot, "1  Allow once")
            assert seen(pilot).count("[red]x[/red]␛[31m") >= 2  # the title, and the command
            await pilot.pause(0.3)
            await pilot.press("2")
            await closes(pilot, "CardScreen")
        assert program.end().startswith("reject by ")


@pytest.mark.slow
async def test_the_first_request_ever_appears_on_a_dashboard_that_is_open(
    folder: Path, tmp_path: Path
) -> None:
    async with dashboard(folder, tmp_path, needs=False) as pilot:
        await shows(pilot, "drafting")
        assert not (tmp_path / "state" / "permissions").exists()
        with asking(folder, "touch made.txt"):
            await shows(pilot, "asks to run: touch made.txt")
        await hides(pilot, "asks to run")  # its program was killed


async def test_a_request_that_goes_while_its_card_is_open_is_decided_no_more(
    folder: Path, tmp_path: Path
) -> None:
    with asking(folder, "touch made.txt") as program:
        async with dashboard(folder, tmp_path) as pilot:
            await open_card(pilot)
            program.process.kill()
            await shows(pilot, "This is no longer open")
            await pilot.press("1", "escape")
    assert not (folder / "made.txt").exists()


async def test_a_request_that_was_answered_elsewhere_meanwhile_is_no_empty_form(
    folder: Path, tmp_path: Path
) -> None:
    with asking(folder, "touch made.txt") as program:
        async with dashboard(folder, tmp_path) as pilot:
            app = pilot.app
            assert isinstance(app, AcpApp)
            await pilot.press("exclamation_mark")
            await opens(pilot, "InboxScreen")
            (need,) = (need for need in app.fleet.snapshots[str(folder)].needs if need.given)
            answers.answer(program.opened, Verdict.REJECT, "ben", utc_now())
            program.end()
            # The screen may not show it yet: what it still shows is what the key acts on.
            app.perform(str(folder), str(need.remedy), given=dict(need.given))
            await shows(pilot, "no longer open: it was answered")
            assert "Answer a permission request" in seen(pilot) and "Writes" not in seen(pilot)
            await pilot.press("1", "escape")
            await opens(pilot, "InboxScreen")
