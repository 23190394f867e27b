"""Which process is meant: a process id is used again, a process id with its birth is not.

Agents that loop by themselves, and loops of another user or another state folder, are not in our
registry: their command lines say that they wait for a participant's turn.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from acp_core.person.paths import key_of

ATTEMPT = "ACP_ATTEMPT"
"""The variable by which a program bears the name of its attempt (see `bearer`)."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")

_SAME = 1.0  # seconds that two readings of one creation time may differ by

_TICK = 0.05  # the same for the time since the machine started, which no clock change moves


@dataclass(frozen=True, slots=True)
class Identity:
    """A process for good.

    ``created`` is in seconds since 1970, as psutil gives it; ``since_boot`` the same counted
    from the start of the machine, and ``boot`` names that start ("" where the system does not).
    The wall clock may be set while a process lives: then the latter two still hold.
    """

    pid: int
    created: float
    since_boot: float = -1.0
    boot: str = ""

    def alive(self) -> bool:
        """Whether this very process is running (one that ended and was not waited for is not)."""
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return self._is(_of(process))
        except (psutil.Error, ValueError, OverflowError):
            return False

    @property
    def before_restart(self) -> bool:
        """Whether it ran before this machine was started last, as far as the system tells that."""
        now = _boot()
        return bool(self.boot and now) and self.boot != now

    def _is(self, other: Identity) -> bool:
        if self.boot and other.boot:
            if self.boot != other.boot:
                return False
            if abs(self.since_boot - other.since_boot) < _TICK:
                return True
        return abs(self.created - other.created) < _SAME


def identify(pid: int) -> Identity | None:
    """The identity of the process that has this id now, or None where there is none."""
    try:
        return _of(psutil.Process(pid))
    except (psutil.Error, ValueError, OverflowError):
        return None


def myself() -> Identity:
    """The identity of this process."""
    return identify(os.getpid()) or Identity(os.getpid(), time.time())


def _of(process: psutil.Process) -> Identity:
    created = process.create_time()
    return Identity(process.pid, created, round(created - psutil.boot_time(), 3), _boot())


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def session_members(session: int) -> tuple[Identity, ...]:
    """The living processes of a session (``start_new_session`` makes one per program)."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(_of(process))
        except (OSError, psutil.Error):
            continue
    return tuple(found)


def descendants(pid: int) -> tuple[Identity, ...]:
    """The living processes that a process started, and those that they started."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except (psutil.Error, ValueError):
        return ()
    return tuple(filter(None, (_alive(each) for each in children)))


def marked(name: str, value: str) -> tuple[Identity, ...]:
    """The living processes, as far as they may be looked at, with this variable in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(name) == value:
                found.append(_alive(process))
        except (OSError, psutil.Error, ValueError):
            continue
    return tuple(filter(None, found))


def bearer(name: str, value: str) -> Identity | None:
    """The living program that was started with this variable; not what it started in turn.

    A program can be noted only once it has a process id. Where whoever starts it is killed in
    between, it is found by what its environment says.
    """
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) != process.pid or process.environ().get(name) != value:
                continue
            if not _bears(process.parent(), name, value):
                return identify(process.pid)
        except (psutil.Error, OSError):
            continue
    return None


def _bears(process: psutil.Process | None, name: str, value: str) -> bool:
    try:
        return process is not None and process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


def _alive(process: psutil.Process) -> Identity | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else _of(process)
    except psutil.Error:
        return None


_WAITING = ("wait", "loop", "wait_for_turn.py")  # those that stay; `append` is over at once


@dataclass(frozen=True, slots=True)
class WaitingProcess:
    """A process that waits for a participant's turn.

    Attributes:
        process: the process.
        folder: the collaboration's key.
        participant: whose turn it waits for, as typed.
        started: when it was started.
        parent: the process id of its parent.
    """

    process: Identity
    folder: str
    participant: str
    started: datetime
    parent: int


def waiting_processes(folder: str | None = None) -> list[WaitingProcess]:
    """The processes of this machine that wait for a participant's turn, oldest first.

    Args:
        folder: only those of this collaboration (a path or URL).
    """
    wanted = None if folder is None else key_of(folder)
    found = []
    for process in psutil.process_iter():
        try:
            waiting = _waiting(process)
        except (psutil.Error, OSError):
            continue
        if waiting and (wanted is None or waiting.folder == wanted):
            found.append(waiting)
    return sorted(found, key=lambda each: each.started)


def _waiting(process: psutil.Process) -> WaitingProcess | None:
    argv = process.cmdline()
    who = _option(argv, "--participant")
    where = _option(argv, "--folder")
    if not who or not where or not any(os.path.basename(word) in _WAITING for word in argv[:6]):
        return None
    identity = identify(process.pid)
    if identity is None:
        return None
    started = datetime.fromtimestamp(process.create_time(), UTC)
    folder = key_of(os.path.join(process.cwd(), where))
    return WaitingProcess(identity, folder, who, started, process.ppid())


def _option(argv: Sequence[str], name: str) -> str:
    for place, word in enumerate(argv):
        if word == "--":
            return ""
        if word == name and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""
