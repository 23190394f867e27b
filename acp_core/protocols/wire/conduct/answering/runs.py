"""One run of a program in a folder of its own: started, or found again, and watched to its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import spawn
from acp_core.agents.spawn import Child, Command, Exit
from acp_core.files import atomic
from acp_core.protocols.wire.conduct.answering import shim

_SHIM = str(Path(shim.__file__).resolve())
_QUICK, _SLOW = 0.02, 0.1  # seconds between two looks, at first and later
_RUNS_FOR = 2.0
OUT, ERR = "out", "err"


class Ended(NamedTuple):
    """How a run ended. ``stopped``: why it was ended from here; "" where it was not."""

    exit: Exit
    stopped: str


def make(folder: Path) -> None:
    """Make the folder of a run; its owner alone can look into it.

    Raises:
        OSError: it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def drop(folder: Path) -> None:
    """Remove the folder of a run that is over."""
    shutil.rmtree(folder, ignore_errors=True)


def put(folder: Path, name: str, data: bytes) -> Path:
    """Write a file into the folder of a run."""
    path = folder / name
    atomic.replace(path, data, sync=False)
    return path


def exit_of(folder: Path) -> Exit | None:
    """How the run in a folder ended; None where it has not, or was never begun."""
    try:
        code = int((folder / shim.EXIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return Exit(signal=-code) if code < 0 else Exit(code=code)


def holder(folder: Path) -> int | None:
    """The process that runs in a folder now, or None."""
    import fcntl

    try:
        with open(folder / shim.LOCK, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(file.read(20) or b"0")
    except (OSError, ValueError):
        pass
    return None


async def carry_out(
    folder: Path, command: Command, seconds: float, grace: float, why: Callable[[], str]
) -> Ended:
    """Run a program in ``folder`` to its end; one that runs there already is watched instead.

    Args:
        seconds: after which it is ended.
        grace: seconds between asking it to end and ending it.
        why: says why it should be ended now, or "".

    Raises:
        SpawnError: it cannot be started.
    """
    watched: _Watched = _Adopted(folder)
    if exit_of(folder) is None and holder(folder) is None:
        for name in (OUT, ERR):
            (folder / name).unlink(missing_ok=True)
        argv = (sys.executable, "-I", "-S", _SHIM, str(folder), *command.argv)
        shimmed = Command(argv, command.cwd, command.env, command.stdin)
        watched = _Started(spawn.start(shimmed, folder / OUT, folder / ERR))
    began, stopped, kill_at = time.monotonic(), "", 0.0
    while not watched.over():
        ran = time.monotonic() - began
        stopped = stopped or why() or (f"not through after {seconds:g} s" if ran > seconds else "")
        if stopped and not kill_at:
            watched.signal(signal.SIGTERM)
            kill_at = time.monotonic() + grace
        elif stopped and time.monotonic() > kill_at:
            watched.signal(signal.SIGKILL)
        await asyncio.sleep(_QUICK if ran < _RUNS_FOR or stopped else _SLOW)
    return Ended(exit_of(folder) or watched.unseen(), stopped)


class _Watched:
    def over(self) -> bool:
        raise NotImplementedError

    def signal(self, number: int) -> None:
        raise NotImplementedError

    def unseen(self) -> Exit:
        """How it ended, where it could not write that down."""
        return Exit()


class _Started(_Watched):
    def __init__(self, child: Child) -> None:
        self._child = child

    def over(self) -> bool:
        return self._child.poll() is not None

    def signal(self, number: int) -> None:
        self._child.signal(number)

    def unseen(self) -> Exit:
        return self._child.poll() or Exit()


class _Adopted(_Watched):
    """A program that an agent before us started: its lock tells whether it still runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def over(self) -> bool:
        return exit_of(self._folder) is not None or holder(self._folder) is None

    def signal(self, number: int) -> None:
        pid = holder(self._folder)
        if pid:
            with contextlib.suppress(OSError):
                os.killpg(pid, number)
