"""A place in which `acp` is run: its files, what they were before, and what became of them."""

from __future__ import annotations

import base64
import difflib
import fcntl
import hashlib
import os
import shutil
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from tests.support import forked

TEMPORARY = "/tmp"
"""The same everywhere, whatever TMPDIR is."""

PINNED = datetime(2026, 2, 1, 12, tzinfo=UTC)
"""The time of files that a state left as just written."""

Tree = dict[str, tuple[int, bytes]]
"""Mode and content by path; a link's content is where it leads, a folder's is `FOLDER`."""

FOLDER = b"<folder>"

_DAY = 86400.0
_PASSING = ("-wal", "-shm", "-journal")  # SQLite's own, gone when it is closed


def environment(root: Path) -> dict[str, str]:
    """The environment of every process: no agent programs, no settings of this machine."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(root / "home"),
        "ACP_STATE": str(root / "state"),
        "ACP_CONFIG": str(root / "config"),
        "TMPDIR": str(root / "tmp"),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "USER": "golden",
        "LOGNAME": "golden",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Golden",
        "GIT_AUTHOR_EMAIL": "golden@example.org",
        "GIT_AUTHOR_DATE": PINNED.isoformat(),
        "GIT_COMMITTER_NAME": "Golden",
        "GIT_COMMITTER_EMAIL": "golden@example.org",
        "GIT_COMMITTER_DATE": PINNED.isoformat(),
    }


@contextmanager
def fixed_place(name: str) -> Iterator[Path]:
    """An empty folder of one path for ever: the program writes paths, their digests and sizes.

    Each checkout and account has its own, and all paths are of one length. Whoever asks for the
    same one waits until it is free. It is gone afterwards.
    """
    whose = f"{os.getuid()} {Path(__file__).resolve()}"
    lock, place = (
        Path(TEMPORARY, f"acp-golden-{hashlib.sha256(each.encode()).hexdigest()[:8]}")
        for each in (whose, f"{whose} {name}")
    )
    byte = int(place.name[-8:], 16)  # one of the lock for each name
    with lock.with_suffix(".lock").open("wb") as held:
        fcntl.lockf(held, fcntl.LOCK_EX, 1, byte)
        shutil.rmtree(place, ignore_errors=True)  # left by what was killed
        place.mkdir()
        try:
            yield place
        finally:
            shutil.rmtree(place)


class Sandbox:
    """Folders of its own for one state; `work` is where the collaboration lies."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._pristine = self.root.with_name(self.root.name + ".pristine")
        self.work = self.root / "work"
        for name in ("work", "home", "state", "config", "tmp"):
            (self.root / name).mkdir(parents=True)
        self.env = environment(self.root)

    def acp(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in `work`."""
        return forked.run(arguments, self.work, self.env, "")

    def keep(self) -> None:
        """Take what lies here now as what `restore` brings back."""
        recent = time.time() - _DAY
        for path in (self.root, *self.root.rglob("*")):
            if path.lstat().st_mtime > recent:
                os.utime(path, (PINNED.timestamp(),) * 2, follow_symlinks=False)
        shutil.copytree(self.root, self._pristine, symlinks=True)

    def restore(self) -> None:
        """Everything as it was when it was kept, at the same paths."""
        shutil.rmtree(self.root)
        shutil.copytree(self._pristine, self.root, symlinks=True)

    def end_what_runs(self) -> list[str]:
        """End the processes that were started here and go on; their commands."""
        return [" ".join(_ended(each)) for each in psutil.process_iter() if self._is_here(each)]

    def _is_here(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("ACP_STATE") == self.env["ACP_STATE"]
        except psutil.Error:
            return False

    def tree(self) -> Tree:
        """Everything that lies here."""
        return {
            str(path.relative_to(self.root)): (stat.S_IMODE(path.lstat().st_mode), _content(path))
            for path in sorted(self.root.rglob("*"))
            if not path.name.endswith(_PASSING) and not path.is_socket()
        }


def written(before: Tree, after: Tree) -> dict[str, Any]:
    """What became of each file: its new text or what was appended, and its mode."""
    changed = {
        path: _change(before.get(path), after[path])
        for path in after
        if before.get(path) != after[path]
    }
    return changed | {path: "removed" for path in before if path not in after}


def _ended(process: psutil.Process) -> list[str]:
    command: list[str] = process.cmdline()
    process.kill()
    process.wait()
    return command


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return os.readlink(path).encode()
    return path.read_bytes() if path.is_file() else FOLDER


def _change(before: tuple[int, bytes] | None, after: tuple[int, bytes]) -> Mapping[str, Any]:
    mode, content = after
    if content is FOLDER:
        return {"mode": f"{mode:04o}", "folder": "changed" if before else "created"}
    if before and before[1] and content.startswith(before[1]):
        return {"mode": f"{mode:04o}", "appended": _readable(content[len(before[1]) :])}
    if before is None:
        return {"mode": f"{mode:04o}", "created": _readable(content)}
    return {"mode": f"{mode:04o}"} | _replaced(_readable(before[1]), _readable(content))


def _replaced(before: Any, after: Any) -> dict[str, Any]:
    """How the lines differ, in the form in which previews say it; bytes whole."""
    if not isinstance(before, list) or not isinstance(after, list):
        return {"replaced": after}
    if before[-1] == after[-1] == "":  # both end as a file of lines does
        before, after = before[:-1], after[:-1]
    return {"changed": list(difflib.unified_diff(before, after, lineterm=""))[2:]}


def _readable(content: bytes) -> Any:
    """Lines where it is text, the statements that make it where it is a database."""
    if content.startswith(b"SQLite format 3\0"):
        return {"sqlite": _statements(content)}
    try:
        return content.decode().split("\n")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _statements(content: bytes) -> list[str]:
    with sqlite3.connect(":memory:") as database:
        # In a mode that has no file beside it, as what is held in memory must be.
        database.deserialize(content[:18] + b"\x01\x01" + content[20:])
        return list(database.iterdump())
