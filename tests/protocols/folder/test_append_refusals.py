"""Appending events: what the log, the documents and the deliverables do not allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.protocols.folder.rules import checks
from tests.protocols.folder.acting import Ran, acp, append, block, files, log
from tests.protocols.folder.support import (
    change_protocol,
    edit,
    extend,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
    write_protocol,
)


def draft(folder: Path, **more: object) -> Ran:
    fields: dict[str, object] = {"doc": "deliverables/decision.md", "role": "primary"}
    return append(folder, "server", "deliverable_drafted", 1, **(fields | more))


@pytest.mark.parametrize(
    ("who", "event", "reply_to", "more", "said"),
    [
        ("ghost", "blocked", 1, {}, "participant 'ghost' is not listed in protocol.json"),
        ("reader", "blocked", 9, {}, "reply_to must point to an existing event"),
        ("reader", "blocked", 0, {}, "reply_to must point to an existing event"),
        ("reader", "proposal_submitted", 1, {},
         "seq 2: proposal submission is reserved for server; got reader"),
        ("reader", "review_submitted", 1, {},
         "seq 2: review_submitted is not allowed from phase drafting"),
        ("server", "completed", 1, {}, "seq 2: completed is not allowed from phase drafting"),
        ("server", "initialized", 1, {}, "initialized must be seq 1"),
        ("server", "deliverable_drafted", 1, {}, "unknown event 'deliverable_drafted'"),
        ("reader", "blocked", 1, {"role": "primary"}, "--role and --sha256 are for deliverable"),
        ("reader", "blocked", 1, {"doc": "../../etc/passwd"}, "--doc must be a path below"),
        ("reader", "blocked", 1, {"doc": "/etc/passwd"}, "--doc must be a path below"),
        ("reader", "blocked", 1, {"review_file": "x"}, "--review-file requires --event"),
        ("reader", "nonsense", 1, {}, "argument --event: 'nonsense' is not one of initialized, proposal_submitted"),
        ("reader", "blocked", "x", {}, "--reply-to: must be a whole number"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_refused_and_nothing_changes(
    fresh: Path, who: str, event: str, reply_to: int, more: dict[str, object], said: str
) -> None:
    before = files(fresh)
    ran = append(fresh, who, event, reply_to, **more)
    assert ran.code == 2 and ran.out == "" and said in ran.err, ran
    assert ran.err.startswith("error: ") and ran.err.count("\n") == 1
    assert files(fresh) == before


def test_a_reply_is_asked_for_and_a_summary(fresh: Path) -> None:
    flags = ("append", "--folder", fresh, "--participant", "reader", "--event", "blocked")
    ran = acp(*flags, "--summary", "Why.")
    assert ran.code == 2 and "reply_to is required after initialized" in ran.err
    assert "--summary must not be blank" in acp(*flags, "--summary", " ", "--reply-to", "1").err
    assert "one sentence" in acp(*flags, "--summary", "x" * 2001, "--reply-to", "1").err
    assert "not UTF-8" in acp(*flags, "--summary", "\udc80", "--reply-to", "1").err


def test_blocked_can_always_be_said(tmp_path: Path) -> None:
    """Also with an open blocker after an acceptance, and with documents that nobody can read."""
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    (folder / "conclusion.md").write_bytes(b"\xff\xfe")
    (folder / "review.md").unlink()
    assert block(folder).code == 0
    folder = make_v1(tmp_path / "other", "reviewing")
    extend(
        folder, line_of({"seq": 2, "from": "reader", "event": "blocked", "at": "x", "summary": ""})
    )
    assert "expected seq 3, found 2" in append(folder, "reader", "review_submitted", 2).err
    assert block(folder).out == "appended seq 3: blocked\n"


def test_readiness_cannot_pass_while_the_collaboration_is_invalid(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    edit(folder, "review.md", "- reader - seq 3", "- reader - sequel 3")
    ran = append(folder, "server", "readiness_passed", 9)
    assert ran.code == 2 and "requires matching review.md heading" in ran.err
    assert "validate must pass first" in ran.err
    edit(folder, "review.md", "- reader - sequel 3", "- reader - seq 3")
    assert append(folder, "server", "readiness_passed", 9).code == 0


def test_a_protocol_json_that_lags_is_no_obstacle_and_is_mended(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    change_protocol(folder, currentPhase="decision_review", waitingFor=["reviewer"])
    assert checks.validate(folder).verdict == 2
    assert append(folder, "server", "readiness_passed", 9).code == 0
    assert checks.validate(folder).verdict == 0


def test_documents_of_today_do_not_make_history_wrong(tmp_path: Path) -> None:
    """An open question after the acceptances stops readiness, not a new proposal of a decision."""
    folder = make_v1(tmp_path / "run", "classified")
    assert append(folder, "reader", "decision_accepted", 6).code == 0
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    assert append(folder, "server", "decision_proposed", 7, "A better one.").code == 0


def test_a_review_without_its_heading_is_appended_with_a_warning(folder: Path) -> None:
    ran = append(folder, "reader", "review_submitted", 2, doc="review.md")
    assert ran.code == 0 and "reader - seq 3` yet" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n\n", "the review is empty"),
        ("## 2026-01-02T03:04:05Z - reader - seq 3\n", "the review is empty"),
        ("Fine.\n## now - reviewer - seq 2\n", "line 2 of the review reads as the heading"),
    ],
)
def test_a_review_that_is_none_is_refused(
    tmp_path: Path, folder: Path, text: str, said: str
) -> None:
    before = files(folder)
    (tmp_path / "review.txt").write_text(text)
    ran = append(folder, "reader", "review_submitted", 2, review_file=tmp_path / "review.txt")
    assert ran.code == 2 and said in ran.err, ran
    assert files(folder) == before


def test_where_no_event_bears_a_number_blocked_replies_to_none(folder: Path) -> None:
    """Another tool wrote the log: the way out of it asks for nothing that is not there."""
    bare = [{k: v for k, v in each.items() if k not in ("seq", "reply_to")} for each in log(folder)]
    (folder / "events.jsonl").write_bytes(b"".join(map(line_of, bare)))
    ran = acp("append", "--folder", folder, "--participant", "reader", "--event", "blocked",
              "--summary", "No numbers.")  # fmt: skip
    assert (ran.code, ran.out) == (0, "appended seq 1: blocked\n"), ran.err


def test_freezing_records_the_digest_of_what_stands_there(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "readiness_check")
    frozen = {"doc": "deliverables/decision.md", "role": "primary"}
    ran = append(folder, "server", "deliverable_frozen", 10, **frozen)
    assert ran.code == 2 and "primary deliverable status must be Frozen" in ran.err
    edit(folder, "deliverables/decision.md", "Status: Draft", "Status: Frozen")
    wrong = append(folder, "server", "deliverable_frozen", 10, **frozen, sha256="0" * 64)
    assert "deliverable_frozen sha256 does not match current file" in wrong.err
    assert append(folder, "server", "deliverable_frozen", 10, **frozen).code == 0
    import hashlib

    data = (folder / "deliverables" / "decision.md").read_bytes()
    assert log(folder)[-1]["sha256"] == hashlib.sha256(data).hexdigest()
    again = append(folder, "server", "deliverable_frozen", 11, "Twice.", **frozen)
    assert "primary deliverable can be frozen only once" in again.err


def test_a_frozen_supporting_deliverable_is_marked_so(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "revising")
    protocol = read_protocol(folder)
    protocol["deliverables"]["supporting"] = [
        {"type": "custom", "file": "other.md", "checklist": []},
        {"type": "custom", "file": "notes.md", "checklist": ["Notes"], "x": 1},
    ]
    write_protocol(folder, protocol)
    for name in ("other", "notes"):
        (folder / "deliverables" / f"{name}.md").write_text(
            "Status: Frozen\n\n## Notes\n\nSomething.\n"
        )
    fields = {"doc": "deliverables/notes.md", "role": "supporting"}
    ran = append(folder, "reader", "deliverable_frozen", 5, **fields)
    assert ran.code == 0, ran.err
    marked = read_protocol(folder)["deliverables"]["supporting"]
    assert [item.get("frozen") for item in marked] == [None, True] and marked[1]["x"] == 1
    assert checks.validate(folder).verdict == 0


def test_all_reasons_stand_in_one_refusal(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    extend(
        folder,
        "- [blocking] No access\n- [unresolved] Who pays?\n- [deferred_nonblocking] x\n",
        "readiness.md",
    )
    ran = append(folder, "reader", "decision_accepted", 6)
    assert ran.code == 2 and ran.err == (
        "error: seq 7: blocking readiness items must be cleared first; unresolved readiness "
        "questions must be classified first; deferred_nonblocking readiness items require a "
        "reason\n"
    )


def test_the_state_machine_and_the_documents_speak_in_one_refusal(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    ran = append(folder, "server", "completed", 9, doc="decisions.md")
    for said in ("completed requires a prior readiness_passed event", "must reference conclusion.md",
                 "readiness.md must check 'Ready to implement' first", "completion gates must be",
                 "missing required sections: Rationale", "cannot be completed while blocked"):  # fmt: skip
        assert said in ran.err, ran
    assert ran.code == 2 and ran.err.count("\n") == 1 and ran.err.count("; ") >= 5


def test_a_turn_of_somebody_else_is_no_matter_of_documents(fresh: Path) -> None:
    ran = append(fresh, "server", "completed", 1, doc="conclusion.md")
    assert ran.err.startswith("error: seq 2: completed is not allowed from phase drafting")
    assert "Ready to implement" not in ran.err and "missing required sections" not in ran.err


@pytest.mark.parametrize("event", ["deliverable_drafted", "deliverable_revised"])
def test_a_digest_that_is_not_that_of_a_draft_is_a_warning_and_a_finding(
    tmp_path: Path, event: str
) -> None:
    folder = make_v2(tmp_path / "run", "drafting" if event.endswith("drafted") else "revising")
    ran = append(folder, "server", event, 1, doc="deliverables/decision.md", role="primary",
                 sha256="0" * 64)  # fmt: skip
    assert ran.code == 0 and f"{event} sha256 does not match current file" in ran.err, ran
    assert [each.code for each in checks.validate(folder).findings] == ["ACP950"]


def test_an_incomplete_draft_or_a_stray_heading_is_a_warning(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "drafting")
    extend(folder, "## t - reader - seq 2\n", "review.md")
    edit(folder, "deliverables/decision.md", "## Options", "### Options")
    ran = draft(folder)
    assert ran.code == 0 and "missing required section: Options" in ran.err, ran
    assert "warning: review.md heading seq 2: matching event is deliverable_drafted" in ran.err


def test_a_deliverable_with_an_empty_section_is_not_frozen(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "readiness_check")
    edit(folder, "deliverables/decision.md", "Status: Draft", "Status: Frozen")
    edit(folder, "deliverables/decision.md", "About options.", "")
    ran = append(folder, "server", "deliverable_frozen", 10, doc="deliverables/decision.md",
                 role="primary")  # fmt: skip
    assert ran.code == 2 and "section must not be empty when frozen: Options" in ran.err


def test_a_deliverable_is_frozen_only_as_it_may_stay(tmp_path: Path) -> None:
    """It cannot be changed or frozen again afterwards: readiness could never be passed."""
    for old, new, refusal in (
        ("## Options", "## Choices", "primary deliverable missing required section: Options"),
        ("Status: Frozen", "Status: Done", "primary deliverable must include Status"),
    ):
        folder = make_v2(tmp_path / new[-4:], "readiness_check")
        edit(folder, "deliverables/decision.md", "Status: Draft", "Status: Frozen")
        edit(folder, "deliverables/decision.md", old, new)
        ran = append(folder, "server", "deliverable_frozen", 10, doc="deliverables/decision.md",
                     role="primary")  # fmt: skip
        assert ran.code == 2 and refusal in ran.err


def test_a_long_summary_is_a_warning_and_a_finding(fresh: Path) -> None:
    ran = block(fresh, "x" * 2_001)
    assert ran.code == 0 and "longer than 2000 characters" in ran.err
    assert [each.code for each in checks.validate(fresh).findings] == ["ACP903"]


def test_a_proposal_that_says_nothing_and_open_questions_are_warned_of(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    (folder / "proposal.md").write_text("# Proposal\n\n## Current Proposal\n\nTBD\n")
    ran = append(folder, "server", "proposal_submitted", 1, doc="proposal.md")
    assert ran.code == 0 and "proposal.md contains no proposal yet" in ran.err
    assert "ACP951" in {each.code for each in checks.validate(folder).advice}
    elsewhere = "\n## Message/API Contracts\n\nThe server answers within a second.\n"
    extend(folder, elsewhere, "proposal.md")
    assert "ACP951" not in {each.code for each in checks.validate(folder).advice}

    folder = make_v1(tmp_path / "other", "decision_review")
    ran = append(folder, "server", "question_classified", 5, doc="readiness.md")
    assert ran.code == 0 and "readiness.md still holds unresolved questions (line 5)" in ran.err
    assert "ACP952" in {each.code for each in checks.validate(folder).advice}
