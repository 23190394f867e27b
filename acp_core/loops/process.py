"""One loop as a process: from its spec to its exit code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.agents.loop_directory import CannotClaim, LoopRunning, place
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Program, SpawnError
from acp_core.agents.session import Session
from acp_core.agents.session_lock import Locks
from acp_core.agents.state import Phase
from acp_core.files import claims
from acp_core.loops import parking
from acp_core.loops.launch import LaunchError, conductor, open_folder, shown_command
from acp_core.loops.parking import Parked
from acp_core.loops.recording import Keeping, recorded
from acp_core.loops.spec import Spec, save
from acp_core.loops.turns import GAVE_UP, LOOKS, PARKS, Loop
from acp_core.model.clock import utc_now
from acp_core.protocols.contract import Collaboration


class Resumed(NamedTuple):
    """A loop that was parked goes on.

    Attributes:
        locks: what this process holds.
        why: `parking.WAKE`, `parking.LOST`, or the signal that asked it to stop.
    """

    locks: Locks
    why: str


def run(
    spec: Spec,
    *,
    ready: Callable[[], None] | None = None,
    echo: Callable[[str], None] | None = None,
    clock: Callable[[], datetime] = utc_now,
    wait: Callable[[float], None] | None = None,
) -> int:
    """Run a loop in this process until it ends.

    Args:
        spec: what it is asked to do.
        ready: called once the loop is the participant's only one; one that somebody waits for
            in this way is parked while it has nothing to do.
        echo: is given every line of its log.
        clock: says what time it is.
        wait: waits so many seconds; by default for a signal, too. A loop with its own is not parked.

    Returns:
        The exit code, see `Loop.run`.

    Raises:
        LaunchError: it cannot run.
    """
    where = place(spec.folder, spec.participant)
    program = _program(spec)
    collaboration = open_folder(spec.folder)
    try:
        run_id = _run_id(collaboration)
        with _session(spec, program, echo=echo, run_id=run_id, clock=clock) as session:
            save(replace(spec, goes_on=False), where)
            session.say(f"a loop for {spec.participant} with {program.title} starts")
            if ready:
                ready()
            parks = LOOKS if ready and wait is None else None
            return _take_turns(session, collaboration, spec, parks, wait)
    except LoopRunning as error:
        holder = conductor(spec).holder(str(error))
        raise LaunchError(f"{spec.participant} already has a loop{holder}") from None
    except CannotClaim as error:
        raise LaunchError(str(error)) from None
    except OSError as error:
        raise LaunchError(f"{error.filename or where.folder}: {error.strerror or error}") from None
    finally:
        collaboration.close()


def resume(spec: Spec, resumed: Resumed) -> int:
    """Go on with a loop that was parked. Returns the exit code, see `Loop.run`.

    Raises:
        LaunchError: its preset is not what it should be.
        LoopRunning: it is not the participant's only loop any more.
    """
    with _session(spec, _program(spec), locks=resumed.locks) as session:
        if resumed.why not in (parking.WAKE, parking.LOST):
            session.signals.stop = resumed.why
        try:
            collaboration = open_folder(spec.folder)
        except LaunchError as error:
            session.finish(Phase.STOPPED, session.stopped if session.stopping else str(error))
            return GAVE_UP
        try:
            parks = 1 if resumed.why == parking.LOST else LOOKS
            return _take_turns(session, collaboration, spec, parks)
        finally:
            collaboration.close()


def _program(spec: Spec) -> Program:
    try:
        return spec.chosen()
    except PresetError as error:
        raise LaunchError(str(error)) from None


def _run_id(collaboration: Collaboration) -> str:
    """Which run stands there; "" where that cannot be read, which is seen at the first turn."""
    with contextlib.suppress(Exception):
        return collaboration.refresh(utc_now()).run_id
    return ""


def _session(
    spec: Spec,
    program: Program,
    *,
    echo: Callable[[str], None] | None = None,
    locks: Locks | None = None,
    run_id: str = "",
    clock: Callable[[], datetime] = utc_now,
) -> Session:
    return Session.of(
        program,
        spec.participant,
        mode=spec.mode.value,
        attempts=spec.attempts,
        deadline=spec.deadline,
        command=_command(program, spec.participant),
        echo=echo,
        locks=locks,
        run_id=run_id,
        clock=clock,
        goes_on=spec.goes_on,
    )


def _take_turns(
    session: Session,
    collaboration: Collaboration,
    spec: Spec,
    parks: int | None,
    wait: Callable[[float], None] | None = None,
) -> int:
    """Take turns, and be parked in between where ``parks`` says after how many looks in vain."""
    keeping = Keeping(collaboration, spec.folder, spec.participant, recorded(), session.say)
    loop = Loop(
        session,
        collaboration,
        spec,
        clock=session.clock,
        seen=keeping.record,
        wait=wait,
        parks=parks,
    )
    try:
        while (code := loop.run()) == PARKS:
            _park(session, spec, loop, keeping)
        if session.stopping != "SIGTERM":  # else who stops it does this, or the machine ends
            _leave(session, collaboration, spec.participant)
        return code
    finally:
        keeping.close()


def _leave(session: Session, collaboration: Collaboration, participant: str) -> None:
    """Let others act for the participant from now on."""
    if trouble := collaboration.leave(participant):
        session.say(trouble)


def _park(session: Session, spec: Spec, loop: Loop, keeping: Keeping) -> None:
    """Be parked. Returns where that is not possible, or there is something to do after all."""
    where, locks = session.where, session.locks
    if locks is None:
        loop.stay()
        return
    own = parking.own_files(where, claims.lock_of(spec.folder, session.claim))
    if session.stopping:
        return
    who, signs = spec.participant, loop.signs
    until = min(filter(None, (spec.deadline, session.state.retry_at)), default=None)
    parked = Parked(spec.folder, who, session.claim, signs, own, until)
    line = parking.ask(parked)
    if line is None and parking.end_silent():
        line = parking.ask(parked)
    if line is None:
        session.say("no supervisor available: the loop keeps checking by itself")
        loop.stay()
        return
    if session.state.phase is Phase.WAITING:
        session.update(note="not their turn")
    session.signals.let_go()
    if session.signals.stop:  # it came while it was still heeded
        line.connection.close()
        return
    keeping.close()
    parking.become_shell(line, where, locks)


def _command(program: Program, participant: str) -> tuple[str, ...]:
    """The command, to be shown; a program that has gone meanwhile is told of at the first turn."""
    try:
        return shown_command(program, participant)
    except SpawnError:
        return program.words
