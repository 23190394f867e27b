"""The repositories of an initiative: those that are there, and those that have to be cloned.

git is run with a list of arguments, asks nobody anything, runs no hook and follows no helper
that an address could name. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema

PATIENCE = 900.0  # seconds that cloning may take

_QUICK = 20.0

_URL = re.compile(r"(?:https?|ssh|git|file)://[^\s]+")

_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:][^\s]*")

_SAFE = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "protocol.ext.allow=never",
)  # fmt: skip

_PASSED_ON = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


def address(root: Path, repo: str) -> str:
    """What to clone from: an address, or a folder given absolutely or from the initiative.

    Raises:
        Refused: it is none that git may be given.
    """
    name = clean_line(repo, 200)
    if not repo:
        raise Refused("names no repository")
    if repo.startswith("-") or "::" in repo or "\n" in repo:
        raise Refused(f"the address {name} is not one that acp passes to git")
    if _URL.fullmatch(repo) or _SCP.fullmatch(repo):
        return repo
    if "://" in repo:
        raise Refused(
            f"the address {name} is not one that acp passes to git (https, ssh, git, file)"
        )
    folder = os.path.abspath(os.path.join(root, os.path.expanduser(repo)))
    if not os.path.isdir(folder):
        raise Refused(f"no folder {name}")
    return folder


def within(root: Path, repo: str) -> str:
    """The folder of the initiative that ``repo`` names, relative to it; "" where it names none."""
    if not repo or "://" in repo or _SCP.fullmatch(repo) or os.path.isabs(repo):
        return ""
    inside = schema.inside(root, repo)
    if inside is None or inside == root or not inside.is_dir():
        return ""
    return os.path.relpath(inside, root)


def branch_of(folder: Path) -> str:
    """The branch that is checked out; "" where none is, or git cannot tell."""
    done = _git(["-C", str(folder), "symbolic-ref", "--short", "-q", "HEAD"], _QUICK)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def head_of(folder: Path) -> str:
    """The commit that is checked out; "" where there is none yet."""
    done = _git(["-C", str(folder), "rev-parse", "--verify", "-q", "HEAD"], _QUICK)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def clone(source: str, branch: str, target: Path) -> None:
    """Clone ``branch`` (or the one that the repository names) into ``target``, whole or not at all.

    Raises:
        Refused: git says no; its last line says why.
    """
    unfinished = target.parent / f".{target.name}.{secrets.token_hex(4)}.acp-clone"
    chosen = ["--branch", branch] if branch else []
    words = ["clone", "--quiet", "--no-recurse-submodules", "--template=", *chosen]
    try:
        done = _git([*words, "--", source, str(unfinished)], PATIENCE)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = clean_line(said[-1], 300) if said else f"exit code {done.returncode}"
            raise Refused(f"{target.name} cannot be cloned: {reason}")
        os.rename(unfinished, target)
    except OSError as error:
        raise Refused(f"{target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def sweep(root: Path, name: str) -> None:
    """Remove what a killed clone of ``name`` left."""
    for left in root.glob(f".{name}.*.acp-clone"):
        if not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def _git(words: Sequence[str], patience: float) -> subprocess.CompletedProcess[bytes]:
    env = {
        name: v
        for name, v in os.environ.items()
        if name in _PASSED_ON or not name.startswith("GIT_")
    }
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    env["GIT_ALLOW_PROTOCOL"] = "file:git:http:https:ssh"
    try:
        process = subprocess.Popen(
            ["git", *_SAFE, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Refused(f"git cannot be run: {error.strerror or error}") from None
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        raise Refused(f"git took longer than {patience:.0f} s") from None
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
