"""What a person decides in a folder, on a card: every fact is there, and one digit decides."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from acp_core.protocols.folder.schema.documents import TEMPLATE
from acp_tui.screens.card import CardScreen
from acp_tui.screens.reading import ReadingScreen
from tests.cli.support import Acp
from tests.protocols.folder.support import (
    GATES,
    age,
    edit,
    extend,
    make_v1,
    make_v2,
    read_protocol,
    say,
    write_protocol,
)
from tests.tui.cards import dashboard, drawn_card, open_card
from tests.tui.screen import seen, settle
from tests.tui.stage import until

QUESTION = "Which store holds the index?"


def person(folder: Path, name: str) -> Path:
    """Say that a participant is a person."""
    protocol = read_protocol(folder)
    for each in protocol["participants"]:
        if each["id"] == name:
            each["kind"] = "human"
    write_protocol(folder, protocol)
    age(folder)
    return folder


def made(folder: Path, upto: str, name: str, **more: Any) -> Path:
    """A collaboration up to a point, in which one participant is a person."""
    folder.mkdir(exist_ok=True)
    return person(make_v1(folder, upto, **more), name)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").open()]


def last(folder: Path) -> tuple[str, str]:
    entry = events(folder)[-1]
    return entry["from"], entry["event"]


def shows(pilot: Pilot[Any], *facts: str) -> None:
    """Every one of the facts is on the screen, however its lines are broken."""
    shown = " ".join(seen(pilot).replace("│", " ").split())
    for fact in facts:
        assert fact in shown, f"{fact!r} is not on the card:\n{seen(pilot)}"


async def open_of(pilot: Pilot[Any], folder: Path, action: str, **given: str) -> CardScreen:
    """The card on which an action is decided that nobody is asked for."""
    app: Any = pilot.app
    await until(pilot, lambda: str(folder) in app.fleet.snapshots)
    app.perform(str(folder), action, None, given)
    return await drawn_card(pilot)


async def closed(pilot: Pilot[Any]) -> None:
    await until(pilot, lambda: not isinstance(pilot.app.screen, CardScreen))


def with_question(folder: Path) -> Path:
    """The first reviewer asks something."""
    text = (folder / "review.md").read_text()
    (folder / "review.md").write_text(
        text.replace("Questions:\n- None.", f"Questions:\n- {QUESTION}", 1)
    )
    age(folder, "review.md")
    return folder


def agreed(folder: Path, *names: str) -> None:
    for name in names:
        say(folder, name, "decision_accepted", "Agreed", doc="decisions.md")
    age(folder)


@pytest.mark.slow
async def test_a_proposal_is_reviewed_with_what_others_say_of_it(tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "reviewing", "reviewer")
    seq = say(root, "reader", "review_submitted", doc="review.md")
    extend(
        root,
        f"\n## 2026-01-02T03:30:00Z - reader - seq {seq}\n\nPosition:\n- In favour.\n\n"
        f"Required Changes:\n- Name who starts.\n\nQuestions:\n- {QUESTION}\n",
        "review.md",
    )
    age(root)
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(
            pilot, "server asks reviewer to review the proposal", "“Submitted the proposal”",
            "Positions reader In favour.", "reader Name who starts.",
            f"reader {QUESTION}", "Who starts? unresolved", f"Gates {GATES[0]}", "proposal.md",
            "1 Agree", "2 Require changes", "3 Ask a question", "4 Block, with a reason",
        )  # fmt: skip
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReadingScreen))
        await pilot.press("escape", "2")
        await until(pilot, lambda: "For or against" in seen(pilot))
        await pilot.press(*"Nearly", "tab", *"Say who pays", "ctrl+s")
        await closed(pilot)
    assert last(root) == ("reviewer", "review_submitted")
    written = (root / "review.md").read_text()
    assert "- Nearly" in written and "- Say who pays" in written


def test_the_line_of_the_template_is_no_open_question_before_one_is_due(
    tmp_path: Path, acp: Acp
) -> None:
    root = made(tmp_path / "cache", "reviewing", "reviewer")
    assert "Who starts?" in acp("card", str(root)).stdout
    edit(root, "readiness.md", "- [unresolved] Who starts?", f"- [unresolved] {TEMPLATE}")
    age(root)
    assert TEMPLATE not in acp("card", str(root)).stdout


async def test_a_revision_is_submitted_beside_what_the_reviews_require(tmp_path: Path) -> None:
    root = with_question(made(tmp_path / "cache", "revising", "server"))
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(
            pilot, "2 reviews wait for server's revision", "Positions reader In favour.",
            "reviewer Name who starts.", QUESTION,
            "1 Submit the revision", "2 Ask for another review",
        )  # fmt: skip
        await pilot.press("2")
        await until(pilot, lambda: "The text under this heading" in seen(pilot))
        await pilot.press("ctrl+s")
        await closed(pilot)
    assert last(root) == ("server", "proposal_submitted")


async def test_open_questions_are_classified_on_the_card(tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "decision_review", "server")
    edit(root, "readiness.md", "- [unresolved] Who starts?", "- [resolved] Who starts? Ann.")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(pilot, "server must classify the open questions", "✓ Who starts? Ann. resolved",
              "✓ Metrics. Reason: not needed yet. deferred", "1 Confirm: all are classified")  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
    assert last(root) == ("server", "question_classified")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_decisions_are_accepted_with_two_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    root = made(tmp_path / "cache", "classified", "reader")
    agreed(root, "server", "reviewer")
    async with dashboard(root, tmp_path, size) as pilot:
        await open_card(pilot)
        shows(
            pilot, "server asks reader to accept the decisions", "“Classified all questions”",
            "Decisions Push, then poll.", "✓ Who starts? resolved", "✓ server accepted",
            "✓ reviewer accepted", "1 Accept", "2 Block, with a reason",
        )  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
    assert last(root) == ("reader", "decision_accepted")


@pytest.mark.slow
async def test_nobody_accepts_while_something_is_open_which_is_settled_there(
    tmp_path: Path,
) -> None:
    root = made(tmp_path / "cache", "classified", "reader")
    agreed(root, "server", "reviewer")
    edit(root, "readiness.md", "- [resolved] Who starts?", "- [blocking] Who starts?")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(pilot, "✗ Who starts? blocking", "1 Resolve the questions")
        assert "Accept" not in seen(pilot).replace("accept the decisions", "")
        await pilot.press("1")
        await until(pilot, lambda: "[blocking] Who starts?" in seen(pilot))
        await pilot.press("ctrl+home", *["delete"] * len("[blocking]"), *"[resolved]", "ctrl+s")
        await closed(pilot)
        assert "- [resolved] Who starts?" in (root / "readiness.md").read_text()
        await open_card(pilot)
        shows(pilot, "✓ Who starts? resolved", "1 Accept")


async def test_a_deliverable_is_frozen_with_what_its_draft_says(tmp_path: Path) -> None:
    (tmp_path / "memo").mkdir()
    root = person(make_v2(tmp_path / "memo", "readiness_check"), "server")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(pilot, "server must freeze deliverables/decision.md", "Status: Draft",
              "D1. Initial deliverable declaration", "1 Set Status: Frozen")  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
    assert last(root) == ("server", "deliverable_frozen")
    assert "Status: Frozen" in (root / "deliverables/decision.md").read_text()


@pytest.mark.slow
async def test_gates_are_judged_one_by_one_or_at_once(tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "readiness_check", "server")
    edit(root, "readiness.md", f"- [ ] {GATES[0]}", f"- [x] {GATES[0]}")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(
            pilot, "server must confirm readiness", f"✓ {GATES[0]}",
            f"✗ {GATES[1]} not checked", "✗ Ready to implement not checked",
            "1 All gates are met: pass readiness", "2 Pass readiness, leave gates open",
            f"3 Met: {GATES[1]}", "4 Met: Ready to implement",
        )  # fmt: skip
        await pilot.press("3")
        await closed(pilot)
        assert f"- [x] {GATES[1]}" in (root / "readiness.md").read_text()
        await open_card(pilot)
        shows(pilot, f"✓ {GATES[1]}", "1 All gates are met: pass readiness")
        await pilot.press("1")
        await closed(pilot)
    assert last(root) == ("server", "readiness_passed")
    assert "- [x] Ready to implement" in (root / "readiness.md").read_text()


async def test_the_conclusion_is_one_of_its_outcomes_with_the_reason(tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "passed", "server")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(pilot, "server must write the conclusion", f"✓ {GATES[0]}", "Decisions Push, then poll.",
              "1 Proceed", "2 Do not proceed", "3 Defer")  # fmt: skip
        await pilot.press("2")
        await until(pilot, lambda: "Why this is the answer" in seen(pilot))
        assert "cannot be undone" in seen(pilot)
        await pilot.press(*"Too dear", "ctrl+s")
        await closed(pilot)
    assert last(root) == ("server", "completed")
    written = (root / "conclusion.md").read_text()
    assert "- [do_not_proceed]" in written and "Too dear" in written


@pytest.mark.slow
async def test_a_blocker_is_answered_and_it_goes_on_in_a_new_folder(tmp_path: Path) -> None:
    root = make_v1(_new(tmp_path / "cache"), "classified", blocked="Which account pays?")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(
            pilot, "reviewer stopped the collaboration", "“Which account pays?”",
            "Phase decision review", "Decisions Push, then poll.", "Who starts? resolved",
            "1 Answer, and continue in a new folder",
        )  # fmt: skip
        await pilot.press("1")
        await until(pilot, lambda: "Answer (required)" in seen(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "✗" in seen(pilot))
        await pilot.press(*"The sandbox", "ctrl+s")
        await closed(pilot)
        await settle(pilot)
    assert "The sandbox" in (tmp_path / "cache-2/proposal.md").read_text()


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


async def test_a_question_of_a_review_is_answered(tmp_path: Path) -> None:
    root = with_question(make_v1(_new(tmp_path / "cache"), "revising"))
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await open_of(pilot, root, "answer_question")
        shows(
            pilot, "reader asks a question", f"“{QUESTION}”", "review.md, line",
            "reader In favour.", "Name who starts.", "1 Answer",
        )  # fmt: skip
        await pilot.press("1")
        await until(pilot, lambda: "Written below the question" in seen(pilot))
        await pilot.press(*"Postgres", "ctrl+s")
        await closed(pilot)
    assert f"- {QUESTION}\n  Answer: Postgres" in (root / "review.md").read_text()


async def test_gates_that_keep_an_agent_from_going_on_are_judged_for_it(tmp_path: Path) -> None:
    root = make_v1(_new(tmp_path / "cache"), "readiness_check")
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await open_of(pilot, root, "check_gates", ready="true")
        shows(pilot, "server cannot continue until a gate in readiness.md is checked",
              "✗ Ready to implement", "✓ Who starts? resolved")  # fmt: skip
        await pilot.press("1")
        await closed(pilot)
    assert "- [x] Ready to implement" in (root / "readiness.md").read_text()


@pytest.mark.slow
async def test_what_keeps_an_agent_from_going_on_is_settled_for_it(tmp_path: Path) -> None:
    root = make_v1(_new(tmp_path / "cache"), "readiness_check")
    edit(root, "readiness.md", "- [resolved] Who starts?", "- [unresolved] Who starts?")
    async with dashboard(root, tmp_path, needs=False) as pilot:
        await open_of(pilot, root, "settle_questions")
        shows(pilot, "they must be resolved first", "✗ Who starts? unresolved")
        await pilot.press("1")
        await until(pilot, lambda: "[unresolved] Who starts?" in seen(pilot))
        await pilot.press("ctrl+home", *["delete"] * len("[unresolved]"), *"[resolved]", "ctrl+s")
        await closed(pilot)
    assert "- [resolved] Who starts?" in (root / "readiness.md").read_text()


async def test_text_of_strangers_is_shown_as_text(tmp_path: Path) -> None:
    root = make_v1(_new(tmp_path / "cache"), "reviewing", blocked="[red]no\x1b[31m‮ markup[/red]")
    async with dashboard(root, tmp_path) as pilot:
        await open_card(pilot)
        shows(pilot, "“[red]no␛[31m")


def cards(acp: Acp, root: Path) -> list[dict[str, Any]]:
    """The decisions; what can only be mended has a card of the name of its problem."""
    found = json.loads(acp("card", str(root), "--json").stdout)["cards"]
    return [each for each in found if each["id"] != each["matter"]]


def test_a_commands_verdict_accepts_the_decisions(acp: Acp, tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "classified", "reader")
    (card,) = cards(acp, root)
    assert card["by"] == "server" and card["claim"] == "Classified all questions"
    assert {"id": "decisions.md"}.items() <= card["documents"][0].items()
    done = acp(*shlex.split(card["verdicts"][0]["command"])[1:], "--yes")
    assert done.returncode == 0 and last(root) == ("reader", "decision_accepted")
    assert cards(acp, root) == []


def test_a_verdict_on_decisions_that_changed_is_refused(acp: Acp, tmp_path: Path) -> None:
    root = made(tmp_path / "cache", "classified", "reader")
    (card,) = cards(acp, root)
    edit(root, "decisions.md", "- Push, then poll.", "- Poll alone.")
    refused = acp(*shlex.split(card["verdicts"][0]["command"])[1:], "--yes")
    assert refused.returncode == 2 and "have changed since you saw them" in refused.stderr
    assert last(root) == ("server", "question_classified")
    (again,) = cards(acp, root)
    assert (again["id"], again["digest"] != card["digest"]) == (card["id"], True)


def test_turns_that_only_write_and_turns_of_agents_have_no_card(acp: Acp, tmp_path: Path) -> None:
    assert cards(acp, made(tmp_path / "first", "drafting", "server")) == []
    assert cards(acp, made(tmp_path / "second", "classified", "nobody")) == []
