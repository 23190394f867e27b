"""Files that belong together are all written, or none, wherever a process dies."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.files.transaction import APPEND, REMOVE, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.write import opened
from acp_core.protocols.governed.write.opened import changes_of_writes
from tests.protocols.governed.killing import killed_at

LINE = b'{"n": 2}\n'


def make(root: Path) -> Path:
    (root / ".agentxchain").mkdir(parents=True)
    (root / ".agentxchain/state.json").write_bytes(b"old")
    (root / ".agentxchain/ledger.jsonl").write_bytes(b'{"n": 1}\n')
    (root / "staged.json").write_bytes(b"staged")
    return root


def wanted(root: Path) -> list[Write]:
    return [
        Write(root / ".agentxchain/state.json", REPLACE, b"new"),
        Write(root / ".agentxchain/ledger.jsonl", APPEND, LINE),
        Write(root / "bundle/deep/PROMPT.md", REPLACE, b"prompt"),
        Write(root / "staged.json", REMOVE),
    ]


def stand(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.endswith((".acp-tmp", ".lock"))
    }


BEFORE = {
    ".agentxchain/ledger.jsonl": b'{"n": 1}\n',
    ".agentxchain/state.json": b"old",
    "staged.json": b"staged",
}
AFTER = {
    ".agentxchain/ledger.jsonl": b'{"n": 1}\n' + LINE,
    ".agentxchain/state.json": b"new",
    "bundle/deep/PROMPT.md": b"prompt",
}


def commit(root: Path) -> None:
    with opened.hold_files(root) as held:
        held.commit("accept a turn", wanted(root))


@pytest.mark.slow
def test_wherever_it_is_killed_the_next_command_finds_all_or_nothing(tmp_path: Path) -> None:
    number, seen = 1, set()
    while True:
        root = make(tmp_path / str(number))
        if not killed_at(number, root, lambda root=root: commit(root)):
            break
        before = own_writes.interrupted(root)
        if before is None:
            assert stand(root) in (BEFORE, AFTER)
        else:
            assert (before.what, before.total) == ("accept a turn", 4)
            seen.add(before.done)
        with opened.hold_files(root) as held:
            assert (held.recovered is not None) == (before is not None)
        assert stand(root) == (BEFORE if before is None and stand(root) == BEFORE else AFTER)
        number += 1
    assert number > 12 and seen == {0, 1, 2, 3, 4}


def test_a_kill_while_recovering_is_recovered_too(tmp_path: Path) -> None:
    at, first = 0, make(tmp_path / "first")
    while not own_writes.interrupted(first):
        at += 1
        first = make(tmp_path / f"at {at}")
        assert killed_at(at, first, lambda root=first: commit(root))
    for number in range(1, 16, 2):
        root = make(tmp_path / str(number))
        assert killed_at(at, root, lambda root=root: commit(root))

        def recover(root: Path = root) -> None:
            with opened.hold_files(root):
                pass

        killed_at(number, root, recover)
        recover()
        assert stand(root) == AFTER


def test_what_cannot_be_written_leaves_everything_as_it_was(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "bundle").write_bytes(b"in the way")
    with pytest.raises(opened.Failed, match="bundle"):
        commit(tmp_path)
    assert stand(tmp_path) == BEFORE | {"bundle": b"in the way"}


def interrupt(root: Path, done: int) -> None:
    """Leave a writing of which so many files are written."""
    number = 1
    while not (found := own_writes.interrupted(root)) or found.done < done:
        killed_at(number, root, lambda: commit(root))
        number += 1
        assert number < 40


def test_a_log_that_somebody_shortened_in_between_takes_everything_back(tmp_path: Path) -> None:
    """Who knows which lines are gone: ours do not go where they would be others."""
    interrupt(make(tmp_path), 0)
    (tmp_path / ".agentxchain/ledger.jsonl").write_bytes(b"")
    with opened.hold_files(tmp_path) as held:
        assert held.recovered and not held.recovered.completed
        assert "was shortened" in held.recovered.reason
    assert stand(tmp_path) == BEFORE | {".agentxchain/ledger.jsonl": b""}


def test_a_torn_last_line_gets_its_newline_first(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / ".agentxchain/ledger.jsonl").write_bytes(b'{"n": 1')
    commit(tmp_path)
    assert (tmp_path / ".agentxchain/ledger.jsonl").read_bytes() == b'{"n": 1\n' + LINE


@pytest.mark.parametrize(
    "path", ["../out", "/etc/out", "link/out", "a\0b", ".git/config", "lib/.GIT/hooks/x"]
)
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    root = make(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", root / "link")
    with opened.hold_files(root) as held, pytest.raises(Refused):
        held.commit("leave", [Write(root / path, REPLACE, b"x")])
    hostile = {"what": "x", "homes": ["../.."], "writes": [{"path": path, "verb": "replace"}]}
    (root / ".agentxchain/acp-journal.json").write_bytes(opened.json_document(hostile))
    assert own_writes.interrupted(root)
    with pytest.raises(Refused, match="cannot be applied"), opened.hold_files(root):
        pass
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"writes": [7]}', b"\xff", b'{"writes": {}}'])
def test_a_damaged_journal_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    make(tmp_path)
    (tmp_path / ".agentxchain/acp-journal.json").write_bytes(content)
    assert own_writes.interrupted(tmp_path) is not None
    with (
        pytest.raises(Refused, match="cannot be applied"),
        opened.hold_files(tmp_path),
    ):
        pass


def test_what_acp_0_1_0_left_half_done_is_finished(tmp_path: Path) -> None:
    """Its journal, byte for byte: it was killed while it wrote the second of three files."""
    make(tmp_path)
    (tmp_path / ".agentxchain/state.json").write_bytes(b"new \xff")
    (tmp_path / ".agentxchain/ledger.jsonl").write_bytes(b'{"n": 1}\n{"n"')
    (tmp_path / ".agentxchain/acp-journal.json").write_text(_JOURNAL_OF_0_1_0)
    assert own_writes.interrupted(tmp_path) == (
        "accept a turn", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 1, 3
    )  # fmt: skip
    with opened.hold_files(tmp_path) as held:
        assert held.recovered == ("accept a turn", True, "")
    assert stand(tmp_path) == {
        ".agentxchain/state.json": b"new \xff",
        ".agentxchain/ledger.jsonl": b'{"n": 1}\n' + LINE,
    }


_JOURNAL_OF_0_1_0 = """{
 "schema_version": "1.0",
 "what": "accept a turn",
 "at": "2026-01-02T03:04:05+00:00",
 "homes": [
  ".agentxchain"
 ],
 "writes": [
  {
   "path": ".agentxchain/state.json",
   "verb": "replace",
   "data": "new \\udcff",
   "before": "old",
   "size": 0
  },
  {
   "path": ".agentxchain/ledger.jsonl",
   "verb": "append",
   "data": "{\\"n\\": 2}\\n",
   "before": null,
   "size": 9
  },
  {
   "path": "staged.json",
   "verb": "remove",
   "data": "",
   "before": "staged",
   "size": 0
  }
 ]
}
"""


def test_a_second_writer_waits_and_is_told(tmp_path: Path) -> None:
    make(tmp_path)
    with (
        opened.hold_files(tmp_path),
        pytest.raises(Refused, match="locked by another"),
        opened.hold_files(tmp_path, timeout=0.05),
    ):
        pass


def test_a_run_finishes_what_was_interrupted_in_the_initiative_above(tmp_path: Path) -> None:
    root = make(tmp_path / "hall")
    (tmp_path / "agentxchain-multi.json").write_text("{}")

    def resync() -> None:
        with opened.hold_files(
            tmp_path, own_writes.COORDINATOR_HOME, ["hall/.agentxchain"]
        ) as held:
            state, log = (root / ".agentxchain" / name for name in ("state.json", "ledger.jsonl"))
            held.commit("resync", [Write(state, REPLACE, b"crossed"), Write(log, APPEND, LINE)])

    number = 1
    while not own_writes.interrupted(tmp_path, own_writes.COORDINATOR_HOME):
        assert killed_at(number, tmp_path, resync)
        number += 1
    with opened.hold_files(root):
        assert (root / ".agentxchain/state.json").read_bytes() == b"crossed"
    assert own_writes.interrupted(tmp_path, own_writes.COORDINATOR_HOME) is None


def test_a_preview_says_what_is_added_replaced_made_and_removed(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"1\n")
    (tmp_path / "state").write_bytes(b"old\n")
    wanted = [
        Write(tmp_path / "log", APPEND, b"2\n"), Write(tmp_path / "state", REPLACE, b"new\n"),
        Write(tmp_path / "new", REPLACE, b"made\n"), Write(tmp_path / "log", REMOVE),
    ]  # fmt: skip
    shown = [(each.verb, each.diff.splitlines()) for each in changes_of_writes(tmp_path, wanted)]
    assert shown[0] == ("append", ["+2"]) and shown[3] == ("remove", [])
    assert shown[1][0] == "replace" and {"-old", "+new"} <= set(shown[1][1])
    assert shown[2] == ("create", ["+made"])
    (deep,) = changes_of_writes(
        tmp_path, [Write(tmp_path / ("x/" * 1_500) / "log", APPEND, b"2\n")]
    )
    assert len(deep.path) == 2_000
