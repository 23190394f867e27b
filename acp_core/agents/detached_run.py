"""A program in a folder of its own, whose end is written down there whoever is gone by then.

It runs under `acp_core.agents.shim`, which holds the folder's lock as long as the program runs.
So whoever comes later is told by the folder whether the program runs, and how it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import shim, spawn
from acp_core.agents.spawn import Attempt, Child, Command, Exit

_SHIM = str(Path(shim.__file__).resolve())

_QUICK, _SLOW = 0.02, 0.1  # seconds between two looks, at first and later

_RUNS_FOR = 2.0

OUT, ERR = "out", "err"


class Ended(NamedTuple):
    """How a program ended. ``stopped``: why it was ended from here; "" where it was not."""

    exit: Exit
    stopped: str


class Shielded:
    """The program that runs in a folder, or ran there.

    Args:
        folder: the folder; it keeps what the program prints (`OUT`, `ERR`).
        child: the program's process, where it was started from here.
    """

    def __init__(self, folder: Path, child: Child | None = None) -> None:
        self._folder = folder
        self._child = child

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""
        if self._child is not None:
            ended = self._child.poll()
            return ended and (exit_of(self._folder) or ended)
        written = exit_of(self._folder)
        if written is None and _holder(self._folder) is None:
            return exit_of(self._folder) or Exit()
        return written

    def signal(self, number: int) -> None:
        """Send a signal to it and to everything in its process group."""
        if self._child is not None:
            self._child.signal(number)
        elif pid := _holder(self._folder):
            with contextlib.suppress(OSError):
                os.killpg(pid, number)


def start(folder: Path, command: Command) -> Shielded:
    """Start a program in a folder; one that runs or ran there already is taken over instead.

    Raises:
        SpawnError: it cannot be started.
        OSError: what an earlier one printed cannot be removed.
    """
    if exit_of(folder) is not None or _holder(folder) is not None:
        return Shielded(folder)
    for name in (OUT, ERR):
        (folder / name).unlink(missing_ok=True)
    argv = (sys.executable, "-I", "-S", _SHIM, str(folder), *command.argv)
    shimmed = replace(command, argv=argv)
    return Shielded(folder, spawn.start(shimmed, folder / OUT, folder / ERR))


async def run(
    folder: Path, command: Command, seconds: float, grace: float, why: Callable[[], str]
) -> Ended:
    """Run a program in ``folder`` to its end; one that runs there already is watched instead.

    Args:
        folder: where it runs, and what it prints is kept.
        command: the program.
        seconds: after which it is ended.
        grace: seconds between asking it to end and making it.
        why: says why it should be ended now, or "".

    Raises:
        SpawnError: it cannot be started.
        OSError: what an earlier one printed cannot be removed.
    """
    attempt = Attempt(start(folder, command), grace)
    began = time.monotonic()
    while (ended := attempt.poll()) is None:
        ran = time.monotonic() - began
        attempt.stop(why() or (f"not through after {seconds:g} s" if ran > seconds else ""))
        await asyncio.sleep(_QUICK if ran < _RUNS_FOR or attempt.stopped else _SLOW)
    return Ended(ended, attempt.stopped)


def exit_of(folder: Path) -> Exit | None:
    """How the program in a folder ended; None where it has not, or was never begun."""
    try:
        code = int((folder / shim.EXIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return Exit(signal=-code) if code < 0 else Exit(code=code)


def _holder(folder: Path) -> int | None:
    """The process that runs in a folder now, or None."""
    try:
        with open(folder / shim.LOCK, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(file.read(20) or b"0")
    except (OSError, ValueError):
        pass
    return None
