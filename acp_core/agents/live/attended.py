"""Whether a person is there to answer: somebody has used a terminal or a page of this account lately.

That holds for a dashboard in a terminal as well as for a shell. A terminal that merely stays open
overnight says nothing, nor does one that an agent opened for itself. A dashboard in a browser has
no terminal: it notes when somebody uses it (`note_page_used`).
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from glob import glob
from pathlib import Path

import psutil

from acp_core.agents.live.answers import ATTENDED
from acp_core.agents.live.state import MARK
from acp_core.files import modes
from acp_core.person import paths


def is_attended(now: datetime) -> bool:
    """Whether a person was there in the last minutes, as many as a request waits then."""
    since = now.timestamp() - ATTENDED.total_seconds()
    page = page_used()
    if page is not None and page >= since:
        return True
    return any(used >= since for used in terminals().values())


def note_page_used() -> None:
    """Note that somebody uses a dashboard in a browser now; a full disk loses that."""
    path = _page()
    with contextlib.suppress(OSError):
        modes.private_folder(path.parent)
        path.touch(mode=0o600)


def page_used() -> float | None:
    """When somebody used a dashboard in a browser last (seconds since 1970); None for never."""
    try:
        return _page().stat().st_mtime
    except OSError:
        return None


def _page() -> Path:
    return paths.state_folder() / "page-used"


def terminals() -> dict[str, float]:
    """The terminals of this account's people, and when each was typed into last (seconds since 1970)."""
    found: set[str] = set()
    of_agents: set[str] = set()
    names = _names() if psutil.LINUX else None
    for process in psutil.process_iter():
        try:
            terminal = process.terminal() if names is None else names.get(_device(process.pid))
            if terminal is None or process.uids().real != os.getuid():
                continue
            (of_agents if MARK in process.environ() else found).add(terminal)
        except (psutil.Error, OSError):
            continue
    used = {name: _used(name) for name in found - of_agents}
    return {name: at for name, at in used.items() if at is not None}


def _names() -> dict[int, str]:
    """The terminals that are there now, by the number of their device.

    psutil goes on with those that were there when it was asked first: what is opened later has no name.
    """
    numbers = {}
    for name in (*glob("/dev/tty*"), *glob("/dev/pts/*")):
        with contextlib.suppress(OSError):
            numbers[os.stat(name).st_rdev] = name
    return numbers


def _device(pid: int) -> int:
    """The number of the terminal of a process; 0 where it has none (proc_pid_stat(5), field 7)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[4])


def _used(terminal: str) -> float | None:
    """When a terminal was typed into: the system notes it as its time of access."""
    try:
        return os.stat(terminal).st_atime
    except OSError:
        return None
