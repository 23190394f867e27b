"""What changed in a repository since a turn was assigned, as git sees it.

Source: governed protocol specification, "Overview" (structured evidence): what an agent says
that it changed is compared with what did change. Nothing of the repository's own configuration
is run: no hooks, no filters for showing, no helpers.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable
from acp_core.model.text import clean
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, text
from acp_core.protocols.governed.state import Observed
from acp_core.protocols.kit.wording import bounded, difference

PATIENCE = 60.0  # seconds that git may take
MOST = 5_000  # changed files that are looked at
_LARGEST = 64 << 20
_SAFE = (
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false",
)  # fmt: skip
OWN = (".agentxchain/", ".acp/", schema.TALK)
"""What belongs to the run itself and is no product of a turn; reviews are (`_own`)."""
REVIEWS = ".agentxchain/reviews/"
NOT_NOW = "not read now: "
"""How the marker of a file begins that could not be read for a reason that says nothing of the file."""


class GitFailed(Unusable):
    """git is not there, or this is no repository.

    ``passing``: git did not get to say anything, which tells nothing of the repository.
    """

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class Baseline(NamedTuple):
    """How a repository stood when a turn was assigned."""

    head: str
    dirty: tuple[tuple[str, str], ...]
    known: bool = True

    def as_object(self, at: str) -> Object:
        """As the state holds it."""
        return {
            "kind": "git_worktree" if self.known else "none",
            "head_ref": self.head or None,
            "clean": not self.dirty,
            "captured_at": at,
            "dirty_snapshot": dict(self.dirty),
        }


def baseline(root: Path) -> Baseline:
    """How the repository stands now; without git nothing is known.

    Raises:
        GitFailed: git or a file could not be read at this moment, which says nothing of either.
    """
    try:
        head = _head(root)
        names = _changed(root, head)
    except GitFailed as error:
        if error.passing:
            raise
        return Baseline("", (), known=False)
    found = tuple((name, marker(root, name)) for name in names)
    if doubt := _doubt(found):
        raise GitFailed(doubt, passing=True)
    return Baseline(head, found)


def _doubt(markers: Iterable[tuple[str, str]]) -> str:
    """The first file that could not be read at this moment, and why; "" where there is none."""
    doubts = (f"{n}: {m[len(NOT_NOW) :]}" for n, m in markers if m.startswith(NOT_NOW))
    return next(doubts, "")


def taken_anew(root: Path, before: Object, of_agent: Object, at: str) -> Object:
    """The baseline for another attempt: what others changed since the last one is not the agent's.

    Args:
        root: the repository.
        before: the baseline of the attempt before.
        of_agent: what had changed when that ended, the markers by the names of the files.
        at: the time.

    Raises:
        GitFailed: git or a file could not be read at this moment.
    """
    seen = observe(root, before)
    if seen.doubt:
        raise GitFailed(seen.doubt, passing=True)
    others = {name: marker for name, marker in seen.markers if name not in of_agent}
    if not seen.known or not others:
        return before
    dirty = schema.obj(before, "dirty_snapshot") | others
    return before | {"clean": False, "captured_at": at, "dirty_snapshot": dirty}


def observe(root: Path, before: Object, excluded: Iterable[str] = ()) -> Observed:
    """What changed since ``before``, the baseline in the turn. Never raises.

    Args:
        root: the repository, or a folder in it.
        before: the turn's baseline, as the state holds it.
        excluded: paths that a human said are not the agent's.
    """
    left_out = tuple(sorted(set(excluded)))
    if text(before, "kind", 40) != "git_worktree":
        return Observed(excluded=left_out, known=False)
    base = text(before, "head_ref", 80)
    dirty = schema.obj(before, "dirty_snapshot")
    try:
        head = _head(root)
        names = {*_changed(root, base), *(str(name) for name in dirty if not _own(str(name)))}
        markers = {name: marker(root, name) for name in sorted(names)[:MOST]}
        summary = _git(root, "diff", "--stat=100", "--no-ext-diff", "--no-textconv", "--no-color",
                       "--relative", base or _empty(root), "--", ".")  # fmt: skip
    except GitFailed as error:
        doubt = str(error) if error.passing else ""
        return Observed(excluded=left_out, known=False, doubt=doubt)
    changed = [
        name for name in markers if dirty.get(name) != markers[name] and name not in left_out
    ]
    return Observed(
        tuple(changed),
        tuple((name, markers[name]) for name in changed),
        summary.decode("utf-8", "replace")[:4_000].rstrip(),
        base,
        head,
        left_out,
        doubt=_doubt(markers.items()),
    )


def line_counts(root: Path, seen: Observed) -> dict[str, tuple[int, int]]:
    """How many lines were added to and removed from each observed file. Never raises.

    Args:
        root: The repository, or a folder in it.
        seen: What was observed in it.

    Returns:
        Added and removed lines by path; a file that is not text, or too large, is left out.
    """
    if not seen.known or not seen.files:
        return {}
    try:
        told = _git(root, "diff", "--numstat", "-z", "--no-ext-diff", "--no-textconv", "--no-renames",
                    "--relative", seen.baseline or _empty(root), "--", ".")  # fmt: skip
    except GitFailed:
        return {}
    counts = {}
    for line in told.decode("utf-8", "backslashreplace").split("\0"):
        added, _, rest = line.partition("\t")
        removed, _, path = rest.partition("\t")
        if added.isdigit() and removed.isdigit():
            counts[path] = int(added), int(removed)
    for name in seen.files:
        if name not in counts and (lines := _lines_of(root / name)):
            counts[name] = lines, 0
    return {name: counts[name] for name in seen.files if name in counts}


def differences(root: Path, seen: Observed, names: Iterable[str]) -> dict[str, str]:
    """What changed in observed files, as unified differences safe to show. Never raises.

    Args:
        root: The repository, or a folder in it.
        seen: What was observed in it.
        names: The files; a new one is shown as its lines, each with a plus.
    """
    found = {}
    for name in names:
        try:
            told = _git(root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames",
                        "--relative", seen.baseline or _empty(root), "--", f":(literal){name}")  # fmt: skip
        except GitFailed:
            continue
        lines = told.decode("utf-8", "replace").partition("\n@@")
        found[name] = bounded(clean(f"@@{lines[2]}")) if lines[1] else _new_lines(root / name)
    return found


def _new_lines(path: Path) -> str:
    """The lines of a file that git does not know, each with a plus; "" where it is no text."""
    try:
        data = b"" if path.is_symlink() else read_bounded(path, _LARGEST)
    except Unreadable:
        return ""
    return "" if b"\0" in data[:8_000] else difference(b"", data)


def _lines_of(path: Path) -> int:
    """How many lines a file has that git does not know; 0 where it is no text."""
    try:
        data = b"" if path.is_symlink() else read_bounded(path, _LARGEST)
    except Unreadable:
        return 0
    return 0 if b"\0" in data[:8_000] else len(data.splitlines())


def marker(root: Path, name: str) -> str:
    """What a file holds, as a digest; words where it holds nothing that can be read."""
    path = root / name
    if path.is_symlink():
        return "link:" + hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    try:
        return "sha256:" + hashlib.sha256(read_bounded(path, _LARGEST)).hexdigest()
    except Unreadable as error:
        if error.passing:
            return f"{NOT_NOW}{error.reason}"
        return "missing" if error.missing else f"unread: {error.reason}"


def _own(name: str) -> bool:
    return name.startswith(OWN) and not name.startswith(REVIEWS)


def _head(root: Path) -> str:
    _git(root, "rev-parse", "--is-inside-work-tree")
    try:
        return _git(root, "rev-parse", "--verify", "-q", "HEAD").decode("ascii", "replace").strip()
    except GitFailed as error:
        if error.passing:
            raise
        return ""  # no commit yet


def _empty(root: Path) -> str:
    output = _git(root, "hash-object", "-t", "tree", os.devnull)
    return output.decode("ascii", "replace").strip()


def _changed(root: Path, base: str) -> list[str]:
    """The files that differ from the commit ``base``, and those that git does not know."""
    if base and not base.isalnum():
        raise GitFailed("no commit")
    tracked = _git(root, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames",
                   "--relative", base or _empty(root), "--", ".")  # fmt: skip
    new = _git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", ".")
    # a name that is no UTF-8 is told as its bytes: it could not stand in the state otherwise
    names = {name.decode("utf-8", "backslashreplace")
             for name in (tracked + new).split(b"\0") if name}  # fmt: skip
    return sorted(name for name in names if not _own(name))


def _git(root: Path, *words: str) -> bytes:
    """What git prints.

    Raises:
        GitFailed: it is not there, or fails.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_SAFE, *words],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (FileNotFoundError, ValueError) as error:
        raise GitFailed(str(error)) from None
    except OSError as error:
        raise GitFailed(f"git: {error.strerror or error}", passing=True) from None
    except subprocess.SubprocessError:
        reason = f"git did not answer within {PATIENCE:g} s"
        raise GitFailed(reason, passing=True) from None
    if done.returncode != 0:
        raise GitFailed(words[0])
    return done.stdout
