"""A collaboration opened: what its Snapshot says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import Snapshot, Tone, Verdict
from acp_core.protocols.folder.view.timeline import EventLog
from tests.golden.builders.folder import PRIMARY
from tests.protocols.folder.acting import FolderCollaboration, open_folder
from tests.protocols.folder.support import (
    GATES,
    START,
    age,
    change_protocol,
    edit,
    make_v1,
    make_v2,
    read_protocol,
    say,
    write_protocol,
)

NOW = datetime.now(UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def opened(folder: Path, *humans: str) -> FolderCollaboration:
    return open_folder(folder, frozenset(humans))


def shown(folder: Path, *humans: str) -> Snapshot:
    return opened(folder, *humans).refresh(NOW)


def test_events_speak_of_documents_and_lines(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    collaboration = opened(folder)
    events = collaboration.refresh(NOW).events
    review = events[2]
    assert (review.id, review.order, review.kind, review.tone) == (
        "3",
        3,
        "review_submitted",
        Tone.REVIEW,
    )
    assert (review.actor, review.reply_to, review.document) == ("reader", "2", "review.md")
    heading = (folder / "review.md").read_text().split("\n")[(review.line or 0) - 1]
    assert heading.endswith("- reader - seq 3")
    assert (review.at, review.at_source) == (START + timedelta(minutes=20), "recorded")
    assert [event.tone for event in events[-2:]] == [Tone.PASS, Tone.DONE]
    assert len(events) == 11
    assert events[-1] == events[10] == list(events)[10]
    assert [event.id for event in events[2:5]] == ["3", "4", "5"]
    assert [event.id for event in reversed(events)][:2] == ["11", "10"]
    with pytest.raises(IndexError):
        events[11]
    assert json.loads(collaboration.raw_event("3"))["from"] == "reader"
    assert collaboration.raw_event("12") == collaboration.raw_event("x") == ""


def test_ids_are_unique_even_in_a_broken_log(folder: Path) -> None:
    for seq in (2, 2, 7, 5):
        say(folder, "reader", "blocked", seq=seq)
    collaboration = opened(folder)
    events = collaboration.refresh(NOW).events
    assert isinstance(events, EventLog)
    ids = [event.id for event in events]
    assert ids == ["1", "2", "2@3", "2@4", "7@5", "5@6"]
    assert [events.find(each) for each in ids] == [0, 1, 2, 3, 4, 5]
    assert events.find("3") is events.find("2@99") is events.find("2@x") is None
    assert json.loads(collaboration.raw_event("7@5"))["seq"] == 7
    assert "expected seq 3, found 2" in events[2].problem


def test_gates_show_the_line_where_they_are_met_or_nearest(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "passed")
    edit(folder, "readiness.md", f"- [x] {GATES[0]}", f"- [x] {GATES[0].lower()} by all")
    edit(folder, "readiness.md", "Who starts?", "Who starts? TBD")
    gates = {gate.label: gate for gate in shown(folder).gates}
    lines = (folder / "readiness.md").read_text().split("\n")
    assert gates[GATES[1]].met and lines[(gates[GATES[1]].line or 0) - 1] == f"- [x] {GATES[1]}"
    near = gates[GATES[0]]
    assert (near.met, near.evidence) == (False, f"nearest: {GATES[0].lower()} by all")
    assert lines[(near.line or 0) - 1].endswith("by all")
    assert gates["Ready to implement"].met
    edit(folder, "readiness.md", "- [x] Ready to implement", "- [ ] Ready to implement")
    ready = next(gate for gate in shown(folder).gates if gate.label == "Ready to implement")
    assert (ready.met, lines[(ready.line or 0) - 1]) == (False, "- [x] Ready to implement")
    unclassified = gates["Every question is classified"]
    assert (unclassified.met, unclassified.evidence) == (False, "[resolved] Who starts? TBD")
    (folder / "readiness.md").unlink()
    assert {gate.met for gate in shown(folder).gates} == {None}


def test_an_unknown_dialect_is_shown_as_far_as_it_goes(folder: Path) -> None:
    change_protocol(folder, schemaVersion=3)
    snapshot = shown(folder)
    assert (snapshot.dialect, snapshot.doubt) == ("unknown", "unknown schemaVersion")
    assert snapshot.headline.startswith("unknown schemaVersion 3")
    assert len(snapshot.events) == 2
    assert [finding.code for finding in snapshot.findings] == ["ACP131"]
    assert snapshot.turns == snapshot.next_actions == snapshot.needs == ()


def test_a_document_is_listed_once(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "drafting")
    protocol = read_protocol(folder)
    item = {"type": "adr", "file": "proposal.md", "checklist": []}
    protocol["deliverables"] |= {"dir": ".", "supporting": [item, item]}
    change_protocol(folder, deliverables=protocol["deliverables"])
    ids = [document.id for document in shown(folder).documents]
    assert len(set(ids)) == len(ids)
    assert ids[0] == "proposal.md"


def test_deliverables_are_documents(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "completed")
    protocol = read_protocol(folder)
    protocol["deliverables"]["attachments"] = [{"file": "data.csv"}]
    write_protocol(folder, protocol)
    (folder / "deliverables" / "data.csv").write_text("1,2\n")
    age(folder)
    collaboration = opened(folder)
    snapshot = collaboration.refresh(NOW)
    documents = {document.id: document for document in snapshot.documents}
    assert documents[PRIMARY].group == "deliverable"
    assert documents[PRIMARY].path == str(folder / PRIMARY)
    assert (documents["deliverables/data.csv"].kind, documents["README.md"].group) == (
        "text",
        "document",
    )
    assert [d.id for d in snapshot.documents if d.group == "state"] == [
        "protocol.json",
        "events.jsonl",
    ]
    assert collaboration.watched() == {folder, folder / "deliverables"}
    assert collaboration.load(PRIMARY).headings[1].title == "Question"
    assert snapshot.gates[-1].label == f"{PRIMARY} is frozen"


def test_external_deliverables_are_watched_where_they_lie(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "repo" / "run", "reviewing", repo_root="..")
    collaboration = opened(folder)
    snapshot = collaboration.refresh(NOW)
    assert snapshot.document("external:decision.md") is not None
    assert collaboration.watched() == {folder, tmp_path / "repo" / "deliverables"}
    memo = tmp_path / "repo" / "deliverables" / "decision.md"
    memo.unlink()
    memo.parent.rmdir()
    assert collaboration.refresh(after(1)).verdict is Verdict.INVALID
    assert collaboration.watched() == {folder, tmp_path / "repo"}


def test_each_names_the_other(tmp_path: Path) -> None:
    old = make_v1(tmp_path / "old", "revising", blocked="No access")
    new = make_v1(tmp_path / "new", "drafting")
    assert [need.code for need in shown(old).needs] == ["blocked"]
    change_protocol(old, continued_by={"path": "../new", "phase": "blocked", "at": "2026-01-02"})
    change_protocol(new, continues={"path": str(old)})
    snapshot = shown(old)
    assert [(link.relation, link.location, link.name, link.found) for link in snapshot.lineage] == [
        ("continued_by", str(new), "new", True)
    ]
    assert snapshot.needs == ()
    assert [link.location for link in shown(new).lineage] == [str(old)]
    change_protocol(new, continues={"path": "/etc"})
    assert [link.found for link in shown(new).lineage] == [False]


def test_whose_turn_it_is_and_who_is_a_person(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(folder).needs == ()
    need = shown(folder, "reader").needs[0]
    assert (need.code, need.about.participant, need.sentence) == (
        "turn",
        "reader",
        "reader must review the proposal",
    )
    assert (need.key, need.remedy) == ("turn:reader:2", "review_submitted")
    people = [
        {"id": "server"},
        {"id": "reader", "kind": "agent"},
        {"id": "reviewer", "kind": "human"},
    ]
    change_protocol(folder, participants=people)
    snapshot = shown(folder)
    assert [person.kind for person in snapshot.participants] == ["unknown", "agent", "human"]
    assert [need.about.participant for need in snapshot.needs] == ["reviewer"]
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('humans = ["reader"]\n')
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    needs = open_folder(folder, None).refresh(NOW).needs
    assert [need.about.participant for need in needs] == ["reader", "reviewer"]


def test_a_participant_whose_name_is_blank_is_seen_wherever_it_is_named(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "c", participants=("  ", "reader"))
    found = opened(folder).refresh(NOW)
    named = [each.id for each in found.participants]
    named += [each.actor for each in found.events]
    named += [each.participant for each in (*found.next_actions, *found.turns)]
    assert "␣␣" in named and all(name.strip() for name in named), named
    assert "  " not in found.headline
