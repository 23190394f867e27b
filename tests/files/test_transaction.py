"""Files that are made, moved, added to and removed as one, whatever happens in between."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_core.files import transaction
from acp_core.files.transaction import (
    APPEND,
    CREATE,
    MOVE,
    REMOVE,
    REPLACE,
    Failed,
    Hooks,
    Step,
    Write,
)
from acp_core.model.errors import Refused
from tests.protocols.governed.killing import killed_at

HOME = ".run"
BEFORE = {"log.jsonl": b"1\n", "output.md": b"first", "note": b"note", "state.json": b"old"}
AFTER = {
    "history/output.md": b"first",
    "log.jsonl": b"1\n2\n",
    "output.md": b"second",
    "state.json": b"new",
}


def make(root: Path) -> Path:
    (root / HOME).mkdir(parents=True)
    for name, data in BEFORE.items():
        (root / name).write_bytes(data)
    return root


def rerun(root: Path) -> list[Write]:
    """An earlier output is put away, and another takes its place."""
    return [
        Write(root / "history/output.md", MOVE, source=root / "output.md"),
        Write(root / "log.jsonl", APPEND, b"2\n"),
        Write(root / "note", REMOVE),
        Write(root / "state.json", REPLACE, b"new"),
    ]


def commit(root: Path, hooks: Hooks | None = None) -> None:
    with transaction.begin(root, HOME, hooks=hooks) as opened:
        opened.commit("run it again", rerun(root))
    (root / "output.md").write_bytes(b"second")


def interrupted(place: Path, done: int) -> Path:
    """A folder in which somebody was killed when so many files were written."""
    for number in range(1, 60):
        root = make(place / str(number))
        killed_at(number, root, lambda root=root: commit(root))
        left = transaction.interrupted(root, HOME)
        if left is not None and left.done >= done:
            return root
    raise AssertionError(f"it was never killed after {done} files")


def stand(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith(".acp-tmp")
    }


def test_a_file_is_moved_with_the_others_or_not_at_all(tmp_path: Path) -> None:
    number = 1
    while killed_at(number, root := make(tmp_path / str(number)), lambda root=root: commit(root)):
        left = transaction.interrupted(root, HOME)
        with transaction.begin(root, HOME) as opened:
            assert (opened.recovered is not None) == (left is not None)
        done = AFTER | {"output.md": b"first"}
        done.pop("history/output.md" if (root / "output.md").exists() else "output.md")
        assert stand(root) in (BEFORE, done, AFTER), number
        if left is not None:
            assert "history/output.md" in stand(root), number
        number += 1
    assert number > 10


def test_what_cannot_be_finished_moves_the_file_back(tmp_path: Path) -> None:
    root = interrupted(tmp_path, 1)
    assert "output.md" not in stand(root)
    (root / "state.json").write_bytes(b"somebody else")
    with transaction.begin(root, HOME) as opened:
        assert opened.recovered and not opened.recovered.completed
    assert stand(root) == BEFORE | {"state.json": b"somebody else"}


def test_what_cannot_be_finished_writes_nothing_behind_the_lines_of_others(tmp_path: Path) -> None:
    root = interrupted(tmp_path, 1)
    (root / "log.jsonl").write_bytes(b"1\nof somebody else\n")
    (root / "state.json").write_bytes(b"somebody else")
    assert transaction.fault(root, HOME) == ""
    with transaction.begin(root, HOME) as opened:
        assert opened.recovered and not opened.recovered.completed
    assert stand(root)["log.jsonl"] == b"1\nof somebody else\n"
    assert transaction.interrupted(root, HOME) is None


def test_what_can_be_neither_finished_nor_undone_is_known_before_anything_is_tried(
    tmp_path: Path,
) -> None:
    root = interrupted(tmp_path, 2)
    assert transaction.fault(root, HOME) == ""
    (root / "state.json").write_bytes(b"somebody else")
    assert transaction.fault(root, HOME) == ""
    (root / "log.jsonl").write_bytes(b"1\n2\nof somebody else\n")
    before = stand(root)
    assert "state.json was changed" in transaction.fault(root, HOME)
    assert "log.jsonl was written to" in transaction.fault(root, HOME)
    assert stand(root) == before
    with pytest.raises(Refused, match="cannot be undone"), transaction.begin(root, HOME):
        raise AssertionError("it was neither finished nor undone")


def test_a_new_file_takes_nothing_elses_place(tmp_path: Path) -> None:
    root = make(tmp_path)
    for verb, source in ((CREATE, None), (MOVE, root / "output.md")):
        write = Write(root / "note", verb, b"", source)
        with transaction.begin(root, HOME) as opened, pytest.raises(Failed, match="already exists"):
            opened.commit("take its place", [Write(root / "log.jsonl", APPEND, b"2\n"), write])
    assert stand(root) == BEFORE


@pytest.mark.parametrize("source", ["../out", "/etc/hostname", "link/out", ".git", ".git/config"])
def test_nothing_is_moved_in_from_outside(tmp_path: Path, source: str) -> None:
    root = make(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/out").write_bytes(b"secret")
    os.symlink(tmp_path / "elsewhere", root / "link")
    with transaction.begin(root, HOME) as opened, pytest.raises(Failed, match="points outside"):
        opened.commit("move", [Write(root / "in", MOVE, source=root / source)])
    step = {"path": "in", "verb": "move", "data": "", "before": None, "size": 0, "source": source}
    journal = json.dumps({"what": "x", "writes": [step]})
    (root / HOME / transaction.JOURNAL).write_text(journal)
    with pytest.raises(Refused, match="points outside"), transaction.begin(root, HOME):
        pass


def test_what_is_checked_under_the_lock_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    root, seen = make(tmp_path), []

    def check(place: Path, steps: Sequence[Step]) -> None:
        seen.extend(step.relative for step in steps)
        assert place == root and not (root / HOME / transaction.JOURNAL).exists()
        with pytest.raises(Refused, match="locked by another"):
            transaction.begin(root, HOME, timeout=0.01).__enter__()
        raise Refused("the log is damaged: repair it first")

    with pytest.raises(Refused, match="damaged"):
        commit(root, Hooks(check=check))
    assert seen == ["history/output.md", "log.jsonl", "note", "state.json"]
    assert stand(root) == BEFORE


def test_what_was_only_just_written_when_the_process_died_is_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power after the recovery could take it, and the journal is gone by then."""
    root = interrupted(tmp_path, 4)
    synced: list[str] = []
    real = os.fsync

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    with transaction.begin(root, HOME) as opened:
        assert opened.recovered and opened.recovered.completed
    for name in ("log.jsonl", "state.json", "history", ""):
        assert str(root / name).rstrip("/") in synced, name


def test_what_other_programs_wrote_between_the_plan_and_its_step_stays(tmp_path: Path) -> None:
    """They take no lock: each file is looked at once more where it is written."""
    root = make(tmp_path)
    for name, data, wrong in (
        ("state.json", b"somebody else", "state.json was changed by another program"),
        ("log.jsonl", b"", "log.jsonl was shortened by another program"),
    ):

        def meddle(
            place: Path, steps: Sequence[Step], name: str = name, data: bytes = data
        ) -> None:
            (place / name).write_bytes(data)

        with pytest.raises(Failed, match=wrong):
            commit(root, Hooks(check=meddle))
        assert stand(root) == BEFORE | {name: data}
        (root / name).write_bytes(BEFORE[name])


def test_a_home_that_leads_out_of_the_run_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", root / HOME)
    with pytest.raises(Refused, match="points outside"), transaction.begin(root, HOME):
        pass
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_both_folders_of_a_move_and_the_end_of_the_journal_are_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a loss of power shows the file twice, or takes back what was said to be done."""
    root = make(tmp_path)
    (root / "deep").mkdir()
    (root / "deep/output.md").write_bytes(b"first")
    synced: list[tuple[str, bool, bool]] = []
    real = os.fsync

    def sync(fd: int) -> None:
        moved = not (root / "deep/output.md").exists()
        written = not (root / HOME / transaction.JOURNAL).exists()
        synced.append((os.readlink(f"/proc/self/fd/{fd}"), moved, written))
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    moving = Write(root / "history/output.md", MOVE, source=root / "deep/output.md")
    with transaction.begin(root, HOME) as opened:
        opened.commit("move", [moving, Write(root / "state.json", REPLACE, b"new")])
    for name in ("deep", "history"):
        assert (str(root / name), True, False) in synced
    assert (str(root / HOME), True, True) in synced


def test_the_longest_path_that_is_written_has_a_thousand_characters(tmp_path: Path) -> None:
    longest = "a/" * 499 + "bb"
    assert transaction.below(tmp_path, longest) == tmp_path / longest
    assert transaction.below(tmp_path, longest + "b") is None
