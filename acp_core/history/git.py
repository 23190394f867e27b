"""The committed versions of a collaboration's files, where they lie in a git repository.

git is run with a list of arguments and without anything that a repository could have run: no
pager, no hooks, no external differ, no file system monitor, no check of signatures, no fetching. Where it is not installed, or takes too
long, there are no committed versions.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acp_core.files import git as repositories
from acp_core.model.tracked import TrackedFile

PATIENCE = 10.0  # seconds for one run of git
MOST = 200  # commits of one file that are looked at
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


def committed(tracked: Sequence[TrackedFile]) -> dict[str, list[Committed]]:
    """The committed versions of these files, oldest first, by the files' names."""
    folders = {os.path.dirname(file.path) for file in tracked}
    worth = {each for each in folders if repositories.top(each) is not None}
    found = {
        file.name: _read_commits(file) for file in tracked if os.path.dirname(file.path) in worth
    }
    return {name: versions for name, versions in found.items() if versions}


def listed(folder: str) -> list[str] | None:
    """The files below a folder that git does not ignore, by name; None where git does not say."""
    if repositories.top(folder) is None:
        return None
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    output = _git(folder, *words)
    return None if output is None else [os.fsdecode(each) for each in output.split(b"\0") if each]


def _read_commits(file: TrackedFile) -> list[Committed]:
    folder, name = os.path.split(file.path)
    if "\n" in name:
        return []
    listed = _git(
        folder,
        "log",
        "--no-show-signature",
        f"--max-count={MOST}",
        "--format=%H %ct",
        "--",
        f"./{name}",
    )
    commits: list[tuple[str, float]] = []
    for line in reversed((listed or b"").decode("ascii", "replace").splitlines()):
        commit, _, at = line.partition(" ")
        if commit.isalnum() and at.isdecimal():
            commits.append((commit, float(at)))
    contents = _contents(folder, [f"{commit}:./{name}" for commit, _ in commits])
    return [
        Committed(at, commit, len(data), digest(data), _reader_of(data))
        for (commit, at), data in zip(commits, contents, strict=False)
        if data is not None and len(data) <= LARGEST
    ]


def _contents(folder: str, names: list[str]) -> list[bytes | None]:
    """The contents of objects, in one run of git; None for one that is not there."""
    if not names:
        return []
    asked = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
    output = _git(folder, "cat-file", "--batch", given=asked)
    found: list[bytes | None] = []
    place = 0
    while output is not None and place < len(output):
        end = output.find(b"\n", place)
        header = output[place:end].split(b" ")
        if end < 0 or len(header) < 3 or header[-2] != b"blob" or not header[-1].isdigit():
            found.append(None)
            place = end + 1 if end >= 0 else len(output)
            continue
        size = int(header[-1])
        found.append(output[end + 1 : end + 1 + size])
        place = end + 1 + size + 1
    return found


def _reader_of(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _git(folder: str, *words: str, given: bytes = b"") -> bytes | None:
    """What git prints when it is given something to read; None where it fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_SAFE, *words],
            cwd=folder,
            env=environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None
