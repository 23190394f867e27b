"""The committed versions of a collaboration's files, where they lie in a git repository.

git is run with a list of arguments and without anything that a repository could have run: no
pager, no hooks, no external differ, no file system monitor. Where it is not installed, or takes too
long, there are no committed versions.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_core.kept import Kept

PATIENCE = 10.0  # seconds for one run of git
MOST = 500  # commits of one file that are looked at
LARGEST = 16 << 20  # bytes of a version
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that was committed: when (seconds since 1970), in which commit, and what it is."""

    at: float
    id: str
    size: int
    digest: str
    read: Callable[[], bytes]


def digest(data: bytes) -> str:
    """The name of a content: its SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def committed(kept: Sequence[Kept]) -> dict[str, list[Committed]]:
    """The committed versions of these files, oldest first, by the files' names."""
    if not kept or not any(_in_repository(file.path) for file in kept[:1]):
        return {}
    found = {file.name: _of(file) for file in kept}
    return {name: versions for name, versions in found.items() if versions}


def _in_repository(path: str) -> bool:
    """Whether a folder above holds ``.git``: then asking git is worth its while."""
    return any(Path(above, ".git").exists() for above in Path(path).parents)


def _of(file: Kept) -> list[Committed]:
    folder, name = os.path.split(file.path)
    listed = _git(folder, "log", f"--max-count={MOST}", "--format=%H %ct", "--", f"./{name}")
    versions: list[Committed] = []
    for line in reversed((listed or b"").decode("ascii", "replace").splitlines()):
        commit, _, at = line.partition(" ")
        if not commit.isalnum() or not at.isdecimal():
            continue
        data = _git(folder, "cat-file", "blob", f"{commit}:./{name}")
        if data is not None and len(data) <= LARGEST:
            versions.append(Committed(float(at), commit, len(data), digest(data), _kept(data)))
    return versions


def _kept(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _git(folder: str, *words: str) -> bytes | None:
    """What git prints; None where it fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_SAFE, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None
