"""Which process is meant, and how it is ended.

A process id is used again, a process id with its birth is not. Agents that loop by themselves, and
loops of another user or another state folder, are not in our registry: their command lines say that
they wait for a participant's turn. Processes are asked to end first, and made to where they do not;
a loop that is parked is a shell that reads a line: nothing need be started to end it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

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


GRACE = 10.0  # seconds between asking a program to end and ending it

_AT_ONCE = 2.0  # seconds after which what was made to end is gone

_STEP = 0.02

_LOOK = 0.5  # seconds between two looks whether they live, where the system tells of their end


class Stopped(NamedTuple):
    """What came of stopping a loop: whether all of its processes ended, and a sentence."""

    done: bool
    sentence: str


def end(
    processes: Iterable[Identity], grace: float, *, groups: bool = False, patience: float = _AT_ONCE
) -> bool:
    """Ask processes to end, then make them; blocks until they have ended.

    Args:
        processes: which; those that have ended already are left alone.
        grace: seconds that they get to end by themselves.
        groups: end the whole process group of each that leads one.
        patience: seconds to wait for those that were made to end.

    Returns:
        Whether all of them have ended.
    """
    left = list(processes)
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, patience)):
        left = [each for each in left if each.alive()]
        for each in left:
            send(each, number, group=groups)
        if have_ended(left, seconds):
            return True
    return False


def send(process: Identity, number: int, *, group: bool = False) -> None:
    """Send a signal to this very process, or to its whole group where it leads one."""
    if not process.alive():
        return
    with contextlib.suppress(OSError):
        if group and os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)


def have_ended(processes: Iterable[Identity], patience: float) -> bool:
    """Wait until all of them have ended, for so many seconds at most; whether they have."""
    until = time.monotonic() + patience
    left = list(processes)
    while left := [each for each in left if each.alive()]:
        remaining = until - time.monotonic()
        if remaining <= 0:
            return False
        _wait_for_one(left, min(remaining, _LOOK))
    return True


def _wait_for_one(processes: Iterable[Identity], seconds: float) -> None:
    """Wait until one of them has ended, for so many seconds at most; a step where nothing tells."""
    opened: list[int] = []
    try:
        poll = select.poll()
        for each in processes:
            opened.append(os.pidfd_open(each.pid))
            poll.register(opened[-1], select.POLLIN)
        poll.poll(1_000 * seconds)
    except (AttributeError, OSError):
        time.sleep(_STEP)
    finally:
        for descriptor in opened:
            os.close(descriptor)


PARKED_NAME = "acp-parked"

"""What a parked loop is called in the system's table of processes."""

_PATIENCE = 2.0  # seconds for a signal to be heeded

_LOOK_AGAIN = 0.005


def end_parked(process: Identity) -> bool:
    """End a loop that is parked. It holds nothing but its locks, and has no program at work.

    It is stopped first: so it cannot become the loop again between the look and its end.

    Returns:
        Whether it has ended; False, and it goes on, where it is not parked.
    """
    if not _is_parked(process):
        return False
    send(process, signal.SIGSTOP)
    if _is_stopped(process) and _is_parked(process):
        send(process, signal.SIGKILL)
        return have_ended([process], _PATIENCE)
    send(process, signal.SIGCONT)
    return False


def _is_parked(process: Identity) -> bool:
    try:
        return process.alive() and PARKED_NAME in psutil.Process(process.pid).cmdline()
    except psutil.Error:
        return False


def _is_stopped(process: Identity) -> bool:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            if psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return True
        except psutil.Error:
            return False
        time.sleep(_LOOK_AGAIN)
    return False
