"""A kill at the system calls themselves, by strace: where a library writes, no shim sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from acp_core.protocols.wire.write import connect
from tests.faults.campaign import Campaign, Case
from tests.faults.looking import look
from tests.protocols.folder.support import make_v1
from tests.protocols.wire.test_store import WRITER

_ROOT = Path(__file__).resolve().parents[2]
CALLS = "pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename,renameat,renameat2"
_WRITES = 120  # calls of the agent's store that are tried: it goes on writing


def available() -> bool:
    """Whether strace is there and may trace here."""
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return tried.returncode == 0


def _killed(number: int, words: list[str], state: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these words, killed at the entry of its so-many-th of the calls."""
    inject = f"inject={CALLS}:signal=SIGKILL:when={number}"
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={CALLS}", "-e", inject]
    return subprocess.run(
        [*command, sys.executable, "-B", *words], cwd=_ROOT, capture_output=True, text=True,
        env={**os.environ, "ACP_STATE": str(state)}, check=False, timeout=120,
    )  # fmt: skip


def cases(place: Path, seed: int) -> Iterator[Case]:
    """`acp append` and the store of an agent, killed at one call after the other."""
    if not available():
        return
    for number in range(1, 12):
        yield Case(f"append: call {number}", partial(_append, place / f"append-{number}", number))
    for number in range(1, _WRITES):
        yield Case(
            f"agent's store: call {number}", partial(_store, place / f"store-{number}", number)
        )


def _append(root: Path, number: int) -> None:
    make_v1(root, "reviewing")
    words = ["-m", "acp_core", "append", "--folder", str(root), "--participant", "reader", "--event",
             "blocked", "--summary", "Stop.", "--reply-to", "2"]  # fmt: skip
    state = root.with_name(f"{root.name}-state")
    ended = _killed(number, words, state)
    lines = (root / "events.jsonl").read_bytes()
    assert lines.endswith(b"\n") and lines.count(b"\n") in (2, 3)
    if ended.returncode == 0:
        assert lines.count(b"\n") == 3
    again = subprocess.run([sys.executable, *words], cwd=_ROOT, capture_output=True, text=True,
                           env={**os.environ, "ACP_STATE": str(state)}, check=False)  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert (root / "events.jsonl").read_bytes().count(b"\n") == 3
    snapshot = look(root)
    assert snapshot is not None and not snapshot.findings


def _store(root: Path, number: int) -> None:
    root.mkdir()
    file = root / "wire.sqlite3"
    ended = _killed(number, ["-c", WRITER, str(file), "0"], root)
    assert ended.returncode != 0, "it was not killed"
    said = [line.split() for line in ended.stdout.splitlines()[:-1]]
    db = connect(file)
    try:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = db.execute("SELECT seq, message_id FROM messages").fetchall()
    finally:
        db.close()
    stored = {int(id[1:]): seq for seq, id in rows}
    lost = [n for n, seq in said if stored.get(int(n)) != int(seq)]
    assert not lost, f"{len(lost)} of {len(said)} acknowledged messages are lost"
    assert look(root) is not None


STRACED = Campaign("strace", "kill -9 at system calls, of append and of an agent's database", cases)
