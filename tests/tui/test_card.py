"""Decisions on cards: every fact that the choice depends on is there, and one digit decides."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from textual import events

from acp_core.model.card import CardVerdict
from acp_tui.screens.card import CardScreen, verdict_content
from tests.golden.states import all_states
from tests.protocols.governed import states
from tests.tui.cards import dashboard, drawn_card, open_card
from tests.tui.screen import seen
from tests.tui.stage import closes, opens, shows, until

ROADMAP = ".planning/ROADMAP.md"


def status(root: Path) -> tuple[object, object]:
    held = states.state(root)
    return held["status"], held["phase"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_a_staged_turn_is_judged_by_what_it_says_and_accepted_with_two_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "pm finished its turn and asks to enter implementation",
            "“Planned the lamp.”",
            "! OBJ-001  high  No switch.",
            "DEC-001  One lamp.  because Hall.",
            f"✓ {ROADMAP}",
            "1  Accept",
            "2  Reject, with a reason",
        ):
            assert fact in shown
        await pilot.press("1")
        await until(pilot, lambda: status(root) == ("paused", "planning"))
        await closes(pilot, "CardScreen")


@pytest.mark.slow
async def test_the_terminal_takes_any_size_while_a_card_is_open(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        screen = await open_card(pilot)
        for size in ((120, 36), (80, 24), (200, 50), (80, 24), (20, 5), (101, 9), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.1)
        assert pilot.app.screen is screen and "1  Accept" in seen(pilot)
        await pilot.press("1")
        await until(pilot, lambda: status(root) == ("paused", "planning"))


async def test_how_long_it_waits_stands_on_one_row_of_a_narrow_card(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        await open_card(pilot)
        assert re.search(r"waiting for you \d+\w+ *│\n", seen(pilot))


async def test_a_long_claim_scrolls_with_the_facts_and_all_verdicts_stay_in_sight(
    tmp_path: Path,
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    (result,) = root.glob(".agentxchain/staging/*/turn-result.json")
    words = " ".join(f"Word{number}" for number in range(200))  # 1,800 characters: 24 rows
    result.write_text(json.dumps({**json.loads(result.read_text()), "summary": words}))
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "pm finished its turn" in shown and "Word0 " in shown and "Word199" not in shown
        assert "1  Accept" in shown and "2  Reject, with a reason" in shown
        read = set(shown.split())
        while "OBJ-001" not in seen(pilot):
            await pilot.press("pagedown")
            read |= set(seen(pilot).split())
        assert read >= {f"Word{number}" for number in range(200)}
        assert "1  Accept" in seen(pilot)
        await pilot.resize_terminal(200, 50)
        await shows(pilot, "Word0 ", "Word199")


def test_verdicts_that_do_not_fit_in_a_row_stand_in_as_many_columns_as_fit() -> None:
    labels = (
        "Approve",
        "Send all back, with a reason",
        *(f"Send {n} back" for n in ("a", "b", "c")),
    )
    verdicts = [CardVerdict(label, "act") for label in labels]

    def rows(room: int) -> list[str]:
        return [line.rstrip() for line in verdict_content(verdicts, 0, room).plain.splitlines()]

    assert len(rows(118)) == 1
    assert rows(76) == [
        " 1  Approve                         2  Send all back, with a reason",
        " 3  Send a back                     4  Send b back",
        " 5  Send c back",
    ]
    assert [row[1:2] for row in rows(40)] == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
async def test_a_file_that_was_not_declared_is_shown_with_what_changed_in_it(
    tmp_path: Path,
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    with (root / ROADMAP).open("a") as file:
        file.write("a second lamp\n[red]and no markup[/red]\x1b[31m\n")
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        assert f"{ROADMAP}  +2  not declared" in seen(pilot)
        assert "Accept without some files" in seen(pilot)
        await pilot.press("end", "enter")
        await opens(pilot, "ReadingScreen")
        await shows(pilot, "+a second lamp")
        assert "+[red]and no markup[/red]␛[31m" in seen(pilot)
        await pilot.press("escape")
        assert pilot.app.screen is screen


@pytest.mark.slow
async def test_a_gate_is_rejected_with_the_reason_that_the_next_agent_reads(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    (root / ".planning/SYSTEM_SPEC.md").write_text("## Purpose\n\nLight.\n")
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        shown = seen(pilot)
        assert "pm asks to enter implementation" in shown
        assert "enter: open" in shown  # the row says which document
        assert "✗ .planning/SYSTEM_SPEC.md" in shown and "OBJ-001  high  No switch." in shown
        await pilot.press("2")
        await shows(pilot, "What is missing")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "✗" in str(screen.query_one("#card-why").render()))
        await pilot.press(*"No acceptance tests", "ctrl+s")
        await closes(pilot, "CardScreen")
    ledger = (root / ".agentxchain/decision-ledger.jsonl").read_text()
    assert "No acceptance tests" in ledger and status(root) == ("active", "planning")


@pytest.mark.slow
async def test_an_objection_is_resolved_with_the_reason_before_its_gate_is_decided(
    tmp_path: Path,
) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    ledger = root / ".agentxchain/decision-ledger.jsonl"
    async with dashboard(root, tmp_path) as pilot:
        card = await open_card(pilot)
        assert "! OBJ-001  high  No switch. (pm, open)" in seen(pilot)
        assert "3  Resolve OBJ-001" in seen(pilot)
        await pilot.press("3")
        await until(pilot, lambda: card.query("FieldView"))
        await pilot.press("ctrl+s")  # without a word on how
        await shows(pilot, "“Comment” is missing")
        assert "resolved_by_human" not in ledger.read_text()
        await pilot.press(*"A switch is in the roadmap", "ctrl+s")
        await shows(pilot, "OBJ-001 is resolved by human.")
        await shows(pilot, "f: Approve planning_signoff")
        await pilot.press("f")
        screen = await drawn_card(pilot)
        assert not any("OBJ-001" in text for each in screen.facts.items for text, _ in each.pieces)
        assert "3 " not in str(screen.query_one("#card-verdicts").render())
    assert "A switch is in the roadmap" in ledger.read_text()
    assert status(root) == ("paused", "planning")


async def test_a_verdict_on_what_has_changed_since_is_refused_and_the_matter_shown_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CardScreen, "_changed", lambda self, batch: None)  # the key comes first
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        (staged,) = root.glob(".agentxchain/staging/*/turn-result.json")
        result = json.loads(staged.read_text())
        result["objections"][0]["statement"] = "No roof either."
        staged.write_text(json.dumps(result))
        await pilot.press("1")
        await shows(pilot, "No roof either.")
        assert status(root) == ("active", "planning")
        assert isinstance(pilot.app.screen, CardScreen)


@pytest.mark.slow
async def test_keys_that_were_pressed_before_the_card_was_drawn_decide_nothing(
    tmp_path: Path,
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path) as pilot:
        for key in ("f", *"1111111111"):
            pilot.app.post_message(events.Key(key, key))
        await shows(pilot, "1  Accept")
        early = events.Key("1", "1")
        early.time -= 3_600
        pilot.app.post_message(early)
        for _ in range(20):
            await pilot.pause(0.02)
        assert status(root) == ("active", "planning")
        assert not (root / ".agentxchain/history.jsonl").read_text().count("turn_id")


@pytest.mark.slow
async def test_the_writes_and_the_whole_form_are_one_key_away(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        await pilot.press("equals_sign")
        await until(pilot, lambda: "append" in seen(pilot) and "OBJ-001  high" not in seen(pilot))
        await pilot.press("equals_sign")
        await shows(pilot, "OBJ-001  high")
        await pilot.press("e")
        await opens(pilot, "ActionScreen")
        await shows(pilot, "Not the agent's")
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("escape")
        await closes(pilot, "CardScreen")


async def test_a_question_is_answered(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "asks")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        assert "“Which lamp?”" in seen(pilot)
        await pilot.press("1")
        await shows(pilot, "How it was resolved")
        await pilot.press(*"The green one", "ctrl+s")
        await until(pilot, lambda: status(root)[0] == "active")
    assert "The green one" in (root / ".agentxchain/decision-ledger.jsonl").read_text()


async def test_a_run_that_somebody_stopped_is_unblocked_with_two_keys(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "escalated")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "The run is blocked: a human stopped the run" in shown
        assert "Two roles contradict each other" in shown and "1  Unblock" in shown
        await pilot.press("1")
        await until(pilot, lambda: status(root)[0] == "active")


async def test_proposed_corrections_of_a_result_are_applied_with_two_keys(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    root = all_states()["governed/run-verification-failed"].build(tmp_path / "work")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = " ".join(seen(pilot).split())
        assert "✗ verification.status is" in shown and "proposed correction of" in shown
        assert "1 Apply the corrections" in shown and "2 Reject, with a reason" in shown
        assert "Accept" not in shown.split("1 Apply")[1]
        await pilot.press("1")
        await opens(pilot, "CollaborationScreen")
        app: Any = pilot.app
        told = str(app.outcomes.shown.content)
        assert told.startswith("✓ Corrected: verification.status.") and "Not fixed" not in told
        app.outcomes.end()
        await shows(pilot, "f: Accept the turn of dev")  # the same result can be accepted now
        await shows(pilot, "! The result of dev was corrected and waits to be accepted")


@pytest.mark.slow
async def test_a_card_that_takes_long_says_so_and_can_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = states.run_in(tmp_path / "lamp", "staged")
    async with dashboard(root, tmp_path) as pilot:
        held = threading.Event()
        monkeypatch.setattr(CardScreen, "_find", lambda screen, opened: held.wait(30) and None)
        try:
            await pilot.press("f")
            await shows(pilot, "Loading…")
            await pilot.press("escape")
            await closes(pilot, "CardScreen")
        finally:
            held.set()


async def test_a_card_without_facts_offers_nothing_to_open(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    root = all_states()["cycle/decision_open"].build(tmp_path / "work")
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        await open_card(pilot)
        assert "2  Semicolon" in seen(pilot) and "enter Open" not in seen(pilot)


@pytest.mark.slow
async def test_all_facts_of_an_initiatives_gate_are_in_sight_on_a_small_terminal(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    root = all_states()["governed/initiative-gate-open"].build(tmp_path / "work")
    async with dashboard(root, tmp_path, (80, 24)) as pilot:
        card = await open_card(pilot)
        assert "Both workstreams ask to leave planning" in seen(pilot)
        assert seen(pilot).count("ROADMAP.md") == 2, "each file stands once, at its gate"
        assert card.facts.max_scroll_y == 0 and "4  Send web back" in seen(pilot)
