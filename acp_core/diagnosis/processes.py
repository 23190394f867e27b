"""Processes on this machine that have to do with a collaboration's participants.

Nothing here asks a process anything: the system's table says how each was started.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import psutil

from acp_core.agents.processes import identify, waiting_processes
from acp_core.files import claims
from acp_core.files.secrets import mask_command
from acp_core.model.text import clean_line
from acp_core.person.paths import key_of
from acp_core.protocols.kit.diagnosis import UnmanagedProcess

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

PACE = 10.0  # seconds between two looks at all processes
_FRESH = 10.0  # seconds before a program's last word in which a busy child may have begun
_SHOWN = 300


class _Seen(NamedTuple):
    """A process, with its session and the ids of itself, its ancestors and its session's leader."""

    stranger: UnmanagedProcess
    session: int
    line: frozenset[int]


class UnmanagedProcesses:
    """The processes that act for participants although no loop of ours started them.

    From any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._found: dict[str, list[_Seen]] = {}

    def of(self, key: str, loops: Sequence[RunnerState]) -> tuple[UnmanagedProcess, ...]:
        """Those in one collaboration that belong to none of its ``loops``; looks now and then."""
        with self._lock:
            if time.monotonic() - self._looked >= PACE:
                self._found = _scan_processes()
                self._looked = time.monotonic()
            here = self._found.get(key_of(key), ()) if self._found else ()
        own = _own(loops)
        found = _one_each(seen for seen in here if own.isdisjoint(seen.line))
        seen = {each.participant for each in found}  # what a loop runs names its participant, too
        return (*found, *(each for each in _claimed(key, loops) if each.participant not in seen))

    def forget(self) -> None:
        """Look again the next time."""
        with self._lock:
            self._looked = float("-inf")


def _claimed(key: str, loops: Sequence[RunnerState]) -> Iterator[UnmanagedProcess]:
    """Loops of other accounts, which their claims in the collaboration's folder show."""
    known = {loop.pid for loop in loops}
    for seen in claims.listed(key, "loops") if "://" not in key else ():
        owner = seen.owner
        if seen.held and owner and owner.process.pid not in known:
            command = f"{owner.program} of {owner.account}"
            process = identify(owner.process.pid)
            created = process.created if process else 0.0
            yield UnmanagedProcess(owner.about, owner.process.pid, created, clean_line(command))


def _own(loops: Sequence[RunnerState]) -> frozenset[int]:
    """Ids of processes whose descendants are ours."""
    pids = {loop.pid for loop in loops if loop.alive}
    pids |= {loop.run.process.pid for loop in loops if loop.run and loop.program_alive}
    pids |= {each.pid for loop in loops for each in loop.shown.left_over}
    return frozenset(pids)


def _one_each(strange: Iterable[_Seen]) -> tuple[UnmanagedProcess, ...]:
    """One process per participant and session: a loop, and what it runs just now."""
    first: dict[tuple[str, int], UnmanagedProcess] = {}
    for seen in strange:  # oldest first
        first.setdefault((seen.stranger.participant, seen.session), seen.stranger)
    return tuple(first.values())


def _scan_processes() -> dict[str, list[_Seen]]:
    """Every such process by collaboration."""
    found: dict[str, list[_Seen]] = {}
    for each in waiting_processes():
        pid = each.process.pid
        try:
            process = psutil.Process(pid)
            words = process.cmdline()
            line = {pid, *(parent.pid for parent in process.parents())}
            session = os.getsid(pid)
        except (AttributeError, OSError, psutil.Error):  # no sessions on Windows
            continue
        stranger = UnmanagedProcess(
            participant=each.participant,
            pid=pid,
            created=each.process.created,
            command=clean_line(" ".join(mask_command(words)), _SHOWN),
            waits=not any(word == "loop" for word in words),
        )
        found.setdefault(each.folder, []).append(
            _Seen(stranger, session, frozenset(line | {session}))
        )
    return found


def busy(loop: RunnerState) -> str:
    """What a loop's program has running for it: a tool that it named, or a child process.

    Children that were there long before the program said its last word are its own helpers,
    not its work.
    """
    run = loop.run
    if run is None or not loop.program_alive:
        return ""
    if run.tool:
        return run.tool
    since = (run.last_output or run.started).timestamp() - _FRESH
    try:
        for child in psutil.Process(run.process.pid).children(recursive=True):
            if child.create_time() >= since and child.status() != psutil.STATUS_ZOMBIE:
                return clean_line(" ".join(mask_command(child.cmdline())) or child.name(), 200)
    except (OSError, psutil.Error):
        pass
    return ""
