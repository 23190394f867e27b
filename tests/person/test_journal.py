"""What people did is kept: masked, bounded, readable afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.person import journal

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))


def test_acts_are_read_back_in_their_order(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    assert journal.read(key) == ()
    assert journal.note(key, "nudge", {"participant": "ann"}, "done", "Delivered.", NOW)
    assert journal.note(key, "repair", {}, "refused", "Nothing.", NOW)
    first, second = journal.read(key)
    assert (first.at, first.action, dict(first.inputs)) == (NOW, "nudge", {"participant": "ann"})
    assert (second.state, second.sentence) == ("refused", "Nothing.")
    assert journal.read(str(tmp_path / "other")) == ()


def test_it_is_the_owner_s_alone(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    journal.note(key, "nudge", {}, "done", "Delivered.", NOW)
    assert journal.path(key).stat().st_mode & 0o777 == 0o600
    assert journal.path(key).is_relative_to(tmp_path / "state")


def test_secrets_are_masked_and_long_texts_cut(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    given = {"message": "use sk-ant-abcdefghijklmnopqrstuvwxyz", "text": "x" * 9_000}
    journal.note(key, "nudge", given, "done", "Delivered.", NOW)
    (act,) = journal.read(key)
    assert "abcdefghijkl" not in act.inputs["message"]
    assert len(act.inputs["text"]) == 2_000


def test_lines_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    journal.note(key, "nudge", {}, "done", "Delivered.", NOW)
    with journal.path(key).open("ab") as file:
        file.write(b'{"half": \n[]\n{"at": "x", "inputs": {}}\n\xff\n')
    assert len(journal.read(key)) == 1


def test_a_journal_that_is_too_long_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "LARGEST", 1_000)
    key = str(tmp_path / "cache")
    for _ in range(8):
        journal.note(key, "nudge", {"message": "m" * 100}, "done", "Delivered.", NOW)
    assert journal.path(key).stat().st_size < 1_500 if journal.path(key).exists() else True
    assert Path(f"{journal.path(key)}.1").exists()


def test_a_folder_that_cannot_be_written_stops_no_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    assert not journal.note(str(tmp_path), "nudge", {}, "done", "Delivered.", NOW)
