"""Ending processes on a person's word: first asked, then made to, never the wrong one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

import psutil

from acp_core.agents.identity import Identity
from acp_core.model import Outcome, OutcomeState
from acp_core.protocols.kit.diagnosis import Stranger

PATIENCE = 5.0  # seconds between asking and making
_STEP = 0.05
_SAME = 1.0  # seconds that two readings of one birth may differ by


def within(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes so within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def end_group(leader: Identity) -> bool:
    """End a program and its process group; False where it did not end."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if leader.alive():
            with contextlib.suppress(OSError):
                os.killpg(leader.pid, number)
        if within(lambda: not leader.alive(), PATIENCE):
            return True
    return False


def end_stranger(stranger: Stranger) -> Outcome:
    """End a process that acp did not start, if it still is the one that was looked at."""
    try:
        process = psutil.Process(stranger.pid)
        if abs(process.create_time() - stranger.created) > _SAME:
            return Outcome(OutcomeState.DONE, f"Process {stranger.pid} has already ended.")
        if process.uids().real != os.getuid():
            text = f"process {stranger.pid} belongs to another user of this machine"
            return Outcome(OutcomeState.REFUSED, text)
        process.terminate()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(PATIENCE)
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            process.kill()
            process.wait(PATIENCE)
    except psutil.NoSuchProcess:
        pass
    except (psutil.Error, OSError) as error:
        return Outcome(OutcomeState.UNKNOWN, f"Not fixed: process {stranger.pid}: {error}")
    return Outcome(OutcomeState.DONE, f"Ended process {stranger.pid}.")
