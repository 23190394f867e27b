"""Ending processes: they are asked first, and made to where they do not.

A loop that is parked is a shell that reads a line: nothing need be started to end it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterable
from typing import NamedTuple

import psutil

from acp_core.agents.identity import Identity

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


NAME = "acp-parked"
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
        return process.alive() and NAME in psutil.Process(process.pid).cmdline()
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
