"""What each participant is told to do next, at every point of both dialects."""

from __future__ import annotations

from pathlib import Path

from tests.protocols.folder.acting import acp
from tests.protocols.folder.support import GATES, age, edit, make_v1, make_v2, say

LISTED = "review decisions.md and append decision_accepted only if decisions are explicit."
LEAVE = (
    "wait for the listed reviewer(s); do not edit proposal.md, decisions.md, readiness.md, "
    "or protocol.json unless blocking the collaboration."
)
DONE = "run acp validate, then append completed with doc=conclusion.md."

# dialect, how far, who -> how the sentence begins
SENTENCES = [
    ("v1", "drafting", "server", "update proposal.md, then append proposal_submitted."),
    ("v1", "drafting", "reader", "wait for the proposal owner to submit the proposal."),
    ("v1", "reviewing", "reader", "append a structured review to review.md, then append review_submitted."),
    ("v1", "reviewing", "server", LEAVE),
    ("v1", "revising", "server", "revise proposal.md, address required changes, then append proposal_revised."),
    ("v1", "revising", "reader", "wait for the proposal owner to revise."),
    ("v1", "decision_review", "server", "classify every open question in readiness.md, then append question_classified"),
    ("v1", "decision_review", "reader", "wait for the proposal owner to classify open questions."),
    ("v1", "classified", "server", LISTED),
    ("v1", "classified", "reader", LISTED),
    ("v1", "readiness_check", "server", "complete the final design checklist in readiness.md."),
    ("v1", "readiness_check", "reader", "wait for the proposal owner to pass readiness."),
    ("v1", "passed", "server", "write conclusion.md with the final outcome, rationale, implementation approach, and next action."),
    ("v1", "passed", "reader", "wait for the proposal owner to write conclusion.md and complete."),
    ("v1", "completed", "server", "stop; collaboration is complete."),
    ("v1", "completed", "reader", "stop; collaboration is complete."),
    ("v2", "drafting", "server", "draft the primary deliverable, append deliverable_drafted, update proposal.md, then append proposal_submitted."),
    ("v2", "reviewing", "reader", "review proposal.md and the primary deliverable, update review.md with Review Scope, then append review_submitted."),
    ("v2", "reviewing", "server", "wait for the listed reviewer(s); do not edit proposal.md or deliverables while reviewing unless blocking the collaboration."),
    ("v2", "revising", "server", "revise proposal.md and deliverables as needed, append deliverable_revised if the deliverable changed, then append proposal_revised."),
    ("v2", "passed", "server", "write conclusion.md with the final outcome, deliverable receipt, readiness result, and next action."),
]  # fmt: skip


def told(folder: Path, who: str) -> str:
    ran = acp("next", "--folder", folder, "--participant", who)
    return ran.out.splitlines()[-1].removeprefix("next action: ")


def test_another_round_is_named_while_revising(tmp_path: Path) -> None:
    for folder in (make_v1(tmp_path / "a", "revising"), make_v2(tmp_path / "b", "revising")):
        text = told(folder, "server")
        assert text.endswith("For another review round append proposal_submitted instead.")


def test_who_has_reviewed_waits_for_the_others(folder: Path) -> None:
    say(folder, "reader", "review_submitted")
    sentence = "wait for the listed reviewer(s) to submit review_submitted or blocked."
    assert told(folder, "reader") == sentence


def test_acceptances_count_from_the_latest_classification(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    say(folder, "reader", "decision_accepted")
    assert told(folder, "reader") == "wait for remaining participants to accept decisions."
    say(folder, "server", "question_classified")
    assert told(folder, "reader") == LISTED


def test_what_stands_against_acceptance_is_said(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    edit(folder, "readiness.md", "[resolved]", "[blocking]")
    assert told(folder, "reader").startswith(LISTED)
    assert "the owner must clear them first" in told(folder, "reader")


def test_the_steps_of_the_readiness_check(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "[resolved]", "[blocking]")
    clear = "classify readiness.md questions and clear blockers before readiness_passed."
    assert told(folder, "server") == told(folder, "reader") == clear
    edit(folder, "readiness.md", "[blocking]", "[resolved]")
    assert told(folder, "server") == "complete the final design checklist in readiness.md."
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    assert told(folder, "server") == "run acp validate, then append readiness_passed."
    say(folder, "server", "readiness_passed")
    assert told(folder, "server").endswith("Then check every completion gate in readiness.md.")
    done = make_v1(tmp_path / "done", "completed")
    (folder / "conclusion.md").write_text((done / "conclusion.md").read_text())
    assert told(folder, "server") == (
        f"check every completion gate in readiness.md with its exact text. Then {DONE}"
    )
    for gate in GATES:
        edit(folder, "readiness.md", f"- [ ] {gate}", f"- [x] {gate}")
    assert told(folder, "server") == DONE


def test_freeze_comes_before_readiness_is_passed(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    assert told(folder, "server") == (
        "freeze the primary deliverable with deliverable_frozen, run acp validate, "
        "then append readiness_passed."
    )
    drafted = make_v2(tmp_path / "drafted", "drafting")
    say(drafted, "server", "deliverable_drafted", doc="deliverables/decision.md", role="primary")
    assert told(drafted, "server") == "update proposal.md, then append proposal_submitted."


def test_blocked_and_empty(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising", blocked="No access")
    for who in ("server", "reader"):
        assert told(folder, who) == "resolve the blocker or start a new collaboration round."
    (folder / "events.jsonl").write_bytes(b"")
    age(folder)
    assert told(folder, "server").startswith("wait: the log holds no event yet")
