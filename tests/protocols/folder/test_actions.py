"""What a person can do from the screen: the forms, what they show, and what they do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.folder.acts.creating import create
from acp_core.protocols.folder.rules import checks
from tests.protocols.folder.acting import append, open_folder
from tests.protocols.folder.support import edit, make_v1, make_v2, read_protocol

VALID = ["ACP validation passed"]
HUMANS = frozenset({"reader"})


def offered(folder: Path, humans: frozenset[str] = HUMANS) -> dict[str, Action]:
    now = datetime.now(UTC)
    collaboration = open_folder(folder, humans)
    collaboration.refresh(now)
    return {action.name: action for action in collaboration.actions(now)}


def preview(action: Action, **given: Any) -> Preview:
    return action.preview(action.inputs(**{**action.defaults, **given}))


def perform(action: Action, **given: Any) -> Outcome:
    return action.perform(action.inputs(**{**action.defaults, **given}))


def done(folder: Path, name: str, **given: Any) -> None:
    """Take a turn as a form does: what was shown is then what happens."""
    action = offered(folder)[name]
    shown = preview(action, **given)
    assert not shown.refused and shown.sentence, shown
    outcome = perform(action, **given)
    assert outcome.state is OutcomeState.DONE, outcome
    assert checks.validate(folder).lines() == VALID
    event = log(folder)[-1]
    line = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    after = next(change for change in shown.changes if change.path.endswith("events.jsonl"))
    assert str(event["at"]) in line and f'+{{"seq":{event["seq"]},' in after.diff


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def test_acting_in_an_agents_place_is_said_clearly(tmp_path: Path, fresh: Path) -> None:
    action = offered(fresh)["proposal_submitted"]
    assert action.label == "Act as server: submit the proposal" and action.risky
    assert "act in its place" in action.sentence
    assert "not a human participant" in preview(action).warnings[0]
    own = offered(make_v1(tmp_path / "other", "reviewing"))["review_submitted"]
    assert own.label == "Review the proposal" and not own.risky
    assert not preview(own, position="Yes.").warnings
    assert (
        "not a human participant" in preview(own, position="Y", participant="reviewer").warnings[0]
    )


def test_a_person_can_be_every_participant(tmp_path: Path) -> None:
    """A whole v1 collaboration, taken turn by turn through the forms."""
    folder = tmp_path / "run"
    started = perform(
        create(folder), objective="Choose a cache", participants=["server", "reader"],
        gates=["It is agreed"],
    )  # fmt: skip
    assert started.state is OutcomeState.DONE and started.location == str(folder)
    done(folder, "proposal_submitted", proposal="Push, then poll.")
    text = (folder / "proposal.md").read_text()
    assert "## Current Proposal\n\nPush, then poll.\n\n## Message/API Contracts" in text
    done(folder, "review_submitted", position="In favour.\nIt is simple.", concerns="- Cost.")
    text = (folder / "review.md").read_text()
    assert "- reader - seq 3\n\nContext:\n- Read `proposal.md` after event seq `2`." in text
    assert "Position:\n- In favour.\n- It is simple.\n\nConcerns:\n- Cost.\n" in text
    assert "Questions:\n- None.\n" in text
    done(folder, "proposal_revised", proposal="Push, then poll. Cost: 2 days.")
    done(folder, "decision_proposed", decisions=["Push first.", " ", "Poll every minute."])
    assert "- Push first.\n- Poll every minute.\n" in (folder / "decisions.md").read_text()
    listed = offered(folder)["question_classified"].inputs.model_fields["questions"].default
    assert len(listed) == 1 and listed[0].startswith("[unresolved] ")
    done(folder, "question_classified",
         questions=["[resolved] Who starts? The server.",
                    "[deferred_nonblocking] Metrics. Reason: not needed yet."])  # fmt: skip
    done(folder, "decision_accepted", participant="reader", read=True)
    done(folder, "decision_accepted", participant="server", read=True)
    gates = {"ready": True, "gate_1": True}
    done(folder, "readiness_passed", **gates)
    text = (folder / "readiness.md").read_text()
    assert "- [x] It is agreed\n" in text and "- [x] Ready to implement\n" in text
    done(folder, "completed", outcome="proceed", in_short="Build it.", rationale="It is simple.",
         next_action="Start on Monday.")  # fmt: skip
    text = (folder / "conclusion.md").read_text()
    assert "- [proceed] Build it.\n\n## Rationale\n\nIt is simple.\n" in text
    assert read_protocol(folder)["currentPhase"] == "completed"


def test_a_person_reviews_a_deliverable_with_its_scope(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "reviewing")
    done(folder, "review_submitted", position="Good.")
    text = (folder / "review.md").read_text()
    assert "Reviewed primary deliverable: `deliverables/decision.md`" in text
    done(folder, "review_submitted", position="Good.", participant="reviewer")
    done(folder, "deliverable_revised")
    done(folder, "decision_proposed", decisions=["Push first. It is cheaper."])
    text = (folder / "decisions.md").read_text()
    assert "### D2. Push first\n\n- Decision: Push first. It is cheaper.\n- Reflected in: `" in text


def test_blocking_says_that_a_person_did_it(folder: Path) -> None:
    action = offered(folder, frozenset())["block"]
    assert action.risky
    field = action.inputs.model_fields["participant"]
    assert field.default == "reader"  # who is waited for comes first
    with pytest.raises(ValidationError):
        action.inputs(reason="x", participant="ghost")
    with pytest.raises(ValidationError):
        action.inputs(reason="")
    assert "describe the blocker" in preview(action, reason=" ").refused
    shown = preview(action, reason="No budget.", participant="reviewer")
    assert shown.command[:2] == ("acp", "append") and "blocked" in shown.command
    assert perform(action, reason="No budget.", participant="reviewer").state is OutcomeState.DONE
    event = log(folder)[-1]
    assert (event["from"], event["event"]) == ("reviewer", "blocked")
    assert event["summary"] == "No budget. (said by a human coordinator on behalf of reviewer)"
    assert "block" not in offered(folder)


def test_a_person_blocks_in_their_own_name(folder: Path) -> None:
    perform(offered(folder)["block"], reason="I am away.")
    assert (log(folder)[-1]["from"], log(folder)[-1]["summary"]) == ("reader", "I am away.")


def test_what_the_protocol_refuses_the_form_refuses(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    accept = offered(folder)["decision_accepted"]
    assert "read decisions.md first" in preview(accept).refused
    assert "blocking readiness items must be cleared" in preview(accept, read=True).refused
    outcome = perform(accept, read=True)
    assert outcome.state is OutcomeState.REFUSED and "blocking readiness" in outcome.sentence
    classify = offered(folder)["question_classified"]
    before = (folder / "readiness.md").read_bytes()
    for line, said in (
        ("Who starts?", "must begin with its class"),
        ("[open] Who starts?", "must begin with its class"),
        ("[resolved]", "names no question"),
        ("[deferred_nonblocking] Metrics.", "add `Reason: ...`"),
    ):
        assert said in preview(classify, questions=[line]).refused
        assert perform(classify, questions=[line]).state is OutcomeState.REFUSED
    assert (folder / "readiness.md").read_bytes() == before and len(log(folder)) == 6


def test_a_form_that_is_overtaken_writes_nothing(folder: Path) -> None:
    action = offered(folder)["review_submitted"]
    assert not preview(action, position="Yes.").refused
    assert append(folder, "reader", "review_submitted", 2).code == 0
    before = (folder / "review.md").read_bytes()
    outcome = perform(action, position="Yes.")
    assert outcome.state is OutcomeState.REFUSED and "reserved for reviewer" in outcome.sentence
    assert (folder / "review.md").read_bytes() == before and len(log(folder)) == 3


def test_classifying_changes_only_the_lines_that_change(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "decision_review")
    path = folder / "readiness.md"
    path.write_text(path.read_text().replace("\n", "\r\n"), newline="")
    before = path.read_bytes().split(b"\r\n")
    done(folder, "question_classified",
         questions=["[resolved] Who starts? I do.",
                    "[deferred_nonblocking] Metrics. Reason: not needed yet.",
                    "[resolved] Anything else? No."])  # fmt: skip
    after = path.read_bytes().split(b"\r\n")
    assert [line for line in after if line not in before] == [
        b"- [resolved] Who starts? I do.",
        b"- [resolved] Anything else? No.",
    ]
    assert [line for line in before if line not in after] == [b"- [unresolved] Who starts?"]


def test_a_new_collaboration_is_shown_before_it_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    action = create(folder)
    given: dict[str, Any] = {
        "objective": "Choose a cache", "participants": ["server", "reader"],
        "gates": ["It is agreed"], "dialect": "v2", "deliverable": "adr",
    }  # fmt: skip
    shown = preview(action, **given)
    assert not shown.refused and not folder.exists()
    assert {Path(change.path).name for change in shown.changes} == {
        "README.md", "proposal.md", "review.md", "decisions.md", "readiness.md",
        "conclusion.md", "adr.md", "events.jsonl", "protocol.json",
    }  # fmt: skip
    proposal = next(c for c in shown.changes if c.path.endswith("proposal.md"))
    assert proposal.verb == "create" and "+Choose a cache" in proposal.diff
    assert shown.command[:3] == ("acp", "new", str(folder))
    assert perform(action, **given).state is OutcomeState.DONE
    assert checks.validate(folder).lines() == VALID
    assert "already contains protocol.json" in preview(action, **given).refused
    assert perform(action, **given).state is OutcomeState.REFUSED
    for change, said in (
        ({"participants": ["one"]}, "at least two non-blank “Participants”"),
        ({"participants": ["a b", "c"]}, "an id has 1 to 64"),
        ({"gates": [" "]}, "at least one non-blank “Completion gates”"),
        ({"deliverable": "custom"}, "custom deliverables require"),
    ):
        refused = preview(create(tmp_path / "other"), **(given | change)).refused
        assert said in refused
    custom = {"deliverable": "custom", "file": "plan.md", "checklist": ["Steps"]}
    assert perform(create(tmp_path / "c"), **(given | custom)).state is OutcomeState.DONE
    assert "## Steps" in (tmp_path / "c" / "deliverables" / "plan.md").read_text()
