"""A collaboration opened: what its Snapshot says."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import (
    PhaseState,
    Severity,
    Snapshot,
    Source,
    SourceState,
    Status,
    Tone,
    Verdict,
)
from acp_core.protocols.folder.collaboration import FolderCollaboration, open_folder
from acp_core.protocols.folder.view.timeline import EventLog
from tests.protocols.folder.support import (
    GATES,
    PRIMARY,
    START,
    UPTO,
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
    return open_folder(str(folder), humans=frozenset(humans))


def shown(folder: Path, *humans: str) -> Snapshot:
    return opened(folder, *humans).refresh(NOW)


def test_a_collaboration_under_review(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "cache-invalidation", "reviewing")
    snapshot = shown(folder)
    assert snapshot.key == str(folder)
    assert (snapshot.protocol, snapshot.dialect, snapshot.name) == (
        "folder",
        "v1",
        "cache-invalidation",
    )
    assert snapshot.objective == "Choose how the cache is invalidated"
    assert snapshot.headline == "reviewing. Waiting for reader and reviewer."
    assert (snapshot.status, snapshot.phase, snapshot.round) == (Status.ACTIVE, "reviewing", 1)
    assert (snapshot.verdict, snapshot.source, snapshot.doubt) == (Verdict.VALID, Source(), "")
    assert (snapshot.started, snapshot.changed) == (START, START + timedelta(minutes=10))
    assert snapshot.since == snapshot.changed
    assert [(t.participant, t.what, t.since, t.since_event) for t in snapshot.turns] == [
        ("reader", "review the proposal", START + timedelta(minutes=10), "2"),
        ("reviewer", "review the proposal", START + timedelta(minutes=10), "2"),
    ]
    assert [(p.id, p.kind, p.role, p.last_event) for p in snapshot.participants] == [
        ("server", "unknown", "proposal owner", "2"),
        ("reader", "unknown", "reviewer", None),
        ("reviewer", "unknown", "reviewer", None),
    ]
    assert [(a.participant, a.waited) for a in snapshot.next_actions] == [
        ("server", False),
        ("reader", True),
        ("reviewer", True),
    ]
    assert snapshot.next_actions[0].text.startswith("wait for the listed reviewer(s); do not edit")
    assert (snapshot.findings, snapshot.needs, snapshot.notices, snapshot.recheck_at) == (
        (),
        (),
        (),
        None,
    )


@pytest.mark.parametrize("make", [make_v1, make_v2])
def test_every_phase_in_its_turn(tmp_path: Path, make: Callable[..., Path]) -> None:
    before = -1.0
    for upto in UPTO:
        snapshot = shown(make(tmp_path / upto, upto))
        assert snapshot.verdict is Verdict.VALID
        assert snapshot.progress is not None and snapshot.progress > before
        before = snapshot.progress
        phases = {"classified": "decision_review", "passed": "readiness_check"}
        assert snapshot.phase == phases.get(upto, upto)
        current = [phase.id for phase in snapshot.phases if phase.state is PhaseState.CURRENT]
        assert current == [snapshot.phase]
        assert all(phase.state is not PhaseState.SKIPPED for phase in snapshot.phases)
    assert before == 1.0
    assert (snapshot.status, snapshot.headline) == (Status.COMPLETED, "completed: proceed.")
    assert snapshot.turns == ()


def test_a_second_round_is_a_second_visit(tmp_path: Path) -> None:
    snapshot = shown(make_v1(tmp_path / "run", "reviewing", rounds=2))
    assert snapshot.headline == "reviewing, round 2. Waiting for reader and reviewer."
    assert [phase.label for phase in snapshot.phases] == [
        "drafting", "reviewing", "revising", "decision review", "readiness", "completed",
    ]  # fmt: skip
    visits = {phase.id: phase.visits for phase in snapshot.phases}
    assert [visit.round for visit in visits["reviewing"]] == [1, 2]
    assert visits["reviewing"][0].left == visits["revising"][0].entered
    assert visits["reviewing"][1].left is None
    states = {phase.id: phase.state for phase in snapshot.phases}
    assert states["revising"] is PhaseState.AHEAD


def test_a_blocked_collaboration_stands_where_it_stopped(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising", blocked="No access to the broker")
    snapshot = shown(folder)
    assert (snapshot.status, snapshot.phase) == (Status.BLOCKED, "blocked")
    assert snapshot.headline == "blocked in revising by reviewer: No access to the broker"
    current = next(phase for phase in snapshot.phases if phase.state is PhaseState.CURRENT)
    assert current.id == "revising"
    assert current.visits[-1].left == snapshot.changed
    need = snapshot.needs[0]
    assert (need.code, need.key, need.action) == ("blocked", "blocked:5", "continue")
    assert need.text == "blocked by reviewer: No access to the broker"
    assert need.participant == "reviewer"


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


def test_ids_are_unique_even_in_a_broken_log(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
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


def test_findings_point_to_events_and_documents(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    (folder / "review.md").write_text("# Reviews\n")
    say(folder, "reader", "review_submitted", "Too late", at="2026-01-02T05:00:00Z")
    age(folder)
    snapshot = shown(folder)
    assert snapshot.doubt == "seq 5 is illegal"
    findings = {(finding.code, finding.event): finding for finding in snapshot.findings}
    illegal = findings["ACP401", "5"]
    assert (illegal.document, illegal.line, illegal.severity) == ("events.jsonl", 5, Severity.ERROR)
    assert illegal.explanation and illegal.remedy
    assert findings["ACP301", "3"].document == "review.md"
    assert findings["ACP301", "3"].action == "repair"


def test_an_unknown_dialect_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
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


def test_without_protocol_json_the_rest_is_shown(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    (folder / "protocol.json").unlink()
    snapshot = shown(folder)
    assert snapshot.source == Source(SourceState.STALE, "protocol.json: missing")
    assert "participants are taken from the log" in snapshot.doubt
    assert [person.id for person in snapshot.participants] == ["server", "reader", "reviewer"]
    assert (snapshot.phase, len(snapshot.events)) == ("revising", 4)
    assert [need.action for need in snapshot.needs] == ["repair"]


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    assert shown(folder).needs == ()
    need = shown(folder, "reader").needs[0]
    assert (need.code, need.participant, need.text) == (
        "turn",
        "reader",
        "reader must review the proposal",
    )
    assert (need.key, need.action) == ("turn:reader:2", "review_submitted")
    people = [
        {"id": "server"},
        {"id": "reader", "kind": "agent"},
        {"id": "reviewer", "kind": "human"},
    ]
    change_protocol(folder, participants=people)
    snapshot = shown(folder)
    assert [person.kind for person in snapshot.participants] == ["unknown", "agent", "human"]
    assert [need.participant for need in snapshot.needs] == ["reviewer"]
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('humans = ["reader"]\n')
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    needs = open_folder(str(folder)).refresh(NOW).needs
    assert [need.participant for need in needs] == ["reader", "reviewer"]


def test_a_participant_whose_name_is_blank_is_seen_wherever_it_is_named(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "c", participants=("  ", "reader"))
    found = opened(folder).refresh(NOW)
    named = [each.id for each in found.participants]
    named += [each.actor for each in found.events]
    named += [each.participant for each in (*found.next_actions, *found.turns)]
    assert "␣␣" in named and all(name.strip() for name in named), named
    assert "  " not in found.headline
