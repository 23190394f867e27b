"""Which points reviews raised, by whom, how each was answered, and which are open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.model import Panel
from acp_core.model.clock import utc_now
from acp_core.protocols.folder.schema import documents as scans
from acp_core.protocols.folder.view import story
from acp_core.protocols.folder.view.story import (
    Course,
    Documents,
    begins_with,
    disagreement,
    folded,
    points,
)
from acp_tui.widgets.lines import text_of
from acp_tui.widgets.panel_view import items
from tests.cli.support import Acp
from tests.protocols.folder.acting import append, open_folder
from tests.protocols.folder.support import make_v1
from tests.protocols.governed import states

READER = """\
Context:
- Read `proposal.md`.

Position:
- Not yet.

Concerns:
- Two paths may share a key.

Required Changes:
- Name the time to live.
  In seconds.

Questions:
- Who starts the rollout?
- Which region is first?
"""
REVIEWER = """\
Position:
- Sound.

Concerns:
- None.

Required Changes:
- Name the time to live. In seconds.

Questions:
- None.
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))


def review(folder: Path, who: str, text: str) -> None:
    given = folder.parent / "review.txt"
    given.write_text(text)
    asked = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])["seq"]
    ran = append(folder, who, "review_submitted", asked, review_file=given)
    assert ran.code == 0, ran


def say(folder: Path, who: str, event: str) -> None:
    last = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])["seq"]
    ran = append(folder, who, event, last)
    assert ran.code == 0, ran


def reviewed(folder: Path) -> Path:
    """Two reviewers have answered the first proposal."""
    make_v1(folder, "drafting")
    (folder / "proposal.md").write_text("# Proposal\n\nInvalidate by key.\n")
    (folder / "review.md").write_text("# Reviews\n")
    say(folder, "server", "proposal_submitted")
    review(folder, "reader", READER)
    review(folder, "reviewer", REVIEWER)
    return folder


def panel(folder: Path) -> Panel:
    collaboration = open_folder(folder, None)
    (found,) = collaboration.refresh(utc_now()).panels
    collaboration.close()
    return found


def cells(folder: Path) -> list[tuple[str, ...]]:
    return [row.cells for row in panel(folder).rows]


def test_every_point_of_a_review_stands_with_who_raised_it(tmp_path: Path) -> None:
    folder = reviewed(tmp_path / "cache")
    found = cells(folder)
    ttl = "Name the time to live. In seconds."
    assert [each[:5] for each in found[:5]] == [
        ("open", "Two paths may share a key.", "reader", "concern", "1"),
        ("open", ttl, "reader", "required change", "1"),
        ("open", "Who starts the rollout?", "reader", "question", "1"),
        ("open", "Which region is first?", "reader", "question", "1"),
        ("open", ttl, "reviewer", "required change", "1"),
    ]
    lines = (folder / "review.md").read_text().splitlines()
    places = [
        (row.target.document, lines[(row.target.line or 0) - 1]) for row in panel(folder).rows
    ]
    assert places[0] == ("review.md", "- Two paths may share a key.")
    assert places[2] == ("review.md", "- Who starts the rollout?")


def test_an_answer_is_told_where_the_documents_give_it(tmp_path: Path) -> None:
    folder = reviewed(tmp_path / "cache")
    text = (folder / "review.md").read_text()
    asked = "- Who starts the rollout?"
    (folder / "review.md").write_text(text.replace(asked, f"{asked}\n  Answer: We do."))
    (folder / "readiness.md").write_text(
        "# Readiness\n\n- [deferred_nonblocking] Which region is first? Reason: all are alike.\n"
        "- [blocking] Two paths may share a key: no proof yet.\n"
        "- [resolved] Who pays for the region?\n"
    )
    (folder / "decisions.md").write_text(
        "# Decisions\n\n- **Name the time to live.** In seconds.\n"
    )
    by_text = {(each[1], each[2]): each for each in cells(folder)}
    assert by_text["Who starts the rollout?", "reader"][0] == "answered"
    assert "(answer)" in by_text["Who starts the rollout?", "reader"][5]
    deferred = by_text["Which region is first?", "reader"]
    assert deferred[0] == "deferred" and deferred[5] == "readiness.md:3 [deferred_nonblocking]"
    assert by_text["Two paths may share a key.", "reader"][0] == "open"  # it says so itself
    for who in ("reader", "reviewer"):
        decided = by_text["Name the time to live. In seconds.", who]
        assert decided[0] == "decided" and decided[5] == "decisions.md:3"
    unmatched = by_text["Who pays for the region?", "unmatched"]
    assert unmatched[0] == "resolved" and unmatched[3] == "readiness item"


def test_what_is_raised_again_is_one_point_and_open_again(tmp_path: Path) -> None:
    folder = reviewed(tmp_path / "cache")
    say(folder, "server", "proposal_revised")
    assert {each[0] for each in cells(folder)[:5]} == {"revised since"}
    folder = reviewed(tmp_path / "again")
    say(folder, "server", "proposal_submitted")
    review(folder, "reader", "Position:\n- No.\n\nConcerns:\n- Two paths may share a KEY\n")
    review(folder, "reviewer", "Position:\n- Fine.\n")
    found = [each for each in cells(folder) if "share a key" in each[1]]
    assert [(each[0], each[4]) for each in found] == [("open", "1, 2")]
    say(folder, "server", "proposal_revised")
    (folder / "readiness.md").write_text("# Readiness\n\n- [resolved] Who starts? We do.\n")
    say(folder, "server", "question_classified")
    say(folder, "reader", "decision_accepted")
    states = {(each[1], each[2]): each for each in cells(folder)}
    accepted = states["Two paths may share a key.", "reader"]
    assert accepted[0] == "accepted" and accepted[5].startswith("reader accepted the decisions")
    assert states["Name the time to live. In seconds.", "reviewer"][0] == "revised since"


def test_a_collaboration_whose_reviews_raise_nothing_has_no_such_panel(fresh: Path) -> None:
    collaboration = open_folder(fresh, None)
    assert collaboration.refresh(utc_now()).panels == ()
    collaboration.close()


def test_the_panel_stays_the_same_object_while_no_review_or_answer_changes(tmp_path: Path) -> None:
    folder = reviewed(tmp_path / "cache")
    collaboration = open_folder(folder, None)
    before = collaboration.refresh(utc_now())
    (folder / "conclusion.md").write_text("# Conclusion\n\nSoon.\n")
    after = collaboration.refresh(utc_now())
    assert after is not before and after.panels is before.panels
    collaboration.close()


def test_commands_and_reports_have_the_same_points(tmp_path: Path) -> None:
    acp, folder = Acp(tmp_path), reviewed(tmp_path / "cache")
    rows = [list(each) for each in cells(folder)]
    for command in ("show", "report"):
        told = json.loads(acp(command, str(folder), "--json").stdout)
        (found,) = told["snapshot"]["panels"]
        assert found["title"] == "Review points"
        assert [row["cells"] for row in found["rows"]] == rows
    shown = acp("show", str(folder)).stdout
    assert "Review points" in shown and "Two paths may share a key." in shown
    for form in ("md", "html"):
        report = acp("report", str(folder), "--format", form).stdout
        assert "Review points" in report and "Two paths may share a key" in report


def test_the_report_of_a_governed_run_contains_its_objections(tmp_path: Path) -> None:
    root = states.run_in(tmp_path / "lamp", "at its gate")
    for form in ("md", "html"):
        report = Acp(tmp_path)("report", str(root), "--format", form).stdout
        assert "Objections" in report and "OBJ-001" in report and "No switch." in report


# --- the pure derivation ---------------------------------------------------------------------

_words = st.lists(st.sampled_from(["Cost", "of", "the key", "*rollout*", "TTL?", "no"]), min_size=1)
_text = _words.map(" ".join)
_part = st.tuples(st.sampled_from(["Concerns", "Required Changes", "Questions"]), st.lists(_text))
_review = st.tuples(st.sampled_from(["ann", "ben"]), st.lists(_part, max_size=4))


@pytest.mark.slow
@given(st.lists(_review, max_size=5), st.lists(_text, max_size=4))
def test_each_raised_point_stands_exactly_once(
    reviews: list[tuple[str, list[tuple[str, list[str]]]]], items: list[str]
) -> None:
    lines = ["# Reviews"]
    for seq, (who, parts) in enumerate(reviews, 2):
        lines += ["", f"## 2026-01-02T03:04:05Z - {who} - seq {seq}"]
        for part, texts in parts:
            lines += ["", f"{part}:", *(f"- {each}" for each in texts)]
    text = "\n".join(lines) + "\n"
    readiness = scans.scan_readiness("".join(f"- [resolved] {each}\n" for each in items))
    headings = scans.scan_review(text).headings
    raised = points(text, {each.line: seq for seq, each in headings.items()})
    found = disagreement(Documents(headings, raised, items=readiness.items), Course({}))
    keys = [(each.by, each.kind, folded(each.text)) for each in found.points]
    kinds = {"Concerns": "concern", "Required Changes": "required change", "Questions": "question"}
    wanted = {
        (headings[seq].participant, kinds[part], folded(each.text))
        for seq, parts in raised.items()
        for part, written in parts.items()
        for each in written
    }
    assert len(keys) == len(set(keys)) and set(keys) == wanted
    answered = sum(len(each.answers) for each in found.points)
    assert len(found.unmatched) <= len(readiness.items)
    for item in readiness.items:
        matches = [each for each in found.points if begins_with(item.text, each.text)]
        assert (item in found.unmatched) == (not matches)
    assert bool(answered) == any(each.state != "open" for each in found.points)


def test_words_in_common_are_no_answer() -> None:
    assert begins_with("What is the key? The path.", "*What is the key*?")
    assert not begins_with("Cost of the move", "Cost")
    assert not begins_with("Rollout order", "Rollout order and cost")


def test_each_text_is_folded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many points and answers there are: every collaboration of a fleet has its panel made."""
    texts: list[str] = []
    fold = story.folded

    def noted(text: str) -> str:
        texts.append(text)
        return fold(text)

    monkeypatch.setattr(story, "folded", noted)
    text = f"# Reviews\n\n## 2026-01-02T03:04:05Z - ann - seq 2\n\n{READER}"
    readiness = scans.scan_readiness("- [resolved] Who starts the rollout? Ben.\n")
    headings = scans.scan_review(text).headings
    raised = points(text, {each.line: seq for seq, each in headings.items()})
    decided = [("Two paths may share a key: no.", 3)]
    found = disagreement(
        Documents(headings, raised, items=readiness.items, decisions=decided), Course({})
    )
    assert [each.state for each in found.points].count("open") == 2
    assert len(texts) == len(found.points) + len(readiness.items) + len(decided)


def test_on_a_narrow_pane_a_point_can_be_read_and_who_raised_it(tmp_path: Path) -> None:
    found = panel(reviewed(tmp_path / "cache"))
    heading, first, *_, deferred = (text_of(row.pieces) for row in items(found, cells=50))
    assert heading.split("  ")[-1] == "raised by"
    assert "Two paths may share" in first and first.rstrip().endswith("reader")
    assert deferred.startswith("[x] deferred  ")
