"""The existing program's lock on a run is respected, taken, and outlived where it is stale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.write.opened import hold_files
from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.acting import talk
from tests.protocols.governed.test_read import NOW

LOCK = ".agentxchain/locks/accept-turn.lock"


def lock(root: Path, value: object) -> Path:
    path = root / LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def since(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another program that is at work."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    time.sleep(0.05)
    yield process
    process.kill()
    process.wait()


@pytest.mark.slow
def test_nothing_is_written_while_the_other_program_writes(
    tmp_path: Path, other: subprocess.Popen[bytes]
) -> None:
    root = making.make_run(tmp_path)
    before = (root / "TALK.md").read_text()
    path = lock(root, {"pid": other.pid, "acquired_at": since(-1)})
    ran = playing.acp("talk", str(root), "--text", "Hello", "--as", "Ann")
    assert ran.code == 2 and ran.out == "" and len(ran.err.splitlines()) == 1, ran
    assert f"process {other.pid}" in ran.err and "try again when it is done" in ran.err, ran.err
    assert (root / "TALK.md").read_text() == before and path.exists()


def test_it_is_waited_for_a_moment(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    root = making.make_run(tmp_path)
    path = lock(root, str(other.pid))
    timer = threading.Timer(0.2, path.unlink)
    timer.start()
    talk(root, "Hello", now=NOW)
    timer.join()
    assert "Hello" in (root / "TALK.md").read_text()


@pytest.mark.parametrize(
    "left",
    [
        {"pid": 0x7FFFFFF0, "acquired_at": "2026-03-01T10:00:00Z"},  # no such process
        {"pid": os.getppid(), "acquired_at": "2001-01-01T00:00:00Z"},  # born after the lock
        {"pid": 1, "by": "acp"},  # made by a command of ours that was killed
        {"acquired_at": "2001-01-01T00:00:00Z"},  # names nobody, and is old
    ],
)
def test_a_stale_one_holds_nobody_up(tmp_path: Path, left: object) -> None:
    root = making.make_run(tmp_path)
    path = lock(root, left)
    (path.parent / f".{path.name}.{'0' * 16}.acp-tmp").write_text("half")
    talk(root, "Hello", now=NOW)
    assert "Hello" in (root / "TALK.md").read_text() and not path.exists()
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("content", ["", "{", '{"pid": -1}', "[" * 3000, "x" * 9000])
def test_one_that_names_nobody_is_believed_while_it_is_young(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = making.make_run(tmp_path)
    lock(root, content)
    with (
        pytest.raises(Refused, match="remove the file if no such program runs"),
        existing_program.lock_held(root / ".agentxchain", timeout=0),
    ):
        pass


def test_it_is_held_while_acp_writes_and_gone_afterwards(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    with hold_files(root):
        told = json.loads((root / LOCK).read_text())
        assert told["pid"] == os.getpid() and told["acquired_at"]
    assert not (root / LOCK).exists()


def test_a_lock_that_the_other_program_put_in_its_place_meanwhile_stays(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    with hold_files(root):
        lock(root, theirs := json.dumps({"pid": 1}))
    assert (root / LOCK).read_text() == theirs


def test_a_link_in_its_place_is_refused(tmp_path: Path) -> None:
    root = making.make_run(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (root / ".agentxchain/locks").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="symbolic link"):
        talk(root, "Hello", now=NOW)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_no_workstream_crosses_while_the_other_program_writes_one(
    tmp_path: Path, other: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing_program, "LOCK_PATIENCE", 0.0)
    root = multi.begin(tmp_path)
    multi.all_ask(root)
    path = lock(root / "web", {"pid": other.pid})
    with pytest.raises(Refused, match=r"web/\.agentxchain/locks"):
        multi.approve(root)
    assert {multi.state(root, name)["phase"] for name in multi.NAMES} == {"planning"}
    path.unlink()
    multi.approve(root)
    assert {multi.state(root, name)["phase"] for name in multi.NAMES} == {"implementation"}
