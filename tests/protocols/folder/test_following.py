"""A collaboration while others write it: what is new is shown, what is half written is not."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.files.locked import locked
from acp_core.files.reading import Stamp, stamp
from acp_core.model import Snapshot, SourceState, Verdict
from acp_core.protocols.folder.read import facts
from acp_core.protocols.folder.rules.checks import validate
from tests.protocols.folder.acting import FolderCollaboration, open_folder
from tests.protocols.folder.support import (
    age,
    change_protocol,
    extend,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
    say,
    write_protocol,
)

NOW = datetime.now(UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def opened(folder: Path) -> tuple[FolderCollaboration, Snapshot]:
    collaboration = open_folder(folder)
    return collaboration, collaboration.refresh(NOW)


def event(seq: int, sender: str, kind: str, **fields: object) -> bytes:
    """A line of the log."""
    at = "2026-01-02T05:04:05Z"
    common = {"seq": seq, "from": sender, "event": kind, "at": at, "summary": "x", "reply_to": 2}
    return line_of(common | fields)


def add(folder: Path, data: bytes) -> None:
    extend(folder, data)


def test_the_same_snapshot_while_nothing_changes(tmp_path: Path) -> None:
    collaboration, first = opened(make_v1(tmp_path / "run", "reviewing"))
    assert collaboration.refresh(after(60)) is first
    assert first.as_of == NOW


def test_an_appended_event_is_shown_and_the_rest_stays_the_same(folder: Path) -> None:
    collaboration, first = opened(folder)
    review = "\n## t - reader - seq 3\n\nPosition:\n- Fine.\n"
    (folder / "review.md").write_text((folder / "review.md").read_text() + review)
    say(folder, "reader", "review_submitted", doc="review.md")
    second = collaboration.refresh(after(1))
    assert (len(first.events), len(second.events)) == (2, 3)
    assert [turn.participant for turn in second.turns] == ["reviewer"]
    assert second.turns[0].since == first.turns[1].since
    assert (second.verdict, second.as_of) == (Verdict.VALID, after(1))
    assert second.phases is first.phases and second.gates is first.gates
    assert second.findings is first.findings
    assert second.document("proposal.md") is first.document("proposal.md")
    changed = {d.id for d, e in zip(first.documents, second.documents, strict=True) if d != e}
    assert changed == {"review.md", "protocol.json", "events.jsonl"}


def test_an_edited_document_leaves_the_events_alone(fresh: Path) -> None:
    collaboration, first = opened(fresh)
    (fresh / "proposal.md").write_text("# Another\n")
    second = collaboration.refresh(after(1))
    assert second is not first and second.events is first.events
    assert second.document("proposal.md") != first.document("proposal.md")


def _coarse(path: str) -> Stamp | None:
    """A file's stamp where the clock of the file system does not tell two writes apart."""
    found = stamp(path)
    return found._replace(changed=0) if found else None


def test_two_edits_within_one_tick_of_the_clock_are_both_seen(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "stamp", _coarse)
    collaboration, _ = opened(fresh)
    at = (time.time_ns() + 60 * 10**9,) * 2  # just now, however slow the machine is
    (fresh / "proposal.md").write_text("# One\n")
    os.utime(fresh / "proposal.md", ns=at)
    first = collaboration.refresh(after(1)).document("proposal.md")
    (fresh / "proposal.md").write_text("# Two\n")
    os.utime(fresh / "proposal.md", ns=at)
    second = collaboration.refresh(after(2)).document("proposal.md")
    assert first and second and first.version != second.version


def test_two_changes_of_protocol_json_within_one_tick_are_both_seen(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "stamp", _coarse)
    path, at = fresh / "protocol.json", (time.time_ns() + 60 * 10**9,) * 2
    collaboration, _ = opened(fresh)
    seen = []
    for seconds, objective in enumerate(("Objective one", "Objective two"), 1):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"objective": objective}))
        os.utime(path, ns=at)
        seen.append(collaboration.refresh(after(seconds)).objective)
    assert seen == ["Objective one", "Objective two"]


def test_protocol_json_half_written_keeps_what_was_there(folder: Path) -> None:
    whole = (folder / "protocol.json").read_bytes()
    for half in (b"", whole[:100], whole + whole[-20:]):
        collaboration, first = opened(folder)
        (folder / "protocol.json").write_bytes(half)
        second = collaboration.refresh(after(1))
        assert second.source.state is SourceState.STALE
        assert second.source.note.startswith("protocol.json is being written")
        assert (second.headline, second.verdict, second.findings, second.needs) == (
            first.headline,
            Verdict.VALID,
            (),
            (),
        )
        assert (second.as_of, second.recheck_at) == (NOW, after(3))
        (folder / "protocol.json").write_bytes(whole)
        third = collaboration.refresh(after(2))
        assert (third.source.state, third.recheck_at) == (SourceState.LIVE, None)


def test_protocol_json_that_stays_damaged_is_an_alarm(folder: Path) -> None:
    collaboration, _ = opened(folder)
    (folder / "protocol.json").write_bytes(b"")
    assert collaboration.refresh(after(1)).verdict is Verdict.VALID
    second = collaboration.refresh(after(3))
    assert second.verdict is Verdict.INVALID
    assert [finding.code for finding in second.findings] == ["ACP110"]
    assert second.source.state is SourceState.STALE
    assert (second.phase, len(second.participants)) == ("reviewing", 3)
    third = collaboration.refresh(after(5))
    assert [(need.code, need.remedy) for need in third.needs] == [("invalid", "repair")]


def test_a_new_folder_that_is_being_written_waits(fresh: Path) -> None:
    whole = (fresh / "protocol.json").read_bytes()
    (fresh / "protocol.json").write_bytes(b"{")
    collaboration = open_folder(fresh)
    now = datetime.now(UTC)
    first = collaboration.refresh(now)
    assert (first.verdict, first.source.state) == (Verdict.UNKNOWN, SourceState.STALE)
    assert first.needs == () and first.recheck_at is not None
    (fresh / "protocol.json").write_bytes(whole)
    second = collaboration.refresh(now + timedelta(seconds=1))
    assert (second.verdict, second.source.state) == (Verdict.VALID, SourceState.LIVE)


def test_between_the_log_and_protocol_json_there_is_no_alarm(fresh: Path) -> None:
    collaboration, _ = opened(fresh)
    add(fresh, event(2, "server", "proposal_submitted", reply_to=1))
    second = collaboration.refresh(after(1))
    assert (second.phase, second.verdict, second.findings) == ("reviewing", Verdict.VALID, ())
    assert second.recheck_at == after(3)
    change_protocol(fresh, currentPhase="reviewing", waitingFor=["reader", "reviewer"])
    third = collaboration.refresh(after(2))
    assert (third.verdict, third.recheck_at) == (Verdict.VALID, None)


def test_protocol_json_that_lags_for_long_is_a_need(fresh: Path) -> None:
    collaboration, _ = opened(fresh)
    add(fresh, event(2, "server", "proposal_submitted", reply_to=1))
    collaboration.refresh(after(1))
    late = collaboration.refresh(after(3))
    assert late.verdict is Verdict.INVALID
    assert {finding.code for finding in late.findings} == {"ACP150", "ACP151", "ACP920"}
    assert [(need.code, need.key, need.remedy) for need in late.needs] == [
        ("lagging", "lagging:2", "repair")
    ]
    assert late.headline == "reviewing. Waiting for reader and reviewer."
    assert collaboration.refresh(after(9)) is late
    change_protocol(fresh, currentPhase="reviewing", waitingFor=["reader", "reviewer"])
    mended = collaboration.refresh(after(10))
    assert (mended.verdict, mended.needs) == (Verdict.VALID, ())


def test_an_old_lag_is_seen_at_once(folder: Path) -> None:
    change_protocol(folder, currentPhase="drafting", waitingFor=["server"])
    _, first = opened(folder)
    assert [need.code for need in first.needs] == ["lagging"]
    assert first.needs[0].since is not None and first.needs[0].since < NOW


def test_an_invalid_folder_is_a_need_after_two_seconds(folder: Path) -> None:
    collaboration, _ = opened(folder)
    (folder / "state.log").write_text("")
    second = collaboration.refresh(after(10))
    assert (second.verdict, second.needs, second.recheck_at) == (Verdict.INVALID, (), after(12))
    third = collaboration.refresh(after(12))
    assert third.needs[0].key.startswith("invalid:ACP102:")
    assert third.needs[0].sentence.startswith("invalid: state.log is not part of the protocol")
    assert third.needs[0].since == after(10)
    (folder / "decisions.md").unlink()
    fourth = collaboration.refresh(after(13))
    assert fourth.needs[0].key.startswith("invalid:ACP101,ACP102:")
    assert fourth.needs[0].sentence.endswith("(and 1 more)")


def test_half_a_line_is_not_there_yet(fresh: Path) -> None:
    collaboration, first = opened(fresh)
    line = event(2, "server", "proposal_submitted", reply_to=1)
    add(fresh, line[:30])
    second = collaboration.refresh(after(1))
    assert (len(second.events), second.verdict) == (1, Verdict.VALID)
    assert second.events is first.events
    late = collaboration.refresh(after(3))
    assert [finding.code for finding in late.findings] == ["ACP207"]
    assert len(late.events) == 1
    add(fresh, line[30:])
    change_protocol(fresh, currentPhase="reviewing", waitingFor=["reader", "reviewer"])
    whole = collaboration.refresh(after(4))
    assert (len(whole.events), whole.verdict, whole.findings) == (2, Verdict.VALID, ())


def test_a_whole_event_without_its_newline_counts_once(fresh: Path) -> None:
    collaboration, _ = opened(fresh)
    add(fresh, event(2, "server", "proposal_submitted", reply_to=1)[:-1])
    change_protocol(fresh, currentPhase="reviewing", waitingFor=["reader", "reviewer"])
    collaboration.refresh(after(1))
    late = collaboration.refresh(after(3))
    assert (len(late.events), late.phase, late.verdict) == (2, "reviewing", Verdict.VALID)
    assert [finding.code for finding in late.findings] == ["ACP906"]
    assert collaboration.refresh(after(9)) is late
    add(fresh, b"\n" + event(3, "reader", "blocked"))
    change_protocol(fresh, currentPhase="blocked", waitingFor=[])
    ended = collaboration.refresh(after(10))
    assert [each.kind for each in ended.events] == ["initialized", "proposal_submitted", "blocked"]
    assert ended.findings == ()
    assert len(late.events) == 2  # what was shown stays as it was


def test_a_log_that_was_rewritten_is_noticed_and_remembered(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    collaboration, _ = opened(folder)
    log = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(log.replace(b"Reviewed the", b"Reviewed THE", 1))
    second = collaboration.refresh(after(1))
    assert (second.verdict, second.events[2].summary) == (Verdict.VALID, "Reviewed THE proposal")
    text = "events.jsonl was rewritten: recorded history has changed"
    assert [(notice.code, notice.sentence) for notice in second.notices] == [("rewritten", text)]
    assert [finding.code for finding in second.findings] == ["ACP921"]
    say(folder, "server", "proposal_revised")
    assert "ACP921" in [finding.code for finding in collaboration.refresh(after(2)).findings]


def test_a_log_that_becomes_shorter_is_waited_for_then_shown(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    collaboration, first = opened(folder)
    whole = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(b"")
    second = collaboration.refresh(after(1))
    assert second.source.state is SourceState.STALE
    assert second.events is first.events and second.recheck_at == after(3)
    assert collaboration.refresh(after(1.5)) is second
    (folder / "events.jsonl").write_bytes(whole)
    third = collaboration.refresh(after(2))
    assert (third.source.state, third.notices) == (SourceState.LIVE, ())
    assert third.events is first.events
    (folder / "events.jsonl").write_bytes(whole.split(b"\n")[0] + b"\n")
    collaboration.refresh(after(3))
    fourth = collaboration.refresh(after(6))
    assert len(fourth.events) == 1
    assert [notice.code for notice in fourth.notices] == ["rewritten"]


def test_a_folder_that_goes_away_leaves_its_last_picture(tmp_path: Path, folder: Path) -> None:
    collaboration, first = opened(folder)
    folder.rename(tmp_path / "moved")
    collaboration.refresh(after(1))
    gone = collaboration.refresh(after(9))
    assert gone.source.state is SourceState.UNREACHABLE
    assert (gone.objective, len(gone.events)) == (first.objective, 2)
    (tmp_path / "moved").rename(folder)
    back = collaboration.refresh(after(10))
    assert (back.source.state, back.verdict) == (SourceState.LIVE, Verdict.VALID)


def test_participants_that_change_are_taken_into_account(folder: Path) -> None:
    collaboration, _ = opened(folder)
    protocol = read_protocol(folder)
    protocol["participants"].append({"id": "late"})
    write_protocol(folder, protocol)
    second = collaboration.refresh(after(1))
    assert [turn.participant for turn in second.turns] == ["late", "reader", "reviewer"]
    assert len(second.events) == 2


def test_a_deliverable_that_changes_after_it_was_frozen(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "passed")
    collaboration, first = opened(folder)
    assert first.verdict is Verdict.VALID
    extend(folder / "deliverables", "More.\n", "decision.md")
    second = collaboration.refresh(after(1))
    assert [finding.code for finding in second.findings] == ["ACP504"]


def test_a_review_whose_event_is_just_being_appended_is_no_fault(folder: Path) -> None:
    collaboration, first = opened(folder)
    with locked(str(folder / "events.jsonl")):  # as `acp append --review-file` has it
        (folder / "review.md").write_text("\n## t - reader - seq 3\n")
        second = collaboration.refresh(after(1))
        assert (second.findings, second.verdict) == ((), Verdict.VALID)
        assert second.headline == first.headline
        assert second.source.note == "an event is being appended"
    assert second.recheck_at is not None  # whoever appends may be killed
    assert [f.code for f in collaboration.refresh(second.recheck_at).findings] == ["ACP302"]


def test_a_heading_is_missed_or_found_as_reviews_come(folder: Path) -> None:
    collaboration, _ = opened(folder)
    heading = "\n## t - reader - seq 3\n"
    (folder / "review.md").write_text(heading)
    assert [f.code for f in collaboration.refresh(after(1)).findings] == ["ACP302"]
    say(folder, "reader", "review_submitted")
    assert collaboration.refresh(after(2)).findings == ()
    say(folder, "reviewer", "review_submitted")
    found = collaboration.refresh(after(3)).findings
    assert [(f.code, f.event) for f in found] == [("ACP301", "4")]
    (folder / "review.md").write_text(heading + "## t - reader - seq 4\n")
    assert [f.code for f in collaboration.refresh(after(4)).findings] == ["ACP304"]
    (folder / "review.md").write_text(heading + "## t - reviewer - seq 4\n")
    assert collaboration.refresh(after(5)).findings == ()


def test_following_gives_what_a_fresh_look_gives(tmp_path: Path) -> None:
    """Event by event and file by file, the same as reading everything anew."""
    story = make_v2(tmp_path / "story", "completed", rounds=2)
    lines = (story / "events.jsonl").read_bytes().splitlines(keepends=True)
    folder = make_v2(tmp_path / "run", "drafting")
    for name in ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md"):
        (folder / name).write_bytes((story / name).read_bytes())
    memo = "deliverables/decision.md"
    (folder / memo).write_bytes((story / memo).read_bytes())
    age(folder)
    collaboration, _ = opened(folder)
    for number, line in enumerate(lines[1:], 2):
        add(folder, line)
        age(folder, "events.jsonl")
        collaboration.refresh(after(number * 10))
        followed = collaboration.refresh(after(number * 10 + 5))  # protocol.json lags by now
        fresh = open_folder(folder).refresh(after(number * 10 + 5))
        for name in ("headline", "phase", "verdict", "progress", "phases", "participants", "turns",
                     "next_actions", "gates", "documents", "findings", "since", "round"):  # fmt: skip
            assert getattr(followed, name) == getattr(fresh, name), (number, name)
        assert list(followed.events) == list(fresh.events)
    (folder / "protocol.json").write_bytes((story / "protocol.json").read_bytes())
    assert collaboration.refresh(after(900)).verdict is Verdict.VALID
    assert json.loads(collaboration.raw_event("2"))["event"] == "deliverable_drafted"


def test_a_command_waits_a_little_for_a_file_that_is_being_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (folder / "protocol.json").read_bytes()
    (folder / "protocol.json").write_bytes(b"")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            (folder / "protocol.json").write_bytes(whole)

    monkeypatch.setattr(facts.time, "sleep", sleep)
    assert validate(folder).lines() == ["ACP validation passed"]
    assert pauses == [0.05, 0.05]
