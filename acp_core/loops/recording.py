"""A loop records what it sees: so that a collaboration has a history though nobody watched it.

Loops that a person stops are recorded here as well: a parked one ends without running again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from acp_core.agents import registry
from acp_core.agents.processes import Stopped
from acp_core.agents.registry import find, runners
from acp_core.agents.state import RunnerState
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.loops.launch import LaunchError, open_folder
from acp_core.model.clock import utc_now
from acp_core.person import settings
from acp_core.protocols.contract import Collaboration

_log = logging.getLogger(__name__)


def recorded() -> Bounds:
    """What is recorded; nothing where the settings cannot be read."""
    try:
        return Bounds.of(settings.load().recording)
    except settings.SettingsError:
        return Bounds(on=False)


def keep_loops(folder: str) -> None:
    """Keep how the loops of a collaboration stand now. Nothing where that is not possible."""
    bounds = recorded()
    if not bounds.on:
        return
    try:
        collaboration = open_folder(folder)
    except LaunchError:  # it is away
        return
    recorder, now = Recorder("loop", bounds), utc_now()
    try:
        snapshot = collaboration.refresh(now)
        recorder.saw(snapshot, collaboration.tracked_files, tuple(runners(folder)), now)
        recorder.flush()
    except Exception:  # a fault of ours must not undo what was done
        _log.info("the loops of %s were not recorded", folder, exc_info=True)
    finally:
        recorder.close()
        collaboration.close()


class Keeping:
    """Keeps the versions that stand there whenever the loop looks; see `acp_core.history`.

    Nothing that fails here ends or delays a turn; it is said once.

    Args:
        collaboration: Where the loop takes turns.
        key: Its place: a real path or a URL.
        participant: Whose loop it is.
        bounds: Whether anything is recorded, and how much.
        say: Writes a line to the loop's log.
    """

    def __init__(
        self,
        collaboration: Collaboration,
        key: str,
        participant: str,
        bounds: Bounds,
        say: Callable[[str], None],
    ) -> None:
        self._collaboration = collaboration
        self._key, self._participant = key, participant
        self._on = bounds.on
        self._recorder = Recorder("loop", bounds)
        self._say = say
        self._problem = ""

    def record(self, now: datetime) -> None:
        """Keep what is new."""
        if not self._on:
            return
        try:
            snapshot = self._collaboration.refresh(now)
            loop = find(self._key, self._participant)
            loops = (loop,) if loop is not None else ()
            self._recorder.saw(snapshot, self._collaboration.tracked_files, loops, now)
            problem = self._recorder.problem
        except Exception as error:  # a fault of ours must not end a collaboration
            problem = f"{type(error).__name__}: {error}"
        if problem and problem != self._problem:
            self._say(f"not recorded: {problem}")
        self._problem = problem

    def close(self) -> None:
        """Keep what was seen last."""
        self._recorder.flush()
        self._recorder.close()


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
