"""Processes that wait for a participant's turn, as far as their command lines say so.

Agents that loop by themselves, and loops of another user or another state folder, are not in our
registry. What their command lines say is only a hint: it shows that somebody waits for a turn,
not that nobody else does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from acp_core.agents.identity import Identity, identify
from acp_core.person.paths import key_of

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
