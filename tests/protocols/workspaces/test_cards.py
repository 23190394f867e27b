"""Decisions of a run on cards: every fact that the choice depends on is there, and keys decide."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.model import Card, Status
from acp_core.protocols.workspaces.read.conflict_hints import places
from tests.cli.support import Acp
from tests.protocols.workspaces import running
from tests.protocols.workspaces.making import (
    NOW,
    ORIGIN,
    agent,
    integrate,
    open_workspaces,
    returned,
    run,
    status,
    write,
)
from tests.tui.cards import dashboard, drawn_card, open_card
from tests.tui.screen import seen
from tests.tui.stage import closes, opens, shows

COORD = "agent-workspaces/.coord"


async def is_left(pilot: Pilot[Any]) -> None:
    await closes(pilot, "CardScreen")


def output(root: Path, name: str, price: int) -> None:
    """What an agent states."""
    text = f"# {name}\n\n## Cost of the queue\n\n- Price: {price} euro\n\nSaid by {name}.\n"
    write(root, f"agent-workspaces/{name}/output.md", text)


def partial(root: Path) -> Path:
    """Ben did a part of his task, and says what is missing."""
    run(root)
    agent(root, "ben", "partial")
    said = {
        "summary": "Compared three of five queues.",
        "notes": "Dispatch another agent with an account.",
        "errors": ["No account for the other two."],
    }
    write(root, "returns/ben-part.json", returned("ben", "partial", **said))
    return root


def decisions(root: Path) -> list[tuple[str, str, str]]:
    """Who was decided on, how and why."""
    told = json.loads((root / COORD / "triage.json").read_text())
    return [(each["agent"], each["decision"], each["reason"]) for each in told["decisions"]]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_partial_result_is_accepted_with_its_reason(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = partial(tmp_path / "queues")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "ben returned a partial result",
            "“Compared three of five queues.”",
            "No account for the other two.",
            "Dispatch another agent with an account.",
            "✓ output.md",
            "The report",
            "ben-part",
            "1  Accept the result as it is",
            "2  Rerun, with feedback",
            "3  Skip",
        ):
            assert fact in shown
        await pilot.press("1")
        await shows(pilot, "Recorded with the decision.")
        await pilot.press(*"Three will do", "ctrl+s")
        await is_left(pilot)
    assert decisions(root) == [("ben", "accept", "Three will do")]


@pytest.mark.slow
async def test_an_agent_that_failed_is_run_again_with_feedback_for_its_next_prompt(
    tmp_path: Path,
) -> None:
    root = run(tmp_path / "queues")
    lost = [{"file": f"{ORIGIN}/agent-workspaces/ben/prices.md", "description": "Prices"}]
    agent(root, "ben", "failure", outputs=lost)
    async with dashboard(root, tmp_path) as pilot:
        screen = await open_card(pilot)
        assert screen._chosen == 0  # none of several is meant
        shown = seen(pilot)
        assert "ben failed" in shown and "The rest is missing." in shown
        assert "✗ prices.md  is missing" in shown
        await pilot.press("1")
        await shows(pilot, "Added to its next prompt.")
        await pilot.press(*"Name the sources", "ctrl+s")
        await is_left(pilot)
    assert decisions(root) == [("ben", "rerun", "Name the sources")]
    assert running.entries(root)["ben"]["feedback"] == "Name the sources"


async def test_a_result_in_doubt_shows_where_status_and_files_disagree(tmp_path: Path) -> None:
    root = run(tmp_path / "queues")
    write(root, "returns/ben-part.json", returned("ben", "failure"))
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "ben's status and files disagree" in shown
        assert "✗ returned failure, but the status file says success" in shown
        await pilot.press("3")
        await shows(pilot, "Recorded with the decision.")
        await pilot.press(*"In doubt", "ctrl+s")
        await is_left(pilot)
    assert decisions(root) == [("ben", "skip", "In doubt")]


def conflicting(root: Path, **changed: Any) -> Path:
    """Ann and Ben state another price; somebody wrote that down."""
    run(root)
    output(root, "ann", 10)
    output(root, "ben", 12)
    found = {"id": "c1", "agents": ["ann", "ben"], "topic": "price", "category": "factual",
             "found_by": "mira", "at": "2026-03-01T11:00:00Z", "hint": False}  # fmt: skip
    told = {"looked_at": "2026-03-01T11:00:00Z", "conflicts": [found | changed]}
    write(root, f"{COORD}/conflicts.json", told)
    return root


def conflict(root: Path) -> dict[str, Any]:
    (found,) = json.loads((root / COORD / "conflicts.json").read_text())["conflicts"]
    return dict(found)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_conflict_is_resolved_with_both_versions_in_sight(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = conflicting(tmp_path / "queues")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "ann and ben contradict each other on price (c1)",
            "ann  Price: 10 euro  line 5",
            "ben  Price: 12 euro  line 5",
            "one version is kept, never an average of both",
            "Found by  mira",
            "1  ann's version holds",
            "2  ben's version holds",
            "3  Not a conflict",
        ):
            assert fact in shown
        await pilot.press("down", "down", "enter")
        await opens(pilot, "ReadingScreen")
        await shows(pilot, "+- Price: 12 euro")
        assert "-- Price: 10 euro" in seen(pilot)
        await pilot.press("escape", "2")
        await shows(pilot, "Why it holds")
        await pilot.press("ctrl+s")
        await is_left(pilot)
    assert conflict(root)["sentence"] == (
        "Conflict between ann and ben on price. Resolved by the factual rule, the more sourced "
        "version, that of ben."
    )


@pytest.mark.slow
async def test_a_conflict_is_dismissed_with_a_reason(tmp_path: Path) -> None:
    root = conflicting(tmp_path / "queues", category="coverage", topic="storage")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        assert "ann  output.md  does not mention it" in shown
        assert "2  Merge, ann's is more detailed" in shown
        await pilot.press("4")
        await shows(pilot, "Why this is not a conflict.")
        await pilot.press("ctrl+s")
        await is_left(pilot)
    assert conflict(root)["reason"] == "The outputs agree."


async def test_a_conflict_of_form_is_resolved_with_two_keys(tmp_path: Path) -> None:
    root = conflicting(tmp_path / "queues", category="format")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        for fact in ("ann  Price: 10 euro  line 5", "ben  Price: 12 euro  line 5",
                     "both are converted to the form of the final output"):  # fmt: skip
            assert fact in seen(pilot)
        await pilot.press("1")
        await is_left(pilot)
    assert "format" in conflict(root)["sentence"]


@pytest.mark.slow
async def test_the_outputs_are_put_in_another_order_before_the_draft(tmp_path: Path) -> None:
    root = conflicting(tmp_path / "queues", hint=True, why="price: ann “10”, ben “12”")
    write(root, "returns/ben-part.json", returned("ben", notes="Section 3 goes beyond the task."))
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "The outputs are ready to be synthesised",
            "1. ann  output.md",
            "ann and ben may contradict each other on price: ann “10”, ben “12”",
            "ben  Section 3 goes beyond the task.",
            "1  Let a program write the draft",
        ):
            assert fact in shown
        await pilot.press("3")
        await shows(pilot, "Agents, the most critical first.")
        await pilot.press(*"ben", "enter", "ctrl+s")  # above the others
        await is_left(pilot)
        await open_card(pilot)
        await shows(pilot, "1. ben  output.md")
        await pilot.press("2")
        await is_left(pilot)
    assert (root / COORD / "draft/final-output.md").is_file()


def drafted(root: Path) -> Path:
    """Ben's partial result was accepted, and the draft is written."""
    partial(root)
    for words in (
        ("triage", root, "ben", "accept", "--reason", "enough"),
        ("compare", root),
        ("draft", root),
    ):
        assert running.acp(*words).code == 0
    (root / COORD / "draft/final-output.md").write_text("# Queues\n\nBoth cost the same.\n")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_final_output_is_approved_with_two_keys(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    root = drafted(tmp_path / "queues")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shown = seen(pilot)
        for fact in (
            "The draft of the final output is ready",
            "ben (ben-part): partial, accepted: No account",
            "ben: accept",
            "1. ann  output.md",
            "Dispatch another agent with an account.",
            "1  Approve",
        ):
            assert fact in shown
        await pilot.press("enter")
        await opens(pilot, "ReadingScreen")
        await shows(pilot, "Both cost the same.")
        await pilot.press("escape", "1")
        await is_left(pilot)
    assert running.now(root).status is Status.COMPLETED


@pytest.mark.slow
async def test_the_final_output_is_approved_with_a_gap_that_is_noted(tmp_path: Path) -> None:
    root = drafted(tmp_path / "queues")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        await pilot.press("2")
        await shows(pilot, "Noted already:")
        await pilot.press(*"Nobody looked at latency", "ctrl+s")
        await is_left(pilot)
    told = json.loads((root / "integration/status.json").read_text())
    assert told["gaps_added"] == ["Nobody looked at latency"]


def cards(root: Path) -> list[Card]:
    return list(open_workspaces(str(root)).cards(NOW))


def test_what_changed_since_the_attempt_before_is_on_the_card(tmp_path: Path) -> None:
    root = run(tmp_path / "queues")
    output(root, "ben", 10)
    name = "ben-output-20260301-1015.md"
    text = "# ben\n\n## Cost of the queue\n\n- Price: 12 euro\n\nSaid by ben.\n"
    write(root, f"agent-workspaces/ben/{name}", text, 1_000)
    write(root, "agent-workspaces/ben/status.json", status("ben", "partial", file=name), 900)
    card = cards(root)[0]
    (changed,) = [each for each in card.sections if each.title == "Changed"]
    assert changed.rows[0].cells == (name, "+1 −1", "since output.md")
    (difference,) = card.changes
    assert changed.rows[0].target.change == difference.path
    assert "-- Price: 10 euro" in difference.diff and "+- Price: 12 euro" in difference.diff


def silent(root: Path) -> Path:
    """Ben wrote notes, and then nothing for a long time."""
    run(root)
    for name in ("status.json", "output.md"):
        (root / "agent-workspaces/ben" / name).unlink()
    (root / "returns/ben-part.json").unlink()
    write(root, "agent-workspaces/ben/notes.md", "Thinking.\n", 40 * 60)
    return root


async def open_of(pilot: Pilot[Any], root: Path, number: int = 0) -> Card:
    """Open a card by its first verdict, chosen in the list of actions."""
    card = cards(root)[number]
    app: Any = pilot.app
    app.perform(str(root), card.verdicts[0].action, None, dict(card.verdicts[0].given))
    await drawn_card(pilot)
    return card


async def test_a_silent_agent_is_given_up_on_with_what_is_known_of_it(tmp_path: Path) -> None:
    root = silent(tmp_path / "queues")
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await shows(pilot, "Timeline")
        await open_of(pilot, root)
        shown = seen(pilot)
        for fact in ("ben is silent and has returned nothing", "notes.md", "10 B", "1  Rerun, with feedback",
                     "2  Do the task yourself", "3  Note a gap"):  # fmt: skip
            assert fact in shown
        await pilot.press("3")
        await shows(pilot, "ctrl+s")
        await pilot.press(*"No answer came", "ctrl+s")
        await is_left(pilot)
    ((name, _, reason),) = decisions(root)
    assert (name, reason) == ("ben", "No answer came")


async def test_a_hint_of_a_conflict_is_dismissed_with_both_versions_in_sight(
    tmp_path: Path,
) -> None:
    root = conflicting(tmp_path / "queues", hint=True, found_by="acp")
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await shows(pilot, "Timeline")
        card = await open_of(pilot, root, 1)
        shown = seen(pilot)
        for fact in ("ann and ben may contradict each other on price", "Price: 10 euro",
                     "Price: 12 euro", "Not a conflict"):  # fmt: skip
            assert fact in shown
        await pilot.press(str(len(card.verdicts)))
        await shows(pilot, "Why this is not a conflict.")
        await pilot.press("ctrl+s")
        await is_left(pilot)
    assert conflict(root)["reason"] == "The outputs agree."


def test_a_file_of_the_conflict_s_name_is_the_version(tmp_path: Path) -> None:
    root = conflicting(tmp_path / "queues", topic="notes.md", category="coverage")
    for name in ("ann", "ben"):
        write(root, f"agent-workspaces/{name}/notes.md", f"By {name}.\n")
        listed = [
            {"file": f"{ORIGIN}/agent-workspaces/{name}/{file}", "description": ""}
            for file in ("output.md", "notes.md")
        ]
        write(root, f"agent-workspaces/{name}/status.json", status(name, outputs=listed), 3599)
    versions = cards(root)[0].sections[0]
    assert [row.cells[:2] for row in versions.rows] == [("ann", "notes.md"), ("ben", "notes.md")]


@pytest.mark.parametrize(
    ("text", "topic", "lines"),
    [
        ("- Price: 3\n\nthe price is fair\n", "price", [1]),
        ("## Cost\n\n- Price: 3\n\n## Time\n\n- Price: 4\n", "time: price", [7]),
        ("| Price | 3 |\n", "price", [1]),
        ("We pay a price.\n\nNo more.\n", "price", [1]),
        ('{\n  "cost": {\n    "price": 3\n  }\n}\n', "cost.price", [3]),
        ("Nothing of that.\n", "price", []),
    ],
)
def test_the_lines_that_speak_of_a_topic(text: str, topic: str, lines: list[int]) -> None:
    assert [number for number, _ in places(text, topic)] == lines


def _broken(root: Path) -> None:
    partial(root)
    write(root, f"{COORD}/triage.json", "{", 60)


@pytest.mark.parametrize(
    "make",
    [run, lambda root: integrate(run(root)), lambda root: os.makedirs(root)],
    ids=["not compared", "integrated", "no run"],
)
def test_where_nothing_can_be_decided_there_is_no_card(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    make(tmp_path / "queues")
    assert cards(tmp_path / "queues") == []


def test_no_verdict_is_offered_that_damage_forbids(acp: Acp, tmp_path: Path) -> None:
    _broken(tmp_path / "queues")
    (repair,) = printed(acp, tmp_path / "queues")
    assert [each["action"] for each in repair["verdicts"]] == ["repair"]


def test_what_agents_wrote_cannot_draw_on_the_screen(tmp_path: Path) -> None:
    root, evil = conflicting(tmp_path / "queues"), "Now\x1b[2J\u202e [red]this[/red]"
    agent(root, "ben", "partial")
    told = {"summary": evil, "notes": evil, "errors": [evil]}
    write(root, "returns/ben-part.json", returned("ben", "partial", **told))
    write(root, "agent-workspaces/ann/output.md", f"- Price: {evil}\n")
    found = cards(root)
    assert len(found) == 2
    rows = [row for card in found for section in card.sections for row in section.rows]
    texts = [cell for row in rows for cell in row.cells]
    texts += [text for card in found for text in (card.title, card.claim)]
    assert any("[red]" in each for each in texts)
    assert not any("\x1b" in each or "\u202e" in each for each in texts)


def printed(acp: Acp, root: Path) -> list[dict[str, Any]]:
    return list(json.loads(acp("card", str(root), "--json").stdout)["cards"])


def test_the_commands_of_a_card_decide_and_refuse_what_has_changed(
    acp: Acp, tmp_path: Path
) -> None:
    root = partial(tmp_path / "queues")
    (card,) = printed(acp, root)
    accept = card["verdicts"][0]
    assert (accept["label"], accept["choose"]) == ("Accept the result as it is", ["reason"])
    output(root, "ben", 12)
    refused = acp(*_words(accept, "enough"))
    assert refused.returncode == 2 and "have changed since you saw them" in refused.stderr
    assert not (root / COORD / "triage.json").exists()
    (again,) = printed(acp, root)
    assert again["id"] == card["id"] and again["digest"] != card["digest"]
    assert acp(*_words(again["verdicts"][0], "enough")).returncode == 0
    assert decisions(root) == [("ben", "accept", "enough")]


def test_the_commands_of_a_conflict_s_card_resolve_it(acp: Acp, tmp_path: Path) -> None:
    root = conflicting(tmp_path / "queues")
    (card,) = printed(acp, root)
    assert acp(*_words(card["verdicts"][0], "specific")).returncode == 0
    assert conflict(root)["keep"] == "ann"


def _words(verdict: dict[str, Any], said: str) -> list[str]:
    """The command of a verdict, with what a person says in the place of what is asked for."""
    words = shlex.split(verdict["command"])[1:]
    return [said if each in ("TEXT", "REASON", "BECAUSE") else each for each in words] + ["--yes"]
