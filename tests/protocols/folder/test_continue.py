"""Going on in a new folder after a collaboration was blocked or completed."""

from __future__ import annotations

import json
from pathlib import Path

from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import documents
from tests.protocols.folder.acting import acp, append
from tests.protocols.folder.support import (
    change_protocol,
    edit,
    make_v1,
    make_v2,
    read_protocol,
    write_protocol,
)

VALID = ["ACP validation passed"]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_blocked_collaboration_goes_on_with_the_answer_on_top(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising", blocked="Nobody knows the budget.")
    change_protocol(folder, participants=[{"id": "reader", "kind": "human"}, "server", "reviewer"],
                    x_team="storage", version_note="kept")  # fmt: skip
    edit(folder, "decisions.md", "# Accepted Decisions", "# Accepted Decisions\n\n- Push first.")
    ran = acp("continue", folder, "--answer", "It is 20 days.\n\nAsk again in May.")
    new = tmp_path / "run-2"
    assert ran.code == 0 and ran.out == f"Continued in {new}\n", ran
    assert checks.validate(new).lines() == VALID and checks.validate(folder).lines() == VALID
    protocol, old = read_protocol(new), read_protocol(folder)
    at = protocol["createdAt"]
    assert protocol["continues"] == {"path": "../run", "phase": "blocked", "at": at}
    assert old["continued_by"] == {"path": "../run-2", "phase": "blocked", "at": at}
    assert protocol["participants"] == ["server", {"id": "reader", "kind": "human"}, "reviewer"]
    assert protocol["proposalOwner"] == "server" and protocol["waitingFor"] == ["server"]
    assert protocol["x_team"] == "storage" and protocol["version_note"] == "kept"
    assert protocol["completionGates"] == old["completionGates"]
    event = json.loads((new / "events.jsonl").read_text())
    assert (event["from"], event["summary"]) == ("server", "Continued from run")
    proposal = (new / "proposal.md").read_text()
    order = ["`../run`", "blocked by reviewer (seq 5,", "> Nobody knows the budget.",
             "## Answer", "It is 20 days.", "Ask again in May.", "## What Was Proposed Before",
             "Push, then poll."]  # fmt: skip
    places = [proposal.index(text) for text in order]
    assert places == sorted(places)
    assert "- Push first." in (new / "decisions.md").read_text()


def test_reviews_and_questions_are_carried_and_gates_are_open_again(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check", blocked="It broke.")
    edit(folder, "readiness.md", "- [resolved] Who starts?", "- [blocking] Who starts?")
    assert acp("continue", folder, "--answer", "We do.").code == 0
    new = tmp_path / "run-2"
    review = documents.scan_review((new / "review.md").read_text())
    assert not review.headings and "### 2026-01-02T" in (new / "review.md").read_text()
    readiness = documents.scan_readiness((new / "readiness.md").read_text())
    assert [(item.word, item.text) for item in readiness.items[1:]] == [
        ("blocking", "Who starts?"),
        ("deferred_nonblocking", "Metrics. Reason: not needed yet."),
    ]
    assert readiness.items[0].word == "unresolved"
    assert readiness.checked == {} and readiness.ready is None
    assert len([box for box in readiness.boxes if not box.checked]) == 2 + 5


def test_a_completed_one_goes_on_with_another_objective(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run-7", "completed")
    ran = acp("continue", "--folder", folder, "--objective", "Now build it", "--json")
    told = json.loads(ran.out)
    new = tmp_path / "run-8"
    assert told["schema"] == "acp.continue/1" and told["folder"] == str(new)
    assert read_protocol(new)["objective"] == "Now build it"
    proposal = (new / "proposal.md").read_text()
    assert "It was completed by server (seq 11," in proposal and "Now build it" in proposal
    assert checks.validate(new).lines() == checks.validate(folder).lines() == VALID


def test_deliverables_are_carried_as_drafts(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "completed")
    assert acp("continue", folder, "--answer", "One more thing.").code == 0
    new = tmp_path / "run-2"
    old_text = (folder / "deliverables" / "decision.md").read_text()
    new_text = (new / "deliverables" / "decision.md").read_text()
    assert new_text == old_text.replace("Status: Frozen", "Status: Draft")
    assert "### D1. " in (new / "decisions.md").read_text()
    assert checks.validate(new).lines() == VALID
    protocol = read_protocol(new)
    assert protocol["deliverables"] == read_protocol(folder)["deliverables"]


def test_external_deliverables_stay_where_they_are(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "repo" / "run", "revising", repo_root="..", blocked="No budget.")
    deliverable = tmp_path / "repo" / "deliverables" / "decision.md"
    before = deliverable.read_bytes()
    outside = acp("continue", folder, "--to", tmp_path / "else", "--answer", "Yes.")
    assert outside.code == 2 and "inside repoRoot" in outside.err
    new = tmp_path / "repo" / "deep" / "next"
    assert acp("continue", folder, "--to", new, "--answer", "Yes.").code == 0
    assert read_protocol(new)["repoRoot"] == "../.." and deliverable.read_bytes() == before
    assert not list(new.rglob("decision.md"))
    assert checks.validate(new).lines() == VALID


def test_a_chain_of_continuations_names_each_neighbour(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="First.")
    assert acp("continue", folder, "--answer", "Go on.").code == 0
    second = tmp_path / "run-2"
    assert append(second, "reader", "blocked", 1, "Second.").code == 0
    assert acp("continue", second, "--answer", "Go on again.").code == 0
    third = tmp_path / "run-3"
    assert read_protocol(second)["continues"]["path"] == "../run"
    assert read_protocol(second)["continued_by"]["path"] == "../run-3"
    assert read_protocol(third)["continues"]["path"] == "../run-2"
    assert "continued_by" not in read_protocol(third)
    proposal = (third / "proposal.md").read_text()
    assert proposal.index("> Second.") < proposal.index("> First.")


def test_it_is_continued_once(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    assert acp("continue", folder, "--answer", "Yes.").code == 0
    before = files(tmp_path)
    again = acp("continue", folder, "--answer", "Yes, really.")
    assert again.code == 0 and again.out == f"Already continued in {tmp_path}/run-2\n"
    elsewhere = acp("continue", folder, "--to", tmp_path / "other", "--answer", "Yes.")
    assert elsewhere.code == 2 and "already continued in" in elsewhere.err
    assert files(tmp_path) == before


def test_what_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed before its last file, with a temporary one left beside the others."""
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    old = read_protocol(folder)
    assert acp("continue", folder, "--answer", "Yes.").code == 0
    new = tmp_path / "run-2"
    done = {name: data for name, data in files(new).items() if not name.endswith("protocol.json")}
    (new / "protocol.json").unlink()
    (new / f".protocol.json.{'0' * 16}.acp-tmp").write_text("half of i")
    write_protocol(folder, old)
    again = acp("continue", folder, "--answer", "Yes.")
    assert again.code == 0 and again.out == f"Continued in {new}\n", again
    assert done.items() <= files(new).items()
    assert checks.validate(new).lines() == checks.validate(folder).lines() == VALID


def test_a_path_in_protocol_json_does_not_choose_where_it_is_written(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    for path in (str(tmp_path / "elsewhere"), "../elsewhere", "a\0b", "x" * 5000):
        change_protocol(folder, continued_by={"path": path})
        assert acp("continue", folder, "--answer", "x", "--to", folder).code == 2
    (tmp_path / "elsewhere").mkdir()
    assert acp("continue", folder, "--answer", "Yes.").out == f"Continued in {tmp_path}/run-2\n"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert read_protocol(folder)["continued_by"]["path"] == "../run-2"


def test_what_cannot_be_continued(tmp_path: Path) -> None:
    live = make_v1(tmp_path / "live", "reviewing")
    ran = acp("continue", live, "--answer", "x")
    assert ran.code == 2 and "this one is in reviewing" in ran.err
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    silent = acp("continue", folder)
    assert silent.code == 2 and "--answer must not be blank" in silent.err
    inside = acp("continue", folder, "--answer", "x", "--to", folder / "next")
    assert inside.code == 2 and "must not be inside the old one" in inside.err
    same = acp("continue", folder, "--answer", "x", "--to", folder)
    assert same.code == 2
    busy = tmp_path / "busy"
    busy.mkdir()
    (busy / "notes.txt").write_text("mine")
    other = acp("continue", folder, "--answer", "x", "--to", busy)
    assert other.code == 2 and "holds other files (notes.txt)" in other.err
    assert acp("continue", folder, "--answer", "x", "--to", live).code == 2
    assert [path.name for path in busy.iterdir()] == ["notes.txt"]
    assert acp("continue", tmp_path / "nowhere", "--answer", "x").code == 2
    assert acp("continue", folder, "--folder", live, "--answer", "x").code == 2


def test_the_answer_may_come_from_a_file(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="No budget.")
    file = tmp_path / "answer.md"
    file.write_text("A long answer.\n")
    assert acp("continue", folder, "--answer-file", file, "--to", tmp_path / "new").code == 0
    assert "A long answer." in (tmp_path / "new" / "proposal.md").read_text()
    assert acp("continue", folder, "--answer-file", tmp_path / "none").code == 2


def test_a_broken_log_is_left_behind_by_continuing(tmp_path: Path, folder: Path) -> None:
    """Numbers that stand twice cannot be mended: blocked, then a new folder."""
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes() + log.read_bytes().splitlines(keepends=True)[1])
    assert append(folder, "reader", "blocked", 1, "The log is broken.").code == 0
    assert acp("continue", folder, "--answer", "We start over.").code == 0
    assert checks.validate(tmp_path / "run-2").lines() == VALID


def test_two_blockers_are_both_carried_on_the_first_one_first(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing", blocked="Nobody knows the budget.")
    assert append(folder, "reader", "blocked", 1, "The tests are gone, too.").code == 0

    ran = acp("continue", folder, "--to", tmp_path / "next", "--answer", "Ten; they are back.")
    assert ran.code == 0
    text = (tmp_path / "next" / "proposal.md").read_text()
    first, second, answer = map(text.index, ("> Nobody knows", "> The tests are", "Ten; they"))
    assert first < second < answer
