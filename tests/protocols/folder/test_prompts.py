"""What each participant is told to do next, at every point of both dialects."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acp_core.model.clock import utc_now
from tests.protocols.folder.acting import acp, append, open_folder
from tests.protocols.folder.support import (
    GATES,
    age,
    change_protocol,
    edit,
    extend,
    make_v1,
    make_v2,
    say,
)

BLOCK = (
    "The owner has not done so for 30 minutes and may wait, too: "
    "if the item is not yours, append blocked and say what is missing."
)

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


OPEN = "line 5: [blocking] Who starts?"
CLEAR = (
    f"clear what is open in readiness.md ({OPEN}), then append question_classified again; "
    "decisions can be accepted only after it."
)
NOT_YET = (
    " readiness.md still holds blocking or unclassified items, or deferred ones without a reason: "
    f"the owner must clear them first ({OPEN}) and append question_classified again. "
    "The participant who wrote an item may withdraw it."
)
ACCEPTED = "wait for remaining participants to accept decisions."


def objected(tmp_path: Path, *accepted: str, age_it: bool = False) -> Path:
    """An item is blocking again after the questions were classified."""
    folder = make_v1(tmp_path / "run", "classified")
    for who in accepted:
        say(folder, who, "decision_accepted")
    edit(folder, "readiness.md", "[resolved]", "[blocking]")
    if not age_it:
        age(folder, "readiness.md", at=datetime.now(UTC))
    return folder


def test_an_item_that_is_open_again_is_the_owners_move(tmp_path: Path) -> None:
    folder = objected(tmp_path, "server", "reader")
    assert told(folder, "server") == CLEAR
    assert told(folder, "reader") == f"{ACCEPTED}{NOT_YET} If neither happens, blocked is possible."
    assert told(folder, "reviewer") == f"{LISTED}{NOT_YET} If neither happens, blocked is possible."
    seen = {
        each.participant: each.text for each in open_folder(folder).refresh(utc_now()).next_actions
    }
    assert seen == {who: told(folder, who) for who in ("server", "reader", "reviewer")}
    edit(folder, "readiness.md", "[blocking]", "[resolved]")
    say(folder, "server", "question_classified")
    assert {told(folder, who) for who in ("server", "reader", "reviewer")} == {LISTED}


def test_who_waits_for_the_owner_is_woken_as_the_owner(tmp_path: Path) -> None:
    folder = objected(tmp_path, "server")
    waits = ("wait", "--folder", folder, "--timeout", "0.1", "--interval", "0.05", "--participant")
    ran = acp(*waits, "server")
    assert ran.code == 0 and ran.out.splitlines()[0] == f"ready: readiness.md is open: {OPEN}"
    assert ran.out.endswith(f"next action: {CLEAR}\n")
    found = json.loads(acp(*waits, "server", "--json").out)
    assert (found["outcome"], found["yourTurn"]) == ("ready", True)
    edit(folder, "readiness.md", "[blocking]", "[resolved]")
    assert acp(*waits, "server").code == 1
    (folder / "readiness.md").unlink()
    ran = acp(*waits, "server")
    gone = "ready: readiness.md is open: it is missing, or cannot be read"
    assert ran.code == 0 and gone in ran.out


def test_an_owner_that_waits_for_half_an_hour_is_no_reason_to_wait(tmp_path: Path) -> None:
    """It may use the existing script, which does not wake it."""
    folder = objected(tmp_path, "server")
    log = [*(folder / "events.jsonl").read_text().splitlines()]
    last = json.loads(log[-1])["at"]
    for minutes, ends in ((29, "If neither happens, blocked is possible."), (31, BLOCK)):
        then = datetime.now(UTC) - timedelta(minutes=minutes)
        log[-1] = log[-1].replace(last, last := then.strftime("%Y-%m-%dT%H:%M:%SZ"))
        (folder / "events.jsonl").write_text("\n".join(log) + "\n")
        age(folder)
        assert told(folder, "reader").endswith(ends), minutes
    listed = objected(
        tmp_path / "listed", age_it=True
    )  # the owner is to accept, too: it reads this
    assert "30 minutes" not in told(listed, "reader")


def test_an_acceptance_without_readiness_is_the_owners_move(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    (folder / "readiness.md").unlink()
    assert "it is missing, or cannot be read" in told(folder, "server")
    assert "the owner must" in told(folder, "reader")


def test_a_log_that_takes_no_event_is_said_to_everybody(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "a run", "classified")
    extend(folder, '{"seq": 7, "fr')
    age(folder)
    torn = "stop: events.jsonl ends in a torn line, and no event can be appended; run `acp repair --folder '"
    for who in ("server", "reader"):
        assert told(folder, who).startswith(torn)
    assert "torn line" in append(folder, "reader", "decision_accepted", 6).err
    seen = open_folder(folder).refresh(utc_now()).next_actions
    assert all(each.text.startswith(torn) for each in seen)
    strange = make_v1(tmp_path / "strange")
    change_protocol(strange, schemaVersion=7)
    assert told(strange, "reader").startswith("stop: protocol.json has an unknown schemaVersion")


def test_who_is_alone_is_told_no_event_that_is_always_refused(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting", participants=("server",))
    assert told(folder, "server").startswith(
        "append blocked: a proposal needs at least one reviewer"
    )
    assert append(folder, "server", "proposal_submitted", 1).code == 2
    assert append(folder, "server", "blocked", 1).code == 0


def test_the_word_that_a_conclusion_must_not_contain_is_named(tmp_path: Path) -> None:
    folder, done = make_v1(tmp_path / "run", "passed"), make_v1(tmp_path / "done", "completed")
    text = (done / "conclusion.md").read_text() + "\nThere are no unresolved questions.\n"
    (folder / "conclusion.md").write_text(text)
    (folder / "readiness.md").write_text((done / "readiness.md").read_text())
    line = text.count("\n")
    assert told(folder, "server").endswith(f" It must not contain “unresolved” (line {line}).")
    ran = append(folder, "server", "completed", 1, doc="conclusion.md")
    refused = "conclusion.md must not contain unresolved placeholders before completed"
    assert ran.code == 2 and f"{refused} (line {line}: “unresolved”)" in ran.err
    ran = acp("validate", "--folder", folder)
    assert ran.code == 0 and "“unresolved” counts as a placeholder" in ran.out


def test_a_conclusion_that_names_no_deliverable_is_not_finished(tmp_path: Path) -> None:
    folder, done = make_v2(tmp_path / "run", "passed"), make_v2(tmp_path / "done", "completed")
    for name in ("conclusion.md", "readiness.md"):
        (folder / name).write_text((done / name).read_text())
    assert told(folder, "server") == DONE
    text = (folder / "conclusion.md").read_text().replace("deliverables/decision.md", "it")
    (folder / "conclusion.md").write_text(text)
    assert told(folder, "server").endswith(" It must name the primary deliverable.")
    assert append(folder, "server", "completed", 1, doc="conclusion.md").code == 2


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
