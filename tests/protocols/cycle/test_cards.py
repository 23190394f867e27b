"""Decisions of a cycle on cards: every fact that the choice depends on is there, and keys decide."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.model import Card
from acp_core.protocols.cycle.collaboration import Cycles
from tests.cli.support import Acp
from tests.protocols.cycle.making import (
    NOW,
    PROGRESS,
    STATE,
    agent,
    agents,
    blocker,
    coordination,
    cycle,
    decision,
    task,
    write,
)
from tests.tui.cards import dashboard, drawn_card, open_card
from tests.tui.screen import seen
from tests.tui.stage import closes, opens, shows, until

FAILING = {
    "total_tests": 20,
    "pass_rate": 90,
    "coverage": 81,
    "failed_tests": ["test_large_export", "test_quotes"],
}
OPTIONS = ["Stream the rows", "Refuse the export"]
WAITS = agent("waiting", run="001-cd", last_message="Need DEC-001")
DONE = agents(cd=agent(run="001-cd"), vas=agent(at=20, run="001-vas"))


def reports(root: Path) -> None:
    """What the agents wrote, and said at the end of their runs."""
    for name, summary in (("cd", "CSV export in batches."), ("vas", "Two of twenty tests fail.")):
        text = f"PHASE_RESULT:\n- phase: {name}\n- status: success\n- summary: {summary}\n"
        write(root, f"{PROGRESS}/coordination/phase-results/001-{name}.txt", text)
    write(root, f"{PROGRESS}/cd/implementation.md", "Version: 1.1.0\n\nWrites batches.\n")
    write(
        root, f"{PROGRESS}/cd/history/implementation-v1.0.0.md", "Version: 1.0.0\n\nWrites rows.\n"
    )
    write(root, f"{PROGRESS}/vas/validation.md", "# Validation\n\nLarge exports fail.\n")


def asking(root: Path) -> Path:
    """CD waits for a decision, and says what blocks it."""
    asked = decision(
        agent="cd",
        kind="blocker",
        blocker="BLK-001",
        description="What of exports above 100,000 rows?",
        options=OPTIONS,
    )
    held = coordination(pending_decisions=[asked], blockers=[blocker()])
    cycle(root, "paused", agents=agents(cd=WAITS), coordination=held)
    reports(root)
    return root


def held(root: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((root / STATE).read_text())
    return value


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_an_option_of_a_decision_is_chosen_with_two_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = asking(tmp_path / "export")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "cd asks for your decision (DEC-001)",
            "“What of exports above 100,000 rows?”",
            "BLK-001  No limit",
            "CSV export in batches.",
            "Need DEC-001",
            "cd/implementation.md  +2 −2  since v1.0.0",
            "1  Stream the rows",
            "2  Refuse the export",
            "3  Something else",
        ):
            assert fact in shown
        await pilot.press("2")
        await until(pilot, lambda: held(root)["status"] == "running")
        await closes(pilot, "CardScreen")
    (made,) = held(root)["coordination"]["pending_decisions"]
    assert (made["chosen_option"], made["made_by"]) == ("Refuse the export", "user")


@pytest.mark.slow
async def test_a_decision_is_answered_in_words_after_looking_at_what_changed(
    tmp_path: Path,
) -> None:
    root = asking(tmp_path / "export")
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        changed = next(
            n for n, each in enumerate(screen.facts.items) if each.target.change is not None
        )
        await pilot.press(*["down"] * changed, "enter")
        await opens(pilot, "ReadingScreen")
        await shows(pilot, "+Writes batches.")
        await pilot.press("escape", "3")
        await shows(pilot, "Option's number, or words")
        await pilot.press(*"Ask first", "ctrl+s")
        await closes(pilot, "CardScreen")
    (made,) = held(root)["coordination"]["pending_decisions"]
    assert made["chosen_option"] == "Ask first"


async def test_long_options_stand_below_each_other(tmp_path: Path) -> None:
    options = [f"{word} the rows while they are read, and tell the user" for word in "AB"]
    waiting = coordination(pending_decisions=[decision(options=options)])
    cycle(tmp_path / "export", "paused", coordination=waiting)
    async with dashboard(tmp_path / "export", tmp_path, (80, 24)) as pilot:
        await open_card(pilot)
        lines = seen(pilot).splitlines()
        assert sum("the rows while they are read" in each for each in lines) >= 2
        assert not any("1 " in each and "2 " in each for each in lines if "the rows" in each)


@pytest.mark.slow
async def test_a_blocker_is_resolved_with_what_its_reporter_is_told(tmp_path: Path) -> None:
    root = tmp_path / "export"
    waiting = coordination(blockers=[blocker(description="No account for the test server")])
    cycle(root, "paused", agents=agents(cd=WAITS), coordination=waiting)
    reports(root)
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "cd is blocked (BLK-001)" in shown
        assert "“No account for the test server”" in shown
        assert "vas, until cd has completed" in shown
        await pilot.press("2")
        await shows(pilot, "Resolution")
        await pilot.press(*"Use the stand-in", "ctrl+s")
        await closes(pilot, "CardScreen")
    (found,) = held(root)["coordination"]["blockers"]
    assert (found["status"], found["resolution"]) == ("workaround", "Use the stand-in")


@pytest.mark.slow
async def test_an_agent_that_failed_is_run_again_with_instructions(tmp_path: Path) -> None:
    root = tmp_path / "export"
    errors = [
        {"phase": "cd", "error": "it took longer than 30 minutes"},
        {"phase": "cd", "error": "no space left"},
    ]
    failed = agents(cd=agent("failed", run="001-cd", error="no space left"))
    cycle(root, "paused", agents=failed, phase_errors=errors)
    reports(root)
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "cd failed" in shown and "“no space left”" in shown
        assert "it took longer than 30 minutes" in shown and "1  Rerun cd" in shown
        await pilot.press("2")
        await shows(pilot, "Instructions")
        await pilot.press(*"Clean up first", "ctrl+s")
        await closes(pilot, "CardScreen")
    assert held(root)["agents"]["cd"]["status"] == "idle"
    assert held(root)["coordination"]["feedback_log"][0]["content"] == "Clean up first"


def failing(root: Path, word: str, **changed: Any) -> Path:
    """Every agent is through, and two tests fail."""
    undone = {"version": "1.0.0", "tasks": [task("T1"), task("T2", "pending", "T1")]}
    noted = [{"number": 1, "issues_found": ["Quotes are not doubled"]}]
    kinds = {"agents": DONE, "test_results": FAILING, "plan": undone, "iterations": noted}
    cycle(root, word, **(kinds | changed))
    reports(root)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_result_with_failing_tests_is_accepted_with_two_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = failing(tmp_path / "export", "completed")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "The cycle is completed, but 2 tests fail",
            "“Two of twenty tests fail.”",
            "✗ 20 tests, 2 failed, 90 %  coverage 81 %",
            "✗ test_large_export",
            "T2  Do T2  pending",
            "Quotes are not doubled",
            "1  Accept it as it is",
            "2  Start another iteration",
        ):
            assert fact in shown
        await pilot.press("1")
        await until(pilot, lambda: held(root)["coordination"]["pending_decisions"])
        await closes(pilot, "CardScreen")
    (made,) = held(root)["coordination"]["pending_decisions"]
    assert (made["kind"], made["iteration"]) == ("accept", 1)


@pytest.mark.slow
async def test_a_result_at_the_limit_gets_another_iteration(tmp_path: Path) -> None:
    root = failing(tmp_path / "export", "completed", max_iterations=1)
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        await pilot.press("2")
        await shows(pilot, "New task")
        await pilot.press(*"Double the quotes", "ctrl+s")
        await closes(pilot, "CardScreen")
    now = held(root)
    assert (now["status"], now["current_iteration"], now["max_iterations"]) == ("running", 2, 2)


@pytest.mark.slow
async def test_the_limit_is_raised_where_the_cycle_asks_for_it(tmp_path: Path) -> None:
    asked = decision(kind="limit", description="Iteration 1 of 1 ended: 2 of 20 tests fail",
                     options=["Allow another iteration", "Accept it as it is", "Stop the cycle"])  # fmt: skip
    held_back = coordination(pending_decisions=[asked])
    root = failing(tmp_path / "export", "paused", max_iterations=1, coordination=held_back)
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "The cycle reached its limit of 1 iteration (DEC-001)" in shown
        assert "✗ test_quotes" in shown and "3  Stop the cycle" in shown
        assert "Something else" not in shown
        await pilot.press("1")
        await closes(pilot, "CardScreen")
    (made,) = held(root)["coordination"]["pending_decisions"]
    assert made["chosen_option"] == "Allow another iteration"


ASKED = {
    "agent": ("cd failed", "no space left", ["Run it again", "Stop the cycle"]),
    "gate": (
        "The first phase ends, but no test passes",
        "✗ test_quotes",
        ["Go on", "Stop the cycle"],
    ),
    "unproven": (
        "vas reported no tests that ran",
        "vas/validation.md",
        ["Run vas again", "Accept it"],
    ),
}
"""By the kind of decision: its title, a fact that it depends on, and the options."""


@pytest.mark.parametrize("kind", ASKED)
async def test_what_the_orchestrator_asks_is_decided_by_one_of_its_options(
    tmp_path: Path, kind: str
) -> None:
    title, fact, options = ASKED[kind]
    about = "vas" if kind == "unproven" else "cd"
    asked = decision(kind=kind, agent=about, description="It cannot continue", options=options)
    status = "failed" if kind == "agent" else "completed"
    ran = agents(cd=agent(status, run="001-cd", error="no space left"), vas=agent(run="001-vas"))
    waits = coordination(pending_decisions=[asked])
    errors = [{"phase": "cd", "error": "no space left"}]
    root = failing(
        tmp_path / "export", "paused", agents=ran, coordination=waits, phase_errors=errors
    )
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for each in (title, fact, f"1  {options[0]}", f"2  {options[1]}"):
            assert each in shown
        assert "Something else" not in shown
        await pilot.press("2")
        await closes(pilot, "CardScreen")
    (made,) = held(root)["coordination"]["pending_decisions"]
    assert made["chosen_option"] == options[1]


def cards(root: Path) -> list[Card]:
    return list(Cycles(str(root)).cards(NOW))


def verdicts(root: Path) -> dict[str, list[str]]:
    """By the card's title: the labels of its verdicts."""
    return {each.title: [one.label for one in each.verdicts] for each in cards(root)}


@pytest.mark.parametrize(
    ("word", "title"),
    [
        ("failed", "cd failed (DEC-001)"),
        ("completed", "The cycle asks how to proceed with cd (DEC-001)"),
    ],
)
def test_a_decision_about_an_agent_says_whether_it_failed(
    tmp_path: Path, word: str, title: str
) -> None:
    asked = decision(
        kind="agent",
        agent="cd",
        description="CD failed 2 times, the last time: no space left",
        options=["Run it again", "Stop the cycle"],
    )
    found = coordination(pending_decisions=[asked])
    held_by = agents(cd=agent(word, error="no space left"))
    cycle(tmp_path, "paused", agents=held_by, coordination=found)
    assert verdicts(tmp_path) == {title: ["Run it again", "Stop the cycle"]}
    assert [each.title for each in cards(tmp_path)[0].sections] == ["Waiting"]  # no error twice


def test_a_question_that_nobody_was_asked_is_answered(acp: Acp, tmp_path: Path) -> None:
    root = tmp_path / "export"
    asks = agents(cd=agent("waiting", last_message="Which separator is wanted?"))
    cycle(root, "running", agents=asks)
    write(root, f"{PROGRESS}/cd/issues.md", "# Issues\n\n## Questions\n- Q1: Comma or semicolon?\n")
    (card,) = cards(root)
    assert (card.title, card.claim) == ("cd is waiting for an answer", "Which separator is wanted?")
    (asked,) = card.sections[0].rows
    assert asked.cells == ("Comma or semicolon?",) and asked.target.line == 4
    shown, *_ = printed(acp, root)  # then what mends that nobody runs it
    words = shlex.split(shown["verdicts"][0]["command"])[1:]
    words[words.index("TEXT")] = "A semicolon"
    assert acp(*words, "--yes").returncode == 0
    (told,) = held(root)["coordination"]["feedback_log"]
    assert (told["target"], told["content"]) == ("cd", "A semicolon")


async def open_of(pilot: Pilot[Any], root: Path) -> None:
    """Open the card of which the first verdict is chosen in the list of actions."""
    app: Any = pilot.app
    verdict = cards(root)[0].verdicts[0]
    app.perform(str(root), verdict.action, None, dict(verdict.given))
    await drawn_card(pilot)


@pytest.mark.slow
async def test_a_question_that_nobody_was_asked_is_answered_on_its_card(tmp_path: Path) -> None:
    root = tmp_path / "export"
    asks = agents(cd=agent("waiting", last_message="Which separator is wanted?"))
    cycle(root, "running", agents=asks)
    write(root, f"{PROGRESS}/cd/issues.md", "# Issues\n\n## Questions\n- Q1: Comma or semicolon?\n")
    async with dashboard(root, tmp_path) as pilot:
        await open_of(pilot, root)
        shown = seen(pilot)
        for fact in ("cd is waiting for an answer", "“Which separator is wanted?”",
                     "Comma or semicolon?"):  # fmt: skip
            assert fact in shown
        await pilot.press("1")
        await shows(pilot, "ctrl+s")
        await pilot.press(*"A semicolon", "ctrl+s")
        await closes(pilot, "CardScreen")
    (told,) = held(root)["coordination"]["feedback_log"]
    assert (told["target"], told["content"]) == ("cd", "A semicolon")


async def test_a_limit_at_which_nobody_was_asked_is_raised_on_its_card(tmp_path: Path) -> None:
    root = failing(tmp_path / "export", "running", max_iterations=1)
    async with dashboard(root, tmp_path) as pilot:
        await open_of(pilot, root)
        shown = seen(pilot)
        for fact in ("The cycle reached its limit of 1 iteration, and 2 tests fail",
                     "✗ test_large_export", "✗ test_quotes", "1  Allow another iteration",
                     "2  Accept it as it is", "3  Extend the cycle with a new task"):  # fmt: skip
            assert fact in shown
        await pilot.press("1")
        await until(pilot, lambda: held(root)["max_iterations"] == 2)


def unanswered(root: Path) -> Path:
    """VAS told CD something, and CD has not run since."""
    told = {"id": "FB-001", "sent_at": "2026-03-02T18:31:00+08:00", "source": "vas",
            "target": "cd", "content": "Quote fields", "type": "bug_report"}  # fmt: skip
    idle = agents(cd=agent("idle"))
    cycle(root, "paused", agents=idle, coordination=coordination(feedback_log=[told]))
    return root


@pytest.mark.slow
async def test_an_agent_that_did_not_answer_gets_more_feedback_on_its_card(tmp_path: Path) -> None:
    root = unanswered(tmp_path / "export")
    reports(root)
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await shows(pilot, "Timeline")
        await open_of(pilot, root)
        shown = seen(pilot)
        for fact in ("cd has not answered the feedback of vas", "“Quote fields”",
                     "1  Rerun cd", "2  Send more feedback"):  # fmt: skip
            assert fact in shown
        await pilot.press("2")
        await shows(pilot, "ctrl+s")
        await pilot.press(*"Quote dates too", "ctrl+s")
        await closes(pilot, "CardScreen")
    said = held(root)["coordination"]["feedback_log"][-1]
    assert (said["target"], said["content"]) == ("cd", "Quote dates too")


@pytest.mark.parametrize(
    "make",
    [
        lambda root: cycle(root),
        lambda root: cycle(root, "completed"),
        lambda root: cycle(root, "paused", agents=agents(cd=agent("idle"))),
        lambda root: write(root, STATE, "{"),
        lambda root: write(root, "README.md", ""),
        lambda root: cycle(root, coordination=coordination(pending_decisions=[decision(id="")])),
    ],
    ids=["at work", "good", "paused", "broken", "none", "without an id"],
)
def test_where_nothing_can_be_decided_there_is_no_card(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path)
    assert Cycles(str(tmp_path)).cards(NOW - timedelta(seconds=50)) == ()


def test_a_decision_with_an_odd_id_is_made_all_the_same(acp: Acp, tmp_path: Path) -> None:
    root, id = tmp_path / "export", "DEC  1 'x'"
    asked = coordination(pending_decisions=[decision(id=id), decision(id="DEC-2")])
    cycle(root, "paused", coordination=asked)
    first, second = printed(acp, root)
    assert acp(*shlex.split(first["verdicts"][1]["command"])[1:], "--yes").returncode == 0
    made = held(root)["coordination"]["pending_decisions"]
    assert [each.get("chosen_option") for each in made] == ["Refuse", None]
    assert printed(acp, root)[0]["digest"] == second["digest"]


def test_what_agents_wrote_cannot_draw_on_the_screen(tmp_path: Path) -> None:
    evil = "Now\x1b[2J\u202e [red]this[/red]"
    asked = decision(description=evil, options=[evil, "b"], agent="cd", blocker="BLK-001")
    found = coordination(pending_decisions=[asked], blockers=[blocker(description=evil)])
    failed = agents(cd=agent("failed", error=evil, last_message=evil))
    root = failing(tmp_path, "paused", coordination=found, agents=failed)
    (card,) = cards(root)
    rows = [cell for section in card.sections for row in section.rows for cell in row.cells]
    texts = [card.title, card.claim, *(each.label for each in card.verdicts), *rows]
    assert not any("\x1b" in each or "\u202e" in each for each in texts)


def printed(acp: Acp, root: Path) -> list[dict[str, Any]]:
    ran = acp("card", str(root), "--json")
    return list(json.loads(ran.stdout)["cards"])


def test_the_commands_of_a_card_decide_and_refuse_what_has_changed(
    acp: Acp, tmp_path: Path
) -> None:
    root = asking(tmp_path / "export")
    (card,) = printed(acp, root)
    assert [each["label"] for each in card["verdicts"]] == [*OPTIONS, "Something else"]
    assert card["verdicts"][2]["choose"] == ["choice"]
    assert (card["by"], card["claim"]) == ("cd", "What of exports above 100,000 rows?")
    write(root, f"{PROGRESS}/cd/implementation.md", "Version: 1.1.0\n\nWrites one file.\n", 10)
    command = shlex.split(card["verdicts"][0]["command"])
    refused = acp(*command[1:], "--yes")
    assert refused.returncode == 2 and "have changed since you saw them" in refused.stderr
    (again,) = printed(acp, root)
    assert again["id"] == card["id"] and again["digest"] != card["digest"]
    assert acp(*shlex.split(again["verdicts"][0]["command"])[1:], "--yes").returncode == 0
    assert held(root)["coordination"]["pending_decisions"][0]["chosen_option"] == OPTIONS[0]
    assert printed(acp, root) == []
