"""Processes on this machine that have to do with a collaboration's participants.

Nothing here asks a process anything: the system's table says how each was started.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Sequence

import psutil

from acp_core.case import Claim
from acp_core.files.text import clean_line
from acp_core.programs.place import key_of
from acp_core.programs.secrets import mask_command
from acp_core.programs.state import RunnerState

PACE = 5.0  # seconds between two looks at all processes
_FRESH = 10.0  # seconds before a program's last word in which a busy child may have begun
_ACTS = re.compile(r"(?:^|[/.])(?:wait|wait_for_turn(?:\.py)?)$")


class Strangers:
    """The processes that act for participants although no loop of ours started them.

    They are known by the words they were started with: ``--folder`` and ``--participant``. From
    any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._found: dict[str, list[tuple[Claim, int, frozenset[int]]]] = {}

    def of(self, key: str, loops: Sequence[RunnerState]) -> tuple[Claim, ...]:
        """Those in one collaboration that belong to none of its ``loops``; looks now and then."""
        with self._lock:
            if time.monotonic() - self._looked >= PACE:
                self._found = _look()
                self._looked = time.monotonic()
            here = self._found.get(key_of(key), ())
        own = _own(loops)
        strange = [(claim, session) for claim, session, line in here if own.isdisjoint(line)]
        return _one_each(strange)

    def forget(self) -> None:
        """Look again the next time."""
        with self._lock:
            self._looked = float("-inf")


def _own(loops: Sequence[RunnerState]) -> frozenset[int]:
    """Ids of processes whose descendants are ours."""
    pids = {loop.pid for loop in loops if loop.alive}
    pids |= {loop.run.process.pid for loop in loops if loop.run and loop.program_alive}
    pids |= {each.pid for loop in loops for each in loop.shown.left_over}
    return frozenset(pids)


def _one_each(strange: Sequence[tuple[Claim, int]]) -> tuple[Claim, ...]:
    """One claim per participant and session: an agent, and the command that it runs just now."""
    first: dict[tuple[str, int], Claim] = {}
    for claim, session in sorted(strange, key=lambda each: each[0].created):
        first.setdefault((claim.participant, session), claim)
    return tuple(first.values())


def _look() -> dict[str, list[tuple[Claim, int, frozenset[int]]]]:
    """Every claim by collaboration, with its session and its own and its ancestors' ids."""
    parents: dict[int, int] = {}
    found: list[tuple[str, Claim, int]] = []
    for process in psutil.process_iter():
        try:
            with process.oneshot():
                parents[process.pid] = process.ppid()
                if process.pid == os.getpid():
                    continue
                claimed = _claim(process)
            if claimed:
                found.append((*claimed, os.getsid(process.pid)))
        except (OSError, psutil.Error):
            continue
    by_key: dict[str, list[tuple[Claim, int, frozenset[int]]]] = {}
    for key, claim, session in found:
        by_key.setdefault(key, []).append((claim, session, _line(claim.pid, parents) | {session}))
    return by_key


def _claim(process: psutil.Process) -> tuple[str, Claim] | None:
    words = process.cmdline()
    folder, participant = _option(words, "--folder"), _option(words, "--participant")
    if not folder or not participant or process.status() == psutil.STATUS_ZOMBIE:
        return None
    if not os.path.isabs(folder) and "://" not in folder:
        folder = os.path.join(process.cwd(), folder)
    claim = Claim(
        participant=participant,
        pid=process.pid,
        created=process.create_time(),
        command=clean_line(" ".join(mask_command(words)), 300),
        waits=any(_ACTS.search(word) for word in words),
    )
    return key_of(folder), claim


def _option(words: Sequence[str], name: str) -> str:
    for position, word in enumerate(words):
        if word == name and position + 1 < len(words):
            return words[position + 1]
        if word.startswith(f"{name}="):
            return word[len(name) + 1 :]
    return ""


def _line(pid: int, parents: dict[int, int]) -> frozenset[int]:
    """A process and its ancestors."""
    line: set[int] = set()
    while pid and pid not in line:
        line.add(pid)
        pid = parents.get(pid, 0)
    return frozenset(line)


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
