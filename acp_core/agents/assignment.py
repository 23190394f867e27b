"""Something that a participant's program is to do once, whoever dies meanwhile.

What is to be done is noted under its name before the program starts, and the program carries a
mark in its environment. So whoever comes after a session that was killed at any moment finds the
program at work, or what it printed, and starts none a second time. Where the program can hold a live
session, the work is one turn of it, and what the agent asks permission for is judged by `scope`.
While a budget is used up, no program is started for it: it waits, as the same attempt, until a
person raises the budget. While its model service refuses it for now, it waits likewise.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import UTC, datetime

from acp_core.agents import budgets, limits, permissions
from acp_core.agents.background import importable
from acp_core.agents.failures import Failure, failure_of
from acp_core.agents.limits import LOOK, Budget
from acp_core.agents.live import binding
from acp_core.agents.live.turn import CRASHED, CRASHES, LiveCommand, TurnScope
from acp_core.agents.permissions import NO_TOOLS, ToolServer
from acp_core.agents.processes import Identity
from acp_core.agents.program import Command, Program, SpawnError
from acp_core.agents.session import Session, attempt_begun
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic
from acp_core.model.errors import Refused
from acp_core.person.settings import SettingsError

LATE = "it exceeded its time limit"
_INSTEAD = "the agent is started for each attempt"
_GONE = Identity(2**22 + 1, 0.0)  # a process id that no system gives


class Assignment(ABC):
    """What is to be done, and how it goes about it.

    Args:
        key: names it among everything that the participant ever does.
        variable: the environment variable with which its program is marked.
        note: what it is about, for people; ``title`` the line of the log that begins it.
        attempt: counts how often its protocol had it tried.
        timeout: seconds that its program may take; None for as long as it likes.
        late: why the program is stopped then.
        turn: the turn for which a budget counts, the same for all attempts at it; by default ``key``.
        leaves: nobody waits where a budget is used up: it is given up.
    """

    def __init__(
        self,
        key: str,
        variable: str,
        *,
        note: str = "",
        title: str = "",
        attempt: int = 0,
        timeout: float | None = None,
        late: str = LATE,
        turn: str = "",
        leaves: bool = False,
    ) -> None:
        self.key, self.variable = key, variable
        self.note, self.title, self.attempt = note, title, attempt
        self.timeout, self.late = timeout, late
        self.turn, self.leaves = turn or key, leaves

    @abstractmethod
    def program(self) -> Program:
        """The program that does it.

        Raises:
            SpawnError, PresetError: there is none.
        """

    @abstractmethod
    def prompt(self) -> str:
        """What the program is told.

        Raises:
            SpawnError: it cannot be made.
        """

    def scope(self) -> TurnScope:
        """What it may do in a live session without a person being asked."""
        return TurnScope(self.note)

    def tools(self) -> tuple[str, ...]:
        """The names of the participant's own tools, which its agent is given."""
        return ()

    def mark(self, number: int) -> str:
        """The value of the variable in the attempt of this number."""
        return self.key

    def begin(self) -> None:  # noqa: B027 - most have nothing to do
        """Called just before a program is started for it."""

    def check(self, run: Run) -> str:
        """Why its program should be stopped now, or ""."""
        return ""

    def withdrawn(self) -> str:
        """Why it need not be done any more, asked while no program works; ""."""
        return ""

    def held(self, why: str) -> None:  # noqa: B027 - most have nobody to tell
        """Called when a budget is used up, and it waits for a person who raises it."""

    def refused(self, why: str) -> None:  # noqa: B027 - most have nobody to tell
        """Called when its model service refuses the program for now, and it waits."""

    def is_done(self) -> bool:
        """Whether it is known to be done, though nobody saw a program end."""
        return False

    def is_left_done(self, run: Run) -> bool:
        """Whether an attempt whose live session crashed left the work done all the same."""
        return self.is_done()

    def counts(self, run: Run) -> bool:
        """Whether an attempt that ended before us is the one; otherwise it is made anew."""
        return True


def perform(session: Session, work: Assignment) -> Run:
    """Have an assignment done, or what is left of it; its attempt, once that has ended.

    Args:
        session: the participant's session, entered.
        work: what is to be done.

    Returns:
        The attempt. One that says why it was ``stopped`` and has no output was never begun: it was
        withdrawn while it waited for a budget.

    Raises:
        SpawnError: its program cannot be started.
        PresetError: its preset is not what it should be.
        OSError: a file cannot be written.
    """
    crashes = waits = 0
    budget = _budget(session, work)
    run = _earlier(session, work, budget) or _begin(session, work, budget)
    while not session.stopping:
        if run.out and budgets.stopped_it(run.stopped) and not work.is_left_done(run):
            pass  # the same attempt goes on when the budget is raised
        elif run.unusable:
            session.say(f"no live session: {run.unusable}; {_INSTEAD} instead")
            session.update(live=f"no: {run.unusable}")
        elif run.crashed and not work.is_left_done(run):
            crashes += 1
            if crashes == CRASHES:
                session.say(f"the live session crashed again; {_INSTEAD} of this work")
                session.update(live=CRASHED)
            else:
                session.say("the live session crashed: it is resumed")
        elif (failure := _refusal(session, work, run)) is not None:
            waits += 1
            why = run.error or failure.reason or "the model service did not answer"
            work.refused(why)
            if over := limits.wait_until_accepted(session, failure, why, waits, work.withdrawn):
                return _not_begun(session, over)
        else:
            break
        run = _begin(session, work, budget)
    limits.end_wait(session)
    return run


def _refusal(session: Session, work: Assignment, run: Run) -> Failure | None:
    """Why the model service refused an attempt for now; None where it did not, or the work is done."""
    is_late = run.stopped == work.late and run.unanswered  # it kept silent until its time was over
    if (run.stopped and not is_late) or not run.out or work.is_left_done(run):
        return None
    failure = failure_of(run, work.program().preset.exits, session.clock())
    return failure if failure.kind.passes else None


def _budget(session: Session, work: Assignment) -> Budget:
    """What the participant's programs may take.

    Raises:
        SpawnError: the settings cannot be read.
    """
    state = session.state
    try:
        found = budgets.in_force(state.folder, state.participant, state.run_id, session.clock)
    except (Refused, SettingsError) as error:
        raise SpawnError(str(error)) from None
    budget = Budget(session, found)
    budget.begin_turn(work.turn)
    return budget


def _why_not(session: Session, work: Assignment, budget: Budget) -> str:
    """Wait until the budgets allow a program; why it need not be started any more, or ""."""
    while over := budget.over():
        if session.stopping:
            return session.stopped
        if why := work.withdrawn():
            budget.release(why)
            return why
        if not session.state.capped:
            work.held(over)
        budget.hold(over)
        if work.leaves:
            return over
        session.signals.wait(LOOK)
    budget.release()
    return ""


def _not_begun(session: Session, why: str) -> Run:
    now = session.clock()
    number = session.next_number()
    return Run(number, _GONE, now, ended=now, exit="was not started", stopped=why)


def _earlier(session: Session, work: Assignment, budget: Budget) -> Run | None:
    """The attempt that a session before us began, seen to its end; None where there is none."""
    number = _number(session, work)
    unfinished = session.unfinished()
    if unfinished is not None and unfinished.number != number:
        _stop_other(session, unfinished)
    run = session.state.run
    if number is not None and (run is None or run.number != number):
        run = _unrecorded(session, work, number)
    if number is None or run is None:
        return _unseen(session, number) if work.is_done() else None
    if run.ended is None:
        session.say(f"taking over process {run.process.pid}, which was started before")
        session.update(phase=Phase.RUNNING, run=run)
        return session.take_over(run, lambda now: _why_stop(session, work, budget, now))
    return run if work.counts(run) else None


def _number(session: Session, work: Assignment) -> int | None:
    """The number of the attempt that was noted for it; None where none was."""
    return session.state.own if session.state.turn == work.key else None


def _stop_other(session: Session, run: Run) -> None:
    """See an attempt to its end that was begun for something else."""
    if run.process.alive():
        session.say("an earlier attempt is still running: acp stops it first")
    session.take_over(run, lambda now: "it belongs to an earlier attempt")


def _unrecorded(session: Session, work: Assignment, number: int) -> Run | None:
    """An attempt whose session died before it noted that the program had been started."""
    run = attempt_begun(session.where, number, work.variable, work.mark(number))
    if run is not None:
        return run
    out, err = session.file(number, "out"), session.file(number, "err")
    with contextlib.suppress(OSError):
        found = out.stat()
        if found.st_size:
            started = datetime.fromtimestamp(found.st_mtime, UTC)
            return Run(number, _GONE, started, out=str(out), err=str(err))
    return None


def _unseen(session: Session, number: int | None) -> Run:
    """An attempt of which nothing is known but that it ended."""
    session.say("it ended unobserved; acp does not run it again")
    now = session.clock()
    out = "" if number is None else str(session.file(number, "out"))
    number = session.next_number() if number is None else number
    run = Run(number, _GONE, now, ended=now, exit="ended unseen", out=out)
    session.update(run=run)
    return run


def _begin(session: Session, work: Assignment, budget: Budget) -> Run:
    """Start its program once the budgets allow it, and see it to its end."""
    if why := _why_not(session, work, budget):
        return _not_begun(session, why)
    number = session.next_number()
    for kind in ("out", "err"):  # what stands there later was printed for this
        session.file(number, kind).unlink(missing_ok=True)
    program = work.program()
    server = _server(session, work, program)
    tools = server.tools if server.command else ()
    prompt, path = work.prompt() + permissions.section(tools), session.file(number, "prompt")
    atomic.replace(path, prompt.encode(errors="replace"), sync=False, private=True)
    command = _command(session, work, program, server, prompt, str(path), number)
    work.begin()
    session.update(
        turn=work.key, own=number, attempt=work.attempt, phase=Phase.RUNNING, note=work.note
    )
    session.say(work.title)
    return session.run(command, lambda run: _why_stop(session, work, budget, run))


def _server(session: Session, work: Assignment, program: Program) -> ToolServer:
    """The server of its agent's tools; none for a program that cannot be given any."""
    names = work.tools() if _is_live(session, program) or program.preset.tools else ()
    if not names:
        return NO_TOOLS
    state = session.state
    return permissions.server(state.folder, state.participant, importable(), names)


def _is_live(session: Session, program: Program) -> bool:
    """Whether the next attempt is a turn of a live session."""
    return program.live and not session.state.live.startswith("no")


def _command(
    session: Session,
    work: Assignment,
    program: Program,
    server: ToolServer,
    prompt: str,
    path: str,
    number: int,
) -> Command | LiveCommand:
    env = {work.variable: work.mark(number)}
    scope, drafts = work.scope(), str(session.where.drafts)
    program = replace(program, live=_is_live(session, program))
    bound = binding.prepared(program, drafts, scope.permissions, scope)
    if bound is None:
        own = scope.folders[0] if scope.confined else ""
        return program.command(prompt, path, drafts, env, server=server, own=own)
    return binding.command(
        program,
        session.where,
        session.state.participant,
        path,
        env,
        run_id=session.state.run_id,
        scope=replace(scope, tools=server.tools),
        server=server,
        bound=bound,
    )


def _why_stop(session: Session, work: Assignment, budget: Budget, run: Run) -> str:
    took = (session.clock() - run.started).total_seconds()
    if work.timeout is not None and took > work.timeout:
        return work.late
    return work.check(run) or budget.check(run)
