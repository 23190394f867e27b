"""The documents of a collaboration: loaded when looked at, and a headline when changed too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import Snapshot, Verdict
from acp_core.protocols.discovery import discover
from acp_core.protocols.folder.read.detect import detect
from tests.protocols.folder.acting import FolderCollaboration, open_folder
from tests.protocols.folder.support import age, extend, line_of, make_v1, say

NOW = datetime.now(UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def opened(folder: Path) -> FolderCollaboration:
    return open_folder(folder)


def shown(folder: Path) -> Snapshot:
    return opened(folder).refresh(NOW)


def test_a_document_is_loaded_when_it_is_looked_at(folder: Path) -> None:
    collaboration = opened(folder)
    first = collaboration.refresh(NOW).document("proposal.md")
    loaded = collaboration.load("proposal.md")
    assert first is not None and loaded.version == first.version
    assert loaded.text == (folder / "proposal.md").read_text()
    assert [(h.level, h.title, h.line) for h in loaded.headings] == [
        (1, "Proposal", 1),
        (2, "Purpose", 3),
    ]
    with pytest.raises(KeyError):
        collaboration.load("../secret")
    (folder / "proposal.md").write_bytes(b"\xef\xbb\xbf# New\r\n\x1b[31m\xff\r\n")
    second = collaboration.refresh(after(1)).document("proposal.md")
    assert second is not None and second.version != first.version
    assert second.note.startswith("not UTF-8 at byte ")
    again = collaboration.load("proposal.md")
    assert again.text == "# New\n␛[31m\ufffd\n"
    assert again.note == "not UTF-8 at byte 16"
    (folder / "proposal.md").unlink()
    assert collaboration.load("proposal.md").note == "no such file or directory"
    gone = collaboration.refresh(after(2)).document("proposal.md")
    assert gone is not None and gone.state == "missing"


def test_a_link_that_leads_out_is_judged_but_not_shown(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    (folder / "readiness.md").rename(tmp_path / "secret.md")
    (folder / "readiness.md").symlink_to(tmp_path / "secret.md")
    collaboration = opened(folder)
    snapshot = collaboration.refresh(NOW)
    assert snapshot.verdict is Verdict.VALID
    assert [finding.code for finding in snapshot.findings] == ["ACP913"]
    loaded = collaboration.load("readiness.md")
    assert loaded.text == "" and "its text is not shown" in loaded.note


def test_the_log_is_a_document_too_and_a_long_one_is_cut(folder: Path) -> None:
    collaboration = opened(folder)
    collaboration.refresh(NOW)
    assert collaboration.load("events.jsonl").text.count("\n") == 2
    assert collaboration.load("protocol.json").text.startswith("{\n")
    extend(folder, (b"\n" * 99 + b" " * 900) * 5_000)
    loaded = collaboration.load("events.jsonl")
    assert len(loaded.text) <= 4 << 20
    assert loaded.note == "only the first 4 MiB are shown"


@pytest.mark.parametrize(
    ("upto", "name", "words"),
    [
        ("reviewing", "proposal.md", "during the review"),
        ("reviewing", "decisions.md", "during the review"),
        ("reviewing", "readiness.md", "during the review"),
        ("reviewing", "protocol.json", "during the review"),
        ("readiness_check", "decisions.md", "after it was accepted"),
        ("readiness_check", "proposal.md", "after it was accepted"),
        ("completed", "readiness.md", "after completed"),
        ("completed", "conclusion.md", "after completed"),
        ("completed", "proposal.md", "after completed"),
    ],
)
def test_a_document_that_changed_too_late_is_a_headline(
    tmp_path: Path, upto: str, name: str, words: str
) -> None:
    folder = make_v1(tmp_path / "run", upto)
    assert shown(folder).notices == ()
    last = shown(folder).changed
    assert last is not None
    age(folder, name, at=last + timedelta(seconds=1))
    assert shown(folder).notices == ()  # file times are not that exact
    age(folder, name, at=last + timedelta(hours=1))
    snapshot = shown(folder)
    assert [(n.code, n.about.document, n.sentence) for n in snapshot.notices] == [
        ("late", name, f"{name} changed {words} (by its file time)")
    ]
    late = [document.id for document in snapshot.documents if document.late]
    assert late == [name]


@pytest.mark.parametrize(
    ("upto", "name"),
    [
        ("drafting", "proposal.md"), ("revising", "proposal.md"), ("reviewing", "review.md"),
        ("readiness_check", "readiness.md"), ("passed", "conclusion.md"), ("completed", "README.md"),
    ],
)  # fmt: skip
def test_a_document_that_may_still_change_is_none(tmp_path: Path, upto: str, name: str) -> None:
    folder = make_v1(tmp_path / "run", upto)
    age(folder, name, at=NOW)
    assert shown(folder).notices == ()


def test_in_a_copied_folder_file_times_say_nothing(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    age(folder, at=NOW - timedelta(hours=1))
    assert shown(folder).notices == ()
    age(folder, "conclusion.md", at=NOW)
    assert [notice.about.document for notice in shown(folder).notices] == ["conclusion.md"]


def test_collaborations_are_found_however_damaged(tmp_path: Path) -> None:
    make_v1(tmp_path / "sound", "reviewing")
    make_v1(tmp_path / "no-protocol", "reviewing").joinpath("protocol.json").unlink()
    make_v1(tmp_path / "half-written", "reviewing").joinpath("protocol.json").write_text("{")
    make_v1(tmp_path / "no-log", "reviewing").joinpath("events.jsonl").unlink()
    bare = tmp_path / "only-a-log"
    bare.mkdir()
    event = {
        "seq": 1,
        "from": "a",
        "event": "initialized",
        "at": "2026-01-02T03:04:05Z",
        "summary": "x",
    }
    (bare / "events.jsonl").write_bytes(line_of(event))
    for name, file, content in (
        ("other", "protocol.json", '{"protocol": "http", "version": 1}'),
        ("other-log", "events.jsonl", '{"type": "run"}\n'),
        ("empty", "events.jsonl", ""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(content)
    found = {Path(each.key).name for each in discover([tmp_path]).found}
    assert found == {"sound", "no-protocol", "half-written", "no-log", "only-a-log"}
    assert all(detect(tmp_path / name) for name in found)


def test_a_review_that_comes_in_changes_no_state_file_too_late(folder: Path) -> None:
    """Every event brings protocol.json up to date: only what changes after the last one is late."""
    say(folder, "reader", "review_submitted", at=NOW)
    age(folder, "protocol.json", at=NOW)
    age(folder, "events.jsonl", at=NOW)
    assert shown(folder).notices == ()
    age(folder, "protocol.json", at=NOW + timedelta(minutes=1))
    assert [notice.about.document for notice in shown(folder).notices] == ["protocol.json"]
