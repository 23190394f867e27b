"""The programs that are measured and those beside them, and what a process uses."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psutil

from tests.bench.figures import Run
from tests.support.terminal import Terminal

_SCRIPT = os.path.join(os.path.dirname(sys.executable), "acp")
ACP = (_SCRIPT,) if os.access(_SCRIPT, os.X_OK) else (sys.executable, "-m", "acp_tui")
BARE = (sys.executable, "-c", "pass")
EMPTY = (sys.executable, "-m", "tests.bench.baselines.empty")
ECHO = (sys.executable, "-m", "tests.bench.baselines.echo")
COLUMNS, ROWS = 120, 40
# Python behaves as it does for people: it keeps what it compiled, and buffers what it prints.
_NOT_OURS = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "PYTHONOPTIMIZE",
    "PYTHONPROFILEIMPORTTIME",
)


_measured: tuple[str, ...] = ACP


def acp() -> tuple[str, ...]:
    """The words that run the program that is measured now."""
    return _measured


@contextlib.contextmanager
def measured(program: Sequence[str]) -> Iterator[None]:
    """Measure another program than this one."""
    global _measured
    before, _measured = _measured, tuple(program)
    try:
        yield
    finally:
        _measured = before


class Failed(Exception):
    """A program did not do what is measured; the message says which, and what it said."""


@contextlib.contextmanager
def as_people_run_it(state: str) -> Iterator[None]:
    """Everything that is run inside has its own state and settings below ``state``."""
    before = dict(os.environ)
    for name in _NOT_OURS:
        os.environ.pop(name, None)
    for name in ("ACP_STATE", "ACP_CONFIG", "ACP_CACHE"):
        os.environ[name] = os.path.join(state, name.lower())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(command: Sequence[str], expect: Sequence[int] = (0,)) -> Run:
    """Run a command to its end.

    Raises:
        Failed: it ended with another exit code.
    """
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        taken = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in expect:
        text = said.decode(errors="replace").strip()
        raise Failed(f"{' '.join(command)} exited {process.returncode}: {text}")
    return Run(taken, used.ru_utime + used.ru_stime)


def terminal(command: Sequence[str]) -> Terminal:
    """The command in a pseudo-terminal of `COLUMNS` x `ROWS`."""
    return Terminal(list(command), columns=COLUMNS, rows=ROWS)


def paint(command: Sequence[str], text: str) -> Run:
    """From the start to ``text`` on the screen."""
    with terminal(command) as shown:
        arrived = shown.wait_for(text, timeout=120)
        return Run(arrived - shown.begun, used(shown.pid).processor)


class Used(NamedTuple):
    """What a process and its children use: seconds of processor time, bytes of memory."""

    processor: float
    memory: int


def used(pid: int) -> Used:
    """What they use until now; processes that are gone count as nothing."""
    processor, memory = 0.0, 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = each.cpu_times()
                processor += times.user + times.system
                memory += each.memory_full_info().uss
    return Used(processor, memory)
