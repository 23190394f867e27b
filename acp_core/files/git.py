"""Whether git can read the repository that a folder stands in.

git refuses a repository of another account ("dubious ownership"), and one that is damaged. Whoever
compares what changed with what was declared must not take that for a folder without a repository.
Nothing of the repository's own configuration is run. Standard library only.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

from acp_core.model.text import clean_line

_PATIENCE = 20.0  # seconds that git may take
_SAFE = re.compile(r"git config --global --add safe\.directory [^\n]+")


class Refusal(NamedTuple):
    """Why git does not read a repository, and what makes it do so."""

    reason: str
    cure: str


def is_repository(folder: str | Path) -> bool:
    """Whether a repository's ``.git`` lies in this very folder.

    An empty folder of that name is none, for git neither: sandboxes make one for a moment wherever their
    program may write, so that it can make none of its own.
    """
    home = os.path.join(folder, ".git")
    try:
        with os.scandir(home) as found:
            return next(found, None) is not None
    except NotADirectoryError:
        return True  # the file that names the repository of a working tree, or a damaged one
    except OSError:
        return os.path.lexists(home)


def top(folder: str | Path) -> str | None:
    """The nearest folder at or above one in which a repository's ``.git`` lies; None where there is none."""
    here = Path(os.path.abspath(folder))
    return next((str(each) for each in (here, *here.parents) if is_repository(each)), None)


def refusal(folder: Path) -> Refusal | None:
    """Why git refuses to read the repository around a folder.

    Args:
        folder: the folder, or one above it, holds the repository.

    Returns:
        None where git reads it, where there is no repository, and where there is no git.
    """
    above = top(folder)
    if above is None or _is_plain(Path(above)):
        return None
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "rev-parse", "--is-inside-work-tree"],
            cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, ValueError):
        return None
    except subprocess.SubprocessError:
        return Refusal(f"it took longer than {_PATIENCE:.0f} seconds", "check the disk")
    if done.returncode == 0:
        return None
    return _refusal(Path(above), done.stderr.decode("utf-8", "replace"))


def environment() -> dict[str, str]:
    """What a run of git gets: nothing of the caller's own git, and answers in English."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return kept | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}


def _refusal(above: Path, said: str) -> Refusal:
    if "dubious ownership" in said:
        named = _SAFE.search(said)
        own = f"git config --global --add safe.directory {shlex.quote(str(above))}"
        return Refusal("it belongs to another account", clean_line(named[0] if named else own, 500))
    lines = [line for line in said.splitlines() if line.strip()]
    reason = clean_line(lines[0].removeprefix("fatal: "), 200) if lines else "git gives no reason"
    name = clean_line(str(above), 200)
    return Refusal(
        reason, f"repair the repository in {name} (git -C {name} status says what is wrong)"
    )


def _is_plain(above: Path) -> bool:
    """Whether a repository is whole and this account's own, as a glance tells: git is not asked."""
    home = above / ".git"
    try:
        owners = {os.stat(each).st_uid for each in (above, home)}
        whole = all((home / name).exists() for name in ("HEAD", "objects", "refs"))
    except OSError:
        return False
    return owners == {os.geteuid()} and whole
