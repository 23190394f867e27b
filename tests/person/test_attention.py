"""What a person saw, acknowledged and put away is kept for them, by all their dashboards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import Snapshot
from acp_core.person import attention as module
from acp_core.person.attention import Acknowledgement, Attention, LastVisit
from tests.support import toy

NOW = datetime(2026, 5, 3, 12, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "attention.json"


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    one = toy.make(tmp_path / "one")
    toy.say(one, "ann", "said", "hello")
    toy.say(one, "ann", "asked", "red?")
    toy.say(one, "ben", "asked", "blue?")
    return toy.Toy(str(one)).refresh(NOW)


def test_nothing_was_seen_at_first_and_reading_leaves_no_trace(
    file: Path, snapshot: Snapshot
) -> None:
    attention = Attention(file)
    assert attention.last_visit(snapshot.key) is None
    assert attention.acknowledged(snapshot.key) == {}
    assert not attention.is_archived(snapshot.key)
    assert attention.open_needs(snapshot) is snapshot.needs
    assert attention.note == ""
    assert not attention.reload()
    assert not file.parent.exists()


def test_it_stands_in_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "mine"))
    Attention().archive(snapshot.key, NOW)
    assert (tmp_path / "mine" / "attention.json").is_file()


def test_a_visit_is_remembered_by_the_next_dashboard(file: Path, snapshot: Snapshot) -> None:
    Attention(file).visited(snapshot, NOW)
    versions = {document.id: document.version for document in snapshot.documents}
    assert Attention(file).last_visit(snapshot.key) == LastVisit(3, "3", versions, NOW)
    Attention(file).visited(replace(snapshot, events=()), NOW + timedelta(hours=1))
    assert Attention(file).last_visit(snapshot.key) == LastVisit(
        0, None, versions, NOW + timedelta(hours=1)
    )


def test_an_acknowledged_need_is_not_open_and_a_new_one_is(file: Path, snapshot: Snapshot) -> None:
    attention = Attention(file)
    red, blue = snapshot.needs
    attention.acknowledge(snapshot.key, red.key, "asked\nher \x1b[2J", NOW)
    assert attention.open_needs(snapshot) == (blue,)
    assert Attention(file).acknowledged(snapshot.key) == {
        red.key: Acknowledgement("asked␤her ␛[2J", NOW)
    }
    attention.acknowledge(snapshot.key, blue.key, "", NOW)
    assert attention.open_needs(snapshot) == ()


def test_a_collaboration_is_put_away_and_taken_out_again(file: Path, snapshot: Snapshot) -> None:
    attention = Attention(file)
    attention.visited(snapshot, NOW)
    attention.archive(snapshot.key, NOW)
    assert attention.is_archived(snapshot.key)
    assert not attention.is_archived("another")
    attention.unarchive(snapshot.key)
    attention.unarchive("another")
    assert not Attention(file).is_archived(snapshot.key)
    assert Attention(file).last_visit(snapshot.key)


def test_what_another_dashboard_noted_is_seen_after_reloading(file: Path) -> None:
    one, other = Attention(file), Attention(file)
    assert not one.is_archived("a")
    other.archive("a", NOW)
    assert not one.is_archived("a")
    assert one.reload()
    assert one.is_archived("a")
    assert not one.reload()


def test_one_that_did_not_reload_overwrites_nothing(file: Path) -> None:
    one, other = Attention(file), Attention(file)
    assert not one.is_archived("a")
    other.archive("a", NOW)
    one.archive("b", NOW)
    assert [Attention(file).is_archived(key) for key in "ab"] == [True, True]
    assert one.is_archived("a")


def test_many_processes_note_at_once_and_nothing_is_lost(file: Path) -> None:
    program = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from acp_core.person.attention import Attention
attention = Attention(Path(sys.argv[1]))
for number in range(20):
    attention.acknowledge("shared", f"{sys.argv[2]}-{number}", "", datetime.now(UTC))
    attention.archive(f"{sys.argv[2]}-{number}", datetime.now(UTC))
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(file), str(name)]) for name in range(4)
    ]
    assert [process.wait() for process in processes] == [0] * 4
    attention = Attention(file)
    names = {f"{name}-{number}" for name in range(4) for number in range(20)}
    assert set(attention.acknowledged("shared")) == names
    assert all(attention.is_archived(name) for name in names)
    assert sorted(os.listdir(file.parent)) == ["attention.json", "attention.json.lock"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[1]", b'{"collaborations": 3}', b"[" * 100_000],
    ids=["empty", "cut", "no text", "a list", "foreign", "deep"],
)
def test_a_damaged_file_is_set_aside_and_that_is_said(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    attention = Attention(file)
    assert not attention.is_archived("a")
    assert attention.note == f"{file} is damaged: acp treats everything as unseen"
    assert file.read_bytes() == content  # whoever only reads moves nothing
    attention.archive("a", NOW)
    (aside,) = file.parent.glob("*.damaged-*")
    assert aside.read_bytes() == content
    assert attention.note == f"{file} was damaged and is now {aside.name}"
    assert Attention(file).is_archived("a")
    assert Attention(file).note == ""


@pytest.mark.parametrize("collaborations", [{}, []])
def test_a_file_of_a_newer_program_is_left_alone(
    file: Path, snapshot: Snapshot, collaborations: object
) -> None:
    file.parent.mkdir()
    content = {"schema": "acp.attention/2", "collaborations": collaborations}
    file.write_text(json.dumps(content))
    attention = Attention(file)
    assert attention.last_visit(snapshot.key) is None
    assert attention.note == f"{file} was written by a newer acp: use that version"
    with pytest.raises(OSError, match="written by a newer acp"):
        attention.visited(snapshot, NOW)
    assert json.loads(file.read_text()) == content
    assert [each.name for each in file.parent.iterdir() if "damaged" in each.name] == []


def test_odd_parts_of_a_file_count_as_absent_and_the_others_hold(file: Path) -> None:
    file.parent.mkdir()
    odd = {
        "a": {
            "archived": "2026-05-03T12:00:00+00:00",
            "visit": {"event_count": True, "versions": {}, "at": "2026-05-03T12:00:00Z"},
            "acknowledged": {"x": {"note": 3}, "y": {"note": "n", "at": "2026-05-03T12:00:00Z"}},
            "of a later version": [1],
        },
        "b": {"archived": "yesterday", "visit": [], "acknowledged": "no"},
        "c": {"visit": {"event_count": 1, "event_id": 3, "versions": {"d": 1, "e": "2"},
                        "at": "0001-01-01T00:00:00+23:00"}},
        "d": 3,
    }  # fmt: skip
    file.write_text(json.dumps({"collaborations": odd}))
    attention = Attention(file)
    assert attention.is_archived("a")
    assert attention.last_visit("a") is None
    assert attention.acknowledged("a") == {"y": Acknowledgement("n", NOW)}
    assert not attention.is_archived("b")
    assert attention.acknowledged("b") == {}
    assert attention.last_visit("c") is None
    attention.acknowledge("a", "z", "", NOW)
    attention.acknowledge("b", "z", "", NOW)
    assert json.loads(file.read_text())["collaborations"]["a"]["of a later version"] == [1]
    assert set(Attention(file).acknowledged("b")) == {"z"}


def test_a_key_that_is_no_text_is_kept(file: Path) -> None:
    key = os.fsdecode(b"/tmp/\xff")
    Attention(file).archive(key, NOW)
    assert Attention(file).is_archived(key)


def test_what_cannot_be_kept_is_an_error_and_what_is_there_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Attention(file).archive("a", NOW)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with (
        Attention(file)._alone(),
        pytest.raises(TimeoutError, match="another acp process has locked"),
    ):
        Attention(file).archive("b", NOW)
    assert Attention(file).is_archived("a")
    blocked = Attention(file / "below" / "attention.json")
    assert not blocked.is_archived("a")
    with pytest.raises(OSError):
        blocked.archive("a", NOW)
    folder = file.parent / "folder"
    folder.mkdir()
    assert not Attention(folder).is_archived("a")
    assert Attention(folder).note == f"{folder}: is a folder, not a regular file"
    with pytest.raises(OSError):
        Attention(folder).archive("a", NOW)


def test_old_visits_are_forgotten_but_no_decisions(
    file: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    attention = Attention(file)
    attention.archive("put away", NOW)
    attention.acknowledge("known", "need", "", NOW)
    for number in range(4):
        seen = replace(snapshot, key=str(number))
        attention.visited(seen, NOW + timedelta(minutes=number))
    again = Attention(file)
    assert [again.last_visit(str(n)) is not None for n in range(4)] == [False, False, True, True]
    assert again.is_archived("put away")
    assert again.acknowledged("known")
