"""Appending events: nothing is damaged, whoever else writes, and the answer is true."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acp_core.files import locked
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import append as appending
from tests.protocols.folder.acting import ROOT, acp, append, block, files, log, spawn
from tests.protocols.folder.support import extend, line_of


def test_a_broken_protocol_json_points_to_repair(folder: Path) -> None:
    log_before = (folder / "events.jsonl").read_bytes()
    for broken in (b"", b"{", b"[]", b"\xff", b'{"a":' + b"[" * 5000):
        (folder / "protocol.json").write_bytes(broken)
        ran = block(folder)
        assert ran.code == 2 and "invalid protocol.json" in ran.err and "acp repair" in ran.err
    assert (folder / "events.jsonl").read_bytes() == log_before


def test_an_event_that_no_reader_would_take_is_not_written(folder: Path) -> None:
    """A line above a mebibyte is an error for the validator: it must never come to be."""
    before = files(folder)
    ran = block(folder, "x" * records.MAX_LINE)
    assert ran.code == 2 and f"longer than {records.MAX_LINE} bytes" in ran.err
    assert files(folder) == before
    assert block(folder, "x" * (records.MAX_LINE // 2)).code == 0


def test_nothing_is_written_behind_the_last_line_that_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_LINES", 2)
    before = files(folder)
    ran = block(folder)
    assert ran.code == 2 and "has reached acp's limit" in ran.err
    assert files(folder) == before


@pytest.mark.parametrize("tail", [b'{"seq":3,"from":"rea', b'{"a":1}', b"\x00\x00"])
def test_a_torn_last_line_is_not_appended_to(folder: Path, tail: bytes) -> None:
    extend(folder, tail)
    before = files(folder)
    ran = block(folder)
    assert ran.code == 2 and "torn line" in ran.err and "acp repair" in ran.err
    assert files(folder) == before


def test_a_line_that_is_still_being_written_is_waited_for(fresh: Path) -> None:
    """A tool that takes no lock writes half a line, and the other half a little later."""
    whole = line_of(
        {"seq": 2, "from": "reader", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "First.", "reply_to": 1}
    )  # fmt: skip
    with (fresh / "events.jsonl").open("ab", buffering=0) as file:
        file.write(whole[:20])
        ours = spawn(
            "append", "--folder", fresh, "--participant", "reader", "--event", "blocked",
            "--summary", "Second.", "--reply-to", "1",
        )  # fmt: skip
        time.sleep(0.1)
        file.write(whole[20:])
    out, err = ours.communicate()
    assert (ours.returncode, out) in ((0, "appended seq 3: blocked\n"), (2, "")), err
    assert all(event["seq"] == number for number, event in enumerate(log(fresh), 1))


def test_only_a_regular_file_is_written(tmp_path: Path, folder: Path) -> None:
    target = folder / "events.jsonl"
    content = target.read_bytes()
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(content)
    target.unlink()
    assert "missing events.jsonl" in block(folder).err
    os.mkfifo(target)
    assert "not a regular file" in block(folder).err
    target.unlink()
    target.symlink_to(elsewhere)
    assert "is a symbolic link" in block(folder).err
    target.unlink()
    target.mkdir()
    assert block(folder).code == 2
    assert elsewhere.read_bytes() == content
    assert "is not a folder" in block(tmp_path / "nowhere").err
    assert "missing protocol.json" in block(tmp_path).err


def test_permissions_of_protocol_json_are_kept(fresh: Path) -> None:
    (fresh / "protocol.json").chmod(0o664)
    block(fresh)
    assert stat.S_IMODE((fresh / "protocol.json").stat().st_mode) == 0o664


def test_what_a_crash_left_is_removed(fresh: Path) -> None:
    (fresh / ".protocol.json.0123456789abcdef.acp-tmp").write_text("{")
    (fresh / ".notes.swp").write_text("somebody's")
    block(fresh)
    assert [path.name for path in fresh.iterdir() if path.name.startswith(".")] == [".notes.swp"]


def test_a_writer_without_a_lock_is_noticed(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wrote between our look at the size and our write: our event is in, its seq is taken."""
    intruder = line_of(
        {"seq": 2, "from": "server", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "Me too.", "reply_to": 1}
    )  # fmt: skip
    real = os.write
    done = []

    def write(fd: int, data: bytes) -> int:
        if not done and b'"blocked"' in bytes(data):
            done.append(1)
            extend(fresh, intruder)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    ran = block(fresh)
    assert ran.code == 4 and "do not repeat" in ran.err
    assert [event["seq"] for event in log(fresh)] == [1, 2, 2]


def test_a_log_that_grew_while_it_was_read_is_read_again(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    intruder = line_of(
        {"seq": 2, "from": "server", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "Me too.", "reply_to": 1}
    )  # fmt: skip
    real = appending.prepare
    done = []

    def prepare(*args: object) -> object:
        prepared = real(*args)  # type: ignore[arg-type]
        if not done:
            done.append(1)
            extend(fresh, intruder)
        return prepared

    monkeypatch.setattr(appending, "prepare", prepare)
    assert block(fresh).out == "appended seq 3: blocked\n"
    assert [event["seq"] for event in log(fresh)] == [1, 2, 3]
    assert checks.validate(fresh).verdict == 0


def test_known_bad_file_systems_are_refused_unless_forced(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "cifs"),))
    ran = block(fresh)
    assert ran.code == 2 and "is on cifs" in ran.err and "--force" in ran.err
    forced = acp(
        "append", "--folder", fresh, "--participant", "reader", "--event", "blocked",
        "--summary", "Now.", "--reply-to", "1", "--force",
    )  # fmt: skip
    assert forced.code == 0 and "locks protect nothing" in forced.err
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "nfs4"),))
    warned = block(fresh, "And again.")
    assert warned.code == 0 and "is on nfs4" in warned.err


def test_printed_text_is_harmless(tmp_path: Path, fresh: Path) -> None:
    for ran in (
        append(fresh, "\x1b]0;owned\x07", "blocked", 1),
        append(fresh, "reader", "\x1b[2J", 1),
        block(tmp_path / "\x1b[31m"),
    ):
        assert ran.code == 2 and "\x1b" not in ran.err and "\x07" not in ran.err


def test_an_event_that_is_in_is_acknowledged_though_nobody_reads(fresh: Path) -> None:
    argv = [
        sys.executable, "-m", "acp_tui", "append", "--folder", str(fresh), "--participant",
        "reader", "--event", "blocked", "--summary", "No budget.", "--reply-to", "1",
    ]  # fmt: skip
    with open("/dev/full", "w") as full:
        assert subprocess.run(argv, stdout=full, stderr=full, cwd=ROOT).returncode == 0
    assert len(log(fresh)) == 2


def test_an_interruption_after_the_write_does_not_hide_that_the_event_is_in(fresh: Path) -> None:
    """Ctrl-C between the write and the answer: the exit code still says that it is there."""
    program = (
        "import os, signal, sys\n"
        "from acp_core.protocols.folder.acts import agents as commands\n"
        "real = os.write\n"
        "def write(fd, data):\n"
        "    done = real(fd, data)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return done\n"
        "os.write = write\n"
        "sys.exit(commands.append(sys.argv[1:]))\n"
    )
    argv = ["--folder", str(fresh), "--participant", "reader", "--event", "blocked",
            "--summary", "No budget.", "--reply-to", "1"]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout) == (0, "appended seq 2: blocked\n"), ran.stderr
    assert len(log(fresh)) == 2 and checks.validate(fresh).verdict == 0


def test_without_locks_nothing_is_written(
    tmp_path: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: everything can be read, and the refusal is plain."""
    monkeypatch.setattr(locked, "fcntl", None)
    ran = block(fresh)
    assert ran.code == 2 and "acp is read-only here" in ran.err
    new = acp(
        "init", "--folder", tmp_path / "new", "--participant", "a", "--objective", "X",
        "--completion", "Y",
    )  # fmt: skip
    assert new.code == 2 and "acp is read-only here" in new.err
    assert acp("validate", "--folder", fresh).code == 0
