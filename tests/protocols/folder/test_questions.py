"""What reviews ask and what readiness.md leaves open, as a Snapshot tells it."""

from __future__ import annotations

import contextlib
import io
import subprocess
from pathlib import Path

import pytest

from acp_core.model import Matter, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.discovery import identify
from acp_core.protocols.folder.acts import agents
from acp_core.protocols.folder.schema.documents import TEMPLATE, questions, scan_review
from acp_core.protocols.registry import bundled
from tests.cli.support import Acp
from tests.loops.support import append, is_valid, make

REVIEW = """# Review

## 2026-05-03T12:03:00Z - reader - seq 3

Concerns:
- A session could grow. How far?

Questions:
- How long may a session live,
  in days?
- Who pays? \x1b[31m
- None.

Position:
- Good.

## 2026-05-03T12:05:00Z - reviewer - seq 4

**Questions:**
1. Is there a limit?

### Aside

- Not a question of the part.

## Somebody's notes

Questions:
- Not in a review.
"""


def test_the_questions_of_reviews_are_found_with_their_lines() -> None:
    found = scan_review(REVIEW).questions
    assert [(each.seq, each.text, each.line) for each in found] == [
        (3, "How long may a session live, in days?", 9),
        (3, "Who pays? \x1b[31m", 11),
        (4, "Is there a limit?", 20),
    ]


def test_nothing_asked_is_no_question() -> None:
    for nothing in ("None", "None.", "- None.", "n/a", "...", "-", "No further questions."):
        text = f"## t - reader - seq 3\n\nQuestions:\n- {nothing}\n"
        assert questions(text, {1: 3}) == ()
    text = "## t - reader - seq 3\n\nQuestions:\n- None of them answers: why?\n"
    assert len(questions(text, {1: 3})) == 1
    assert questions("## t - reader - seq 3\n\nQuestions: Why?\n", {1: 3})[0].text == "Why?"


def test_many_lines_take_no_more_than_their_number(tmp_path: Path) -> None:
    text = "## t - reader - seq 3\nQuestions:\n" + "- why?\n" * 50_000 + "  more\n" * 50_000
    assert len(questions(text, {1: 3})) == 200


def submit(folder: Path, who: str) -> None:
    """Append a review whose text stands in review.md already."""
    words = ["--folder", str(folder), "--participant", who, "--event", "review_submitted"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert agents.append([*words, "--summary", "A review", "--reply-to", "2"]) == 0


def asked(folder: Path) -> tuple[Matter, ...]:
    found = identify(folder, bundled())
    assert found is not None
    return found.open().refresh(utc_now()).questions


def test_a_review_s_question_is_open_until_the_proposal_is_revised(tmp_path: Path) -> None:
    folder = make(tmp_path / "review")
    assert asked(folder) == ()
    append(folder, "server", "proposal_submitted", 1)
    body = "## 2026-05-03T12:03:00Z - {} - seq {}\n\nPosition:\n- Good.\n\nQuestions:\n- {}\n\n"
    review = folder / "review.md"
    review.write_text(review.read_text() + "\n" + body.format("reader", 3, "How long?\x1b[31m"))
    submit(folder, "reader")
    (question,) = asked(folder)
    assert question.code == "question" and question.about.participant == "reader"
    assert question.sentence == "How long?␛[31m" and question.about.document == "review.md"
    line = review.read_text().split("\n")[(question.about.line or 0) - 1]
    assert line.startswith("- How long?") and question.remedy == "answer_question"
    review.write_text(review.read_text() + body.format("reviewer", 4, "None."))
    submit(folder, "reviewer")
    (question,) = asked(folder)
    append(folder, "server", "proposal_revised", 4)
    assert [each.code for each in asked(folder)] == ["unresolved"]


def test_blocking_items_come_first_and_the_template_s_line_only_once_it_is_due(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "review")
    readiness = folder / "readiness.md"
    assert TEMPLATE in readiness.read_text()
    assert asked(folder) == ()
    readiness.write_text(
        "# Readiness\n\n- [unresolved] Which key?\n- [blocking] No budget\n- [resolved] Done\n"
    )
    shown = [(each.code, each.sentence, each.about.line) for each in asked(folder)]
    assert shown == [("blocking", "No budget", 4), ("unresolved", "Which key?", 3)]


def act(folder: Path, name: str, **given: object) -> tuple[Preview, Outcome]:
    """Do what a person would do with a form."""
    found = identify(folder, bundled())
    assert found is not None
    opened = found.open()
    action = next(each for each in opened.actions(utc_now()) if each.name == name)
    inputs = action.inputs(**given)
    return action.preview(inputs), action.perform(inputs)


@pytest.mark.slow
def test_a_question_is_answered_below_it_while_others_still_review(tmp_path: Path) -> None:
    folder = make(tmp_path / "review")
    append(folder, "server", "proposal_submitted", 1)
    review = folder / "review.md"
    body = (
        "\n## 2026-05-03T12:03:00Z - reader - seq 3\n\nQuestions:\n- How long,\n  in days?\n"
        "- Who pays?\n\nPosition:\n- Good.\n"
    )
    review.write_text(review.read_text() + body)
    submit(folder, "reader")
    before = review.read_text()
    first, second = asked(folder)
    assert first.given == (("question", "3: How long, in days?"),)
    preview, outcome = act(
        folder, "answer_question", **dict(first.given), answer="Thirty days.\n\n## Not a heading"
    )
    assert "reviewer may be writing review.md" in preview.warnings[0]
    assert outcome.state is OutcomeState.DONE, outcome.sentence
    added = "  Answer: Thirty days.\n  ## Not a heading\n"
    assert review.read_text() == before.replace("  in days?\n", f"  in days?\n{added}")
    assert [each.sentence for each in asked(folder)] == [second.sentence]
    assert is_valid(folder)
    again = act_by_command(folder, "--question", dict(first.given)["question"], "--answer", "No.")
    assert again.returncode == 2 and "question" in again.stderr
    last = act_by_command(folder, "--question", dict(second.given)["question"], "--answer", "We.")
    assert last.returncode == 0, last.stderr
    assert asked(folder) == ()


def act_by_command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return Acp(folder.parent)("act", str(folder), "answer_question", "--yes", *words)


def test_readiness_can_be_settled_before_its_phase(tmp_path: Path) -> None:
    folder = make(tmp_path / "review")
    append(folder, "server", "proposal_submitted", 1)
    (folder / "readiness.md").write_text("# Readiness\n\n- [blocking] No budget\n")
    (question,) = asked(folder)
    assert question.remedy == "settle_questions"
    _, outcome = act(folder, "settle_questions", questions=["[resolved] There is a budget"])
    assert outcome.state is OutcomeState.DONE
    assert asked(folder) == ()
    assert "- [resolved] There is a budget" in (folder / "readiness.md").read_text()
