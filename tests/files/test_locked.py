"""The log under its lock: nothing of others is lost, and nothing goes where nobody reads it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import psutil
import pytest

from acp_core.files.locked import locked
from acp_core.protocols.folder import rules
from tests.folder.running import append, block, log, spawn
from tests.folder.support import line_of, make_v1
from tests.programs.support import wait_for

SYNC = "fdatasync" if hasattr(os, "fdatasync") else "fsync"
STRANGER = line_of(
    {"seq": 2, "from": "server", "event": "blocked", "at": "2026-01-02T03:14:05Z",
     "summary": "Me too.", "reply_to": 1}
)  # fmt: skip


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    return any(Path(each.path) == path for each in psutil.Process(pid).open_files())


def test_a_log_that_is_replaced_while_its_lock_is_waited_for_gets_the_event(tmp_path: Path) -> None:
    """An editor or a restored backup puts another file in its place: the old one is nobody's."""
    folder = make_v1(tmp_path / "run", "drafting")
    path, copy = folder / "events.jsonl", tmp_path / "copy"
    shutil.copy(path, copy)
    with locked(str(path)):
        writer = spawn("append", "--folder", folder, "--participant", "reader", "--event",
                       "blocked", "--summary", "No budget.", "--reply-to", "1")  # fmt: skip
        wait_for(lambda: has_open(writer.pid, path), "the writer to wait for the lock")
        os.replace(copy, path)
    out, err = writer.communicate()
    assert (writer.returncode, out) == (0, "appended seq 2: blocked\n"), err
    assert [event["seq"] for event in log(folder)] == [1, 2]


def test_an_event_that_cannot_be_synced_is_not_taken_back_from_under_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer without a lock wrote behind it meanwhile: taking ours back would take that, too."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = getattr(os, SYNC)

    def sync(fd: int) -> None:
        if b'"blocked"' in (folder / "events.jsonl").read_bytes():
            monkeypatch.setattr(os, SYNC, real)
            with (folder / "events.jsonl").open("ab") as file:
                file.write(STRANGER)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, SYNC, sync)
    ran = block(folder)
    assert ran.code == 4 and "may not survive a power failure" in ran.err
    assert [event["summary"] for event in log(folder)][1:] == ["No budget.", "Me too."]


def test_an_event_that_cannot_be_written_takes_its_review_back_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    body = tmp_path / "body.md"
    body.write_text("Position:\n- In favour.\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if b'"review_submitted"' in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    words = {"doc": "review.md", "review_file": body}
    ran = append(folder, "reader", "review_submitted", 2, "Reviewed.", **words)
    assert ran.code == 2 and "nothing was appended" in ran.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    monkeypatch.undo()
    assert append(folder, "reader", "review_submitted", 2, "Reviewed.", **words).code == 0
    assert rules.validate(folder).verdict == 0
