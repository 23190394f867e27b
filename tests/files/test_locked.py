"""The log under its lock: nothing of others is lost, and nothing goes where nobody reads it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import threading
from pathlib import Path

import psutil
import pytest

from acp_core.files.locked import LogError, Moved, locked
from tests.agents.support import wait_for
from tests.protocols.folder.acting import block, log, spawn
from tests.protocols.folder.support import line_of, make_v1

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


def test_an_event_that_cannot_be_synced_is_taken_back_where_nobody_wrote_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    path = folder / "events.jsonl"
    before = path.read_bytes()

    def sync(fd: int) -> None:
        if b'"blocked"' in path.read_bytes():
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, SYNC, sync)
    ran = block(folder)
    assert ran.code == 2 and "Input/output error; the event was taken back" in ran.err
    assert path.read_bytes() == before


def test_a_repair_cuts_and_ends_no_line_that_came_meanwhile(tmp_path: Path) -> None:
    """Somebody who takes no lock wrote after the repair had looked: that is another log."""
    path = make_v1(tmp_path / "run", "drafting") / "events.jsonl"
    with locked(str(path)) as held:
        size = held.size()
        with path.open("ab") as file:
            file.write(STRANGER[:-1])
        there = path.read_bytes()
        with pytest.raises(Moved):
            held.cut(0, size)
        with pytest.raises(Moved):
            held.finish_line(size)
    assert path.read_bytes() == there


def test_a_failed_write_takes_back_no_line_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands where ours should stand came from a writer without a lock, at that moment."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = os.write

    def write(fd: int, data: bytes) -> int:
        if b'"No budget' in bytes(data):
            with (folder / "events.jsonl").open("ab") as file:
                file.write(STRANGER)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    ran = block(folder, "No budget for this, and none for that.")
    assert ran.code == 2 and "nothing was appended" in ran.err
    assert [event["summary"] for event in log(folder)][1:] == ["Me too."]


def test_a_line_that_is_there_whole_is_an_event_whatever_the_disk_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken back, it would be an event that others have read, and that never was."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = os.write

    def write(fd: int, data: bytes) -> int:
        written = real(fd, data)
        if b'"No budget' in bytes(data):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return written

    monkeypatch.setattr(os, "write", write)
    ran = block(folder)
    assert (ran.code, ran.out) == (0, "appended seq 2: blocked\n"), ran.err
    assert [event["summary"] for event in log(folder)][1:] == ["No budget."]


def test_a_line_that_lacks_its_newline_alone_is_in_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk wrote all but the last byte, and cuts nothing: readers take the line."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = os.write

    def write(fd: int, data: bytes) -> int:
        return real(fd, data[:-1]) if b'"No budget' in bytes(data) else real(fd, data)

    def cut(fd: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", cut)
    ran = block(folder)
    assert ran.code == 0 and "the newline is missing; run `acp repair`" in ran.err
    assert [event["summary"] for event in log(folder)][1:] == ["No budget."]


def test_where_the_file_system_knows_no_locks_only_whoever_insists_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_v1(tmp_path / "run", "drafting") / "events.jsonl"

    def flock(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(LogError, match="cannot be locked: No locks available"), locked(str(path)):
        pass
    with locked(str(path), force=True) as held:
        assert held.size() == path.stat().st_size


def test_a_writer_without_a_lock_behind_our_line_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its line came while ours was brought to the disk: both bear one number."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = getattr(os, SYNC)

    def sync(fd: int) -> None:
        if b'"blocked"' in (folder / "events.jsonl").read_bytes():
            monkeypatch.setattr(os, SYNC, real)
            with (folder / "events.jsonl").open("ab") as file:
                file.write(STRANGER)
        real(fd)

    monkeypatch.setattr(os, SYNC, sync)
    ran = block(folder)
    assert ran.code == 4 and "do not repeat" in ran.err
    assert [event["summary"] for event in log(folder)][1:] == ["No budget.", "Me too."]


def bytes_read() -> int:
    """How many bytes this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="the system does not count reads")
def test_however_long_a_torn_line_is_it_is_seen_at_once(tmp_path: Path) -> None:
    """All other writers wait while the lock is held: a torn line of a gigabyte must not keep it."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"{}\n")
    with path.open("ab") as file:
        file.truncate(1 << 30)  # no newline; nothing of it is on the disk
    before = bytes_read()
    with locked(str(path)) as held:
        assert held.is_torn()
    assert bytes_read() - before < 1 << 20


def test_a_line_that_is_still_being_written_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acp_core.files.locked.QUIET", 60.0)
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"seq":1}\n{"seq"')
    with locked(str(path)) as held, path.open("ab", buffering=0) as stranger:
        finish = threading.Timer(0.05, stranger.write, [b":2}\n"])
        finish.start()
        assert not held.is_torn()
        finish.join()


def test_a_log_that_is_replaced_again_and_again_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_v1(tmp_path / "run", "drafting") / "events.jsonl"
    real = fcntl.flock

    def flock(fd: int, how: int) -> None:
        real(fd, how)
        shutil.copy(path, tmp_path / "copy")
        os.replace(tmp_path / "copy", path)

    monkeypatch.setattr(fcntl, "flock", flock)
    with (
        pytest.raises(LogError, match="repeatedly replaced by another program"),
        locked(str(path), timeout=0.2),
    ):
        pass


def test_an_empty_log_is_not_torn_and_a_huge_one_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()
    with locked(str(path)) as log:
        assert not log.is_torn()
        path.write_bytes(b"12345\n")
        assert log.read(6) == b"12345\n"
        with pytest.raises(LogError, match="larger than 5 bytes"):
            log.read(5)


def test_what_cannot_be_taken_back_is_said_to_remain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk writes half a line, and then cuts nothing."""
    folder = make_v1(tmp_path / "run", "drafting")
    real = os.write

    def write(fd: int, data: bytes) -> int:
        return real(fd, data[:20]) if b'"blocked"' in bytes(data) else real(fd, data)

    def cut(fd: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = (folder / "events.jsonl").read_bytes()
    monkeypatch.setattr(os, "write", write)
    with monkeypatch.context() as stuck:
        stuck.setattr(os, "ftruncate", cut)
        ran = block(folder)
    assert ran.code == 2 and "an incomplete line remains: run `acp repair`" in ran.err
    (folder / "events.jsonl").write_bytes(before)
    ran = block(folder)
    assert ran.code == 2 and "nothing was appended" in ran.err
    assert (folder / "events.jsonl").read_bytes() == before
