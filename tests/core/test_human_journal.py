"""What people did is kept: masked, bounded, readable afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core import human_journal

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))


def test_acts_are_read_back_in_their_order(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    assert human_journal.read(key) == ()
    assert human_journal.note(key, "nudge", {"participant": "ann"}, "done", "Delivered.", NOW)
    assert human_journal.note(key, "repair", {}, "refused", "Nothing.", NOW)
    first, second = human_journal.read(key)
    assert (first.at, first.action, dict(first.inputs)) == (NOW, "nudge", {"participant": "ann"})
    assert (second.state, second.sentence) == ("refused", "Nothing.")
    assert human_journal.read(str(tmp_path / "other")) == ()


def test_it_is_the_owner_s_alone(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    human_journal.note(key, "nudge", {}, "done", "Delivered.", NOW)
    assert human_journal.path(key).stat().st_mode & 0o777 == 0o600
    assert human_journal.path(key).is_relative_to(tmp_path / "state")


def test_secrets_are_masked_and_long_texts_cut(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    given = {"message": "use sk-ant-abcdefghijklmnopqrstuvwxyz", "text": "x" * 9_000}
    human_journal.note(key, "nudge", given, "done", "Delivered.", NOW)
    (act,) = human_journal.read(key)
    assert "abcdefghijkl" not in act.inputs["message"]
    assert len(act.inputs["text"]) == 2_000


def test_lines_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    key = str(tmp_path / "cache")
    human_journal.note(key, "nudge", {}, "done", "Delivered.", NOW)
    with human_journal.path(key).open("ab") as file:
        file.write(b'{"half": \n[]\n{"at": "x", "inputs": {}}\n\xff\n')
    assert len(human_journal.read(key)) == 1


def test_a_journal_that_is_too_long_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(human_journal, "LARGEST", 1_000)
    key = str(tmp_path / "cache")
    for _ in range(8):
        human_journal.note(key, "nudge", {"message": "m" * 100}, "done", "Delivered.", NOW)
    assert (
        human_journal.path(key).stat().st_size < 1_500 if human_journal.path(key).exists() else True
    )
    assert Path(f"{human_journal.path(key)}.1").exists()


def test_a_folder_that_cannot_be_written_stops_no_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    assert not human_journal.note(str(tmp_path), "nudge", {}, "done", "Delivered.", NOW)
