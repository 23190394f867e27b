"""A program that was started, and whose start is not noted: whoever started it was killed at once.

A program can only be noted once it has a process id. It bears in its environment which attempt it
is, so that whoever comes next finds it at work in between, too, and starts none beside it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from acp_core.agents.identity import ATTEMPT, bearer
from acp_core.agents.live import turn as live_turns
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.spawn import Command
from acp_core.agents.state import Run, Saved


def marked(command: Command, attempt: str) -> Command:
    """The same program, which bears the name of its attempt."""
    return replace(command, env={**command.env, ATTEMPT: attempt})


def numbered(command: Command, where: LoopDirectory, number: int) -> Command:
    """The same program, which bears the name of an attempt of a participant's session."""
    return marked(command, _name(where, number))


def left(where: LoopDirectory, before: Saved | None) -> Run | None:
    """The attempt that the session before this one began, and did not see the end of.

    Args:
        where: the participant's place.
        before: what that session noted; None where it noted nothing.
    """
    last = before.run if before else None
    if last is not None and last.ended is None:
        return last
    return _at_work(where, last.number + 1 if last else 1)


def _at_work(where: LoopDirectory, number: int) -> Run | None:
    """The attempt that follows the last one that was noted, if its program works."""
    out = where.file(number, "out")
    if not out.exists():
        return None  # it is made before the program is started
    found = begun(where, number, ATTEMPT, _name(where, number))
    if found is None or not found.process.alive():
        return None
    return None if found.live and live_turns.end_of(out).exists() else found


def begun(where: LoopDirectory, number: int, variable: str, mark: str) -> Run | None:
    """The attempt of this number, as its session would have noted it; None where none is seen.

    Args:
        where: the participant's place.
        number: the attempt's.
        variable: a variable of its program's environment.
        mark: what that holds.
    """
    out, err = str(where.file(number, "out")), str(where.file(number, "err"))
    if runner := live_turns.begun(where, number):
        return Run(number, runner, datetime.now(UTC), out=out, err=err, live=True)
    if process := bearer(variable, mark):
        started = datetime.fromtimestamp(process.created, UTC)
        return Run(number, process, started, out=out, err=err)
    return None


def _name(where: LoopDirectory, number: int) -> str:
    return f"{where.folder}#{number}"
