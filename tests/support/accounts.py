"""Two real accounts of this machine that share a folder by a group of their own. Needs root."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from tests.agents.support import ROOT

_SHELL = "/usr/sbin/nologin"


class NoAccounts(Exception):
    """Accounts cannot be made here; the message says why."""


@dataclass(frozen=True, slots=True)
class Account:
    """One of them: its ids, its home, the group that both are in, and a Python that it may run."""

    name: str
    uid: int
    gid: int
    group: int
    home: Path
    python: str = sys.executable

    @property
    def env(self) -> dict[str, str]:
        """The variables that its programs get: nothing of whoever runs the tests."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *_libraries()]), "TERM": "xterm-256color", "USER": self.name,
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip

    @property
    def state(self) -> Path:
        """What acp keeps for it privately."""
        return self.home / ".local" / "state" / "acp"

    def words(self, *words: object) -> list[str]:
        """The words of a command of acp."""
        return [self.python, "-P", "-m", "acp_core", *map(str, words)]

    def start(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start a program as this account, with the usual umask."""
        return subprocess.Popen(
            words, user=self.uid, group=self.gid, extra_groups=[self.group], umask=0o022,
            env=self.env, cwd=cwd or self.home, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def run(self, *words: str, cwd: Path | None = None) -> tuple[int, str, str]:
        """Run a program as this account: exit code, output, complaints."""
        with self.start(*words, cwd=cwd) as process:
            out, err = process.communicate(timeout=300)
            return process.returncode, out, err

    def acp(self, *words: object, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command of acp, which ends with one of these codes; all that it said."""
        code, out, err = self.run(*self.words(*words))
        assert code in codes, (self.name, words, code, out, err)
        return out + err

    def json(self, *words: object, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """What a command of acp prints with ``--json``."""
        at = words.index("--") if "--" in words else len(words)
        code, out, err = self.run(*self.words(*words[:at], "--json", *words[at:]))
        assert code in codes, (self.name, words, code, out, err)
        found: dict[str, Any] = json.loads(out)
        return found

    def as_words(self) -> list[str]:
        """What is put before a command so that root runs it as this account."""
        ids = [f"--reuid={self.uid}", f"--regid={self.gid}", f"--groups={self.group}"]
        return ["setpriv", *ids, "env", "-i", *(f"{n}={v}" for n, v in self.env.items())]

    def end_all(self) -> None:
        """End every process of this account, which exists for one test only."""
        while left := [each for each in psutil.process_iter() if self._owns(each)]:
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(left, 1)

    def _owns(self, process: psutil.Process) -> bool:
        try:
            mine: bool = process.uids().real == self.uid
            return mine and process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False


@dataclass(frozen=True, slots=True)
class Shared:
    """Two accounts, and a folder of mode 2770 that belongs to their group."""

    anna: Account
    ben: Account
    folder: Path

    def file(self, name: str, text: str, mode: int = 0o755) -> Path:
        """A file that both can read, outside of what they share."""
        path = self.folder.parent / name
        path.write_text(text)
        path.chmod(mode)
        return path


@contextmanager
def shared() -> Iterator[Shared]:
    """Make the accounts, and remove them afterwards with all that they ran and wrote.

    Raises:
        NoAccounts: they cannot be made, or cannot run what is tested.
    """
    if os.geteuid() != 0 or not shutil.which("useradd") or not shutil.which("setpriv"):
        raise NoAccounts("needs root, useradd and setpriv")
    number = secrets.token_hex(4)
    group = f"acpt{number}"
    names = [f"acpa{number}", f"acpb{number}"]
    place = Path(tempfile.mkdtemp(prefix="acp-accounts-", dir="/tmp"))
    place.chmod(0o755)
    accounts: list[Account] = []
    try:
        _call("groupadd", group)
        for name in names:
            _call("useradd", "-M", "-d", str(place / name), "-s", _SHELL, "-G", group, name)
            accounts.append(_account(name, group, place))
        anna, ben = (replace(each, python=_python(each)) for each in accounts)
        folder = place / "shared"
        folder.mkdir()
        os.chown(folder, 0, anna.group)
        folder.chmod(0o2770)
        yield Shared(anna, ben, folder)
    finally:
        for account in accounts:
            account.end_all()
        for name in names:
            subprocess.run(["userdel", "-f", name], capture_output=True, check=False)
        subprocess.run(["groupdel", group], capture_output=True, check=False)
        shutil.rmtree(place, ignore_errors=True)


def _account(name: str, group: str, place: Path) -> Account:
    import grp

    entry = pwd.getpwnam(name)
    home = place / name
    home.mkdir(mode=0o700)
    os.chown(home, entry.pw_uid, entry.pw_gid)
    return Account(name, entry.pw_uid, entry.pw_gid, grp.getgrnam(group).gr_gid, home)


def _libraries() -> list[str]:
    return [each for each in sys.path if each.endswith("site-packages")]


def _python(account: Account) -> str:
    """An interpreter that may be run by others and has all that is tested."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with contextlib.suppress(OSError):
            if account.run(python, "-P", "-c", "import acp_tui.app, acp_core, psutil")[0] == 0:
                return python
    raise NoAccounts("no Python that other accounts may run has all that is tested")


def _call(*words: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise NoAccounts(f"{words[0]}: {ended.stderr.strip()}")
