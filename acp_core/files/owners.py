"""Which process and which account it is, in words that other accounts and hosts can check.

A process id is used again; together with the start of the machine and the moment of its birth it
is not. Whether a process of another account lives may be hidden: then it is not known, and what
is not known is not dead. Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import stat
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded

_BOOT = "/proc/sys/kernel/random/boot_id"
_ZOMBIE = b"Z"
_LIMIT = 64 << 10  # bytes of a record


@dataclass(frozen=True, slots=True)
class Process:
    """A process for good.

    Attributes:
        host: the machine's name.
        boot: names the machine's start; "" where the system does not tell.
        pid: its id.
        started: its birth in ticks since then; -1 where the system does not tell.
    """

    host: str
    boot: str
    pid: int
    started: int = -1

    @staticmethod
    def of(value: object) -> Process:
        """A process as it was written down.

        Raises:
            ValueError: it is no such thing.
        """
        if not isinstance(value, dict):
            raise ValueError("no process")
        host, boot = value.get("host"), value.get("boot")
        pid, started = value.get("pid"), value.get("started", -1)
        if not (isinstance(pid, int) and isinstance(started, int) and 0 < pid < 2**31):
            raise ValueError("no process")
        if not (isinstance(host, str) and isinstance(boot, str)):
            raise ValueError("no process")
        return Process(host, boot, pid, started)

    def alive(self) -> bool | None:
        """Whether it runs; None where that cannot be seen from here."""
        if self.host != host():
            return None
        if self.boot and boot() and self.boot != boot():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # another account's
        state, ticks = _stat(self.pid)
        if not state:
            return None
        if state == _ZOMBIE:
            return False
        return ticks == self.started if self.started >= 0 else None

    def may_live(self) -> bool:
        """Whether it runs on this machine, for all that can be seen."""
        return self.host == host() and self.alive() is not False


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a claim, or held it last.

    Attributes:
        account, uid: whose process it is; the owner of the record's file, not its text.
        process: the process.
        program: what it is, for people.
        since: when it took the claim (ISO 8601).
        epoch: counts how often the claim was taken.
        about: the id of the run or cycle; "" where the folder has only one.
        child: the program that it has started, and that may outlive it.
        ended: when it let go of the claim; "" while it holds it, and where it was killed.
    """

    account: str
    uid: int
    process: Process
    program: str = ""
    since: str = ""
    epoch: int = 0
    about: str = ""
    child: Process | None = None
    ended: str = ""


def process(pid: int) -> Process:
    """The process that has this id now."""
    return Process(host(), boot(), pid, _stat(pid)[1])


def uid() -> int:
    """The number of this account; -1 where the system has none."""
    return os.getuid() if hasattr(os, "getuid") else -1


def account(number: int) -> str:
    """The name of an account; its number where it has none."""
    try:
        import pwd  # late: missing elsewhere

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def host() -> str:
    """This machine's name."""
    return platform.node() or "?"


@cache  # a process does not outlive the start of its machine
def boot() -> str:
    """What names this start of the machine; "" where the system does not tell."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def write_record(path: Path, owner: Owner) -> None:
    """Write down who holds a claim; ``path`` is its lock.

    Raises:
        OSError: it cannot be written.
    """
    data = json.dumps(asdict(owner), ensure_ascii=True).encode() + b"\n"
    record = path.with_suffix(".json")
    shared = modes.is_shared(path.parent.stat())
    atomic.replace(record, data, private=not shared)


def read_record(path: Path) -> Owner | None:
    """Who holds a claim, or held it last; None where that cannot be read. Never raises."""
    record = path.with_suffix(".json")
    try:
        found = os.lstat(record)
        if not stat.S_ISREG(found.st_mode):
            return None
        value = json.loads(read_bounded(record, _LIMIT))
        known = {each.name: value[each.name] for each in fields(Owner) if each.name in value}
        known["process"] = Process.of(known.get("process"))
        known["child"] = Process.of(known["child"]) if known.get("child") else None
        owner = Owner(**known)
        if not _is_lawful(owner):
            return None
    except (OSError, Unreadable, ValueError, TypeError, RecursionError):
        return None
    return replace(owner, uid=found.st_uid, account=account(found.st_uid))


def _stat(pid: int) -> tuple[bytes, int]:
    """The state of a process, and its birth in ticks since the machine's start."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return words[0], int(words[19])
    except (OSError, ValueError, IndexError):
        return b"", -1


def _is_lawful(owner: Owner) -> bool:
    texts = (owner.account, owner.program, owner.since, owner.about, owner.ended)
    return all(isinstance(each, str) for each in texts) and isinstance(owner.epoch, int)
