"""Stopping loops for a person, and keeping in the recordings that they ended."""

from __future__ import annotations

from collections.abc import Iterable

from acp_core.agents import registry
from acp_core.agents.ending import Stopped
from acp_core.agents.state import RunnerState
from acp_core.loops.launch import LaunchError, open_folder
from acp_core.loops.recording import keep_loops


def stop_loops(loops: Iterable[RunnerState]) -> list[Stopped]:
    """Stop several loops at once, with their programs; what came of each, in the same order.

    A loop that is parked ends without being started again, so that what it would record is
    recorded for it.
    """
    wanted = list(loops)
    stopped = registry.stop_all(wanted)
    for folder in dict.fromkeys(loop.folder for loop in wanted if not loop.account):
        keep_loops(folder)
    return [_left(*each) for each in zip(wanted, stopped, strict=True)]


def _left(loop: RunnerState, stopped: Stopped) -> Stopped:
    """Let others act for the participant of a loop that was stopped, and say where they cannot yet."""
    if not stopped.done or loop.account:
        return stopped
    try:
        collaboration = open_folder(loop.folder)
    except LaunchError:  # it is not there any more
        return stopped
    try:
        trouble = collaboration.leave(loop.participant)
    finally:
        collaboration.close()
    return Stopped(True, f"{stopped.sentence}; {trouble}") if trouble else stopped
