"""Ending a loop that is parked: a shell that reads a line, which nothing need be started for."""

from __future__ import annotations

import signal
import time

import psutil

from acp_core.agents.ending import have_ended, send
from acp_core.agents.identity import Identity

NAME = "acp-parked"
"""What a parked loop is called in the system's table of processes."""
_PATIENCE = 2.0  # seconds for a signal to be heeded
_STEP = 0.005


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
        time.sleep(_STEP)
    return False
