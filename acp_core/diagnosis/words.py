"""Programs, their logs and what they said, as evidence has them.

Evidence never says how long ago something was: it would be another one every second. Whoever
shows it knows what time it is.
"""

from __future__ import annotations

from acp_core.agents.state import Run, RunnerState
from acp_core.model.format import dated
from acp_core.model.text import clean_line

_LAST = 4  # lines of a program's output that are quoted
_LONG = 200


def last_lines(run: Run | None) -> tuple[str, ...]:
    """The last lines that a program printed, as evidence."""
    if run is None:
        return ()
    return tuple(f"output: {clean_line(line, _LONG)}" for line in run.lines[-_LAST:])


def where(loop: RunnerState) -> str:
    """Where a loop's log is to be read."""
    return f"log: {clean_line(loop.log, 4_096)}"


def program(loop: RunnerState) -> str:
    """The program that takes a participant's turns, with its version and model."""
    shown = loop.shown
    parts = (shown.program, shown.version, shown.model)
    return " ".join(part for part in parts if part) or "its agent"


def of_run(run: Run | None) -> tuple[str, ...]:
    """When a run was, and how it ended, as evidence."""
    if run is None:
        return ()
    stopped = f", stopped: {run.stopped}" if run.stopped else ""
    time = f"from {dated(run.started)} to {dated(run.ended)}"
    return (f"process {run.process.pid} ran {time}: {run.exit}{stopped}",)
