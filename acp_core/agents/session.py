"""A session: a participant's program at work, for one attempt or for many.

A session knows no protocol. It holds the participant's lock, so that it is the only one; it keeps
the state file and the log that others read; it starts the program, reads what the program prints,
and ends it when asked. A session that dies loses nothing: the program goes on, prints into its
files, and the next session takes it over. A program can only be noted once it has a process id: it
bears in its environment which attempt it is, so that the next session finds it also where whoever
started it was killed in between. A wait of a session ends at once when a child ends or somebody asks
it to stop. What all who run programs share stands in this room:

* `acp_core.agents.program`: which program acts (`Program`), one of it from its start to its end,
  stopped politely (`Attempt`), and one whose end is written down beside it (`Shielded`).
* `Session`: starts attempts and takes them over, with state, log, limits and figures. A loop takes
  a participant's turns with one; a cycle's and a run's agents each work in one.
* `Assignment` (`acp_core.agents.assignment`): something that is to be done once, whoever dies:
  its attempt is found again by its name, by its environment, or by what it printed.
* `output`: what a program prints and said; `failures`: why it failed; `limits`: when it waits.
* `Conductor` (`acp_core.agents.registry`): what conducts sessions for long, in the background.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from acp_core.agents import budgets, codec, processes, streams
from acp_core.agents.failures import moment
from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.turn import LiveCommand, LiveTurn
from acp_core.agents.logs import Log, rotate
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.output import Output, tool_uses
from acp_core.agents.processes import ATTEMPT, bearer, myself, session_members
from acp_core.agents.program import (
    Attempt,
    Child,
    Command,
    Exit,
    Process,
    Program,
    adopt_program,
    start_program,
)
from acp_core.agents.registry import load
from acp_core.agents.session_lock import Hold, Locks, hold, inherit
from acp_core.agents.state import Phase, Run, Saved
from acp_core.files import atomic
from acp_core.files.claims import of_participant
from acp_core.model.clock import utc_now
from acp_core.person.paths import key_of

_STOP = ("SIGTERM", "SIGINT", "SIGHUP")

_NOTICE = ("SIGCHLD",)


class Signals:
    """Takes this process's signals for the length of a ``with`` block, in its main thread.

    Elsewhere it only waits.

    Attributes:
        stop: the name of the signal that asked to stop; "" as long as none did.
    """

    def __init__(self) -> None:
        self.stop = ""
        self._before: dict[int, Any] = {}
        self._wakeup = -1
        self._ends: tuple[int, int] | None = None

    def __enter__(self) -> Signals:
        if threading.current_thread() is not threading.main_thread():
            return self
        read, write = os.pipe()
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._ends = (read, write)
        self._wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for name in (*_STOP, *_NOTICE):
            number = getattr(signal, name)
            # a handler, not SIG_IGN: programs that we start would inherit that one
            self._before[number] = signal.signal(number, self._received)
        return self

    def _received(self, number: int, frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if name in _STOP:
            self.stop = name

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until a signal comes."""
        if self._ends is None:
            threading.Event().wait(seconds)
            return
        ready, _, _ = select.select([self._ends[0]], [], [], max(0.0, seconds))
        if ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._ends[0], 4096):
                    pass

    def wake(self) -> None:
        """End the wait of the main thread, from any thread, while the ``with`` block lasts."""
        if self._ends is not None:
            with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
                os.write(self._ends[1], b"\0")

    def let_go(self) -> None:
        """Let signals do again what they did before: a process that is about to be another

        program must not take one that this one would have heeded.
        """
        self.__exit__(None, None, None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ends is None:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        for end in self._ends:
            os.close(end)
        self._ends = None


Prices = tuple[float | None, float | None]

"""US dollars per million tokens read and written, where known."""

_LIMIT = 1 << 20  # bytes of a file of records; then a new one is begun

_LEFT_OUT = ("process", "lines", "complaints", "error_lines", "tool", "retrying", "retrying_until")


def measured(run: Run, output: Output, prices: Prices, now: datetime) -> Run:
    """An attempt with everything that its output tells so far."""
    progress = output.progress
    cost, estimated = progress.cost, False
    if cost is None and None not in prices and progress.tokens_in + progress.tokens_out:
        price_in, price_out = (price or 0.0 for price in prices)
        cost = (progress.tokens_in * price_in + progress.tokens_out * price_out) / 1e6
        estimated = True
    finished = run.finished or (now if progress.finished else None)
    return replace(
        run,
        first_output=moment(output.first),
        last_output=moment(output.last),
        tool=progress.tool,
        refused=tuple(progress.refused),
        refusals=tuple(progress.refusals),
        retries=progress.retries,
        retrying=progress.retrying,
        retrying_until=moment(progress.retrying_until),
        retry_reason=progress.retry_reason,
        silent=progress.silent,
        tokens_in=progress.tokens_in,
        tokens_out=progress.tokens_out,
        tokens_estimated=progress.tokens_estimated,
        cost=cost,
        cost_estimated=estimated,
        session=progress.session,
        opened=progress.opened,
        model=progress.model,
        version=progress.version,
        finished=finished if progress.finished else None,
        is_error=progress.is_error,
        error=progress.error,
        error_name=progress.error_name,
        error_status=progress.error_status,
        resets_at=moment(progress.resets_at),
        told_at=moment(progress.told_at),
        complaints=tuple(progress.complaints),
        error_lines=progress.error_lines,
        cut_off=progress.cut_off,
        lines=tuple(output.lines),
    )


def ended(run: Run, how: Exit, now: datetime) -> Run:
    """An attempt whose program has ended."""
    return replace(
        run,
        ended=now,
        exit_code=how.code,
        signal=how.signal,
        exit=str(how),
        tool="",
        unanswered=run.retrying or (run.silent and bool(run.stopped)),
        retrying=False,
        retrying_until=None,
    )


def append(path: Path, run: Run, facts: dict[str, object]) -> None:
    """Add a line of JSON for an attempt that ended; a full disk loses it.

    Args:
        path: the file of records.
        run: the attempt.
        facts: what else is known of it, ready for JSON.
    """
    told = {each.name: getattr(run, each.name) for each in fields(run)}
    told = {name: value for name, value in told.items() if name not in _LEFT_OUT}
    told = {n: v.isoformat() if isinstance(v, datetime) else v for n, v in told.items()}
    told["calls"] = [asdict(each) for each in run.calls]
    line = json.dumps(told | facts, ensure_ascii=True, default=str).encode() + b"\n"
    with contextlib.suppress(OSError):
        if path.is_file() and path.stat().st_size > _LIMIT:
            rotate(path)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "ab") as file:
            file.write(line)


TICK = 0.25  # seconds between two looks at a running program

_WRITE = 1.0  # seconds between two writes of the state while the program works

KEPT_RUNS = 30

_STRAYS = 2.0  # seconds that what a program left behind gets to end

_CARRIED = ("turn", "own", "attempt", "run", "counted", "counted_tokens", "counted_cost")

_PAUSE = ("failure", "limited", "limit", "retry_at", "waits", "troubled")  # of the same command

_WAITED_FOR = ("phase", "since", "note", "capped")  # of one that was interrupted

_FIGURES = ("turns", "restarts", "tokens_in", "tokens_out", "cost", "estimated", "unpriced")

_EARLIER = 50  # runs whose figures are kept

Check = Callable[[Run], str]

"""Called at every look at a running program; says why it should be stopped, or ""."""


class Session:
    """Runs a participant's program; a context manager that holds the participant's lock.

    Args:
        where: The participant's place.
        saved: What its state is at the start; figures of earlier sessions are carried over.
        stream: The form of what the program prints.
        prices: What tokens cost.
        echo: Is given every line of the log as well.
        clock: Says what time it is.
        grace: Seconds between asking a program to end and ending it.
        tick: Seconds between two looks at a running program, at most.
        claim: The name of its claim; by default that of the participant.
        about: The id of what it conducts; by default the participant.
        locks: What this process held already before it became this program: it goes on.
        goes_on: It takes the place of one that was interrupted, and waits for what that waited for.

    Raises:
        LoopRunning: (on entering) the participant has a session already.
        OSError: (on entering) the state cannot be written.
    """

    def __init__(
        self,
        where: LoopDirectory,
        saved: Saved,
        *,
        stream: str,
        prices: Prices = (None, None),
        echo: Callable[[str], None] | None = None,
        clock: Callable[[], datetime] = utc_now,
        grace: float = processes.GRACE,
        tick: float = TICK,
        claim: str = "",
        about: str = "",
        locks: Locks | None = None,
        goes_on: bool = False,
    ) -> None:
        self.where = where
        self.state = saved
        self.signals = Signals()
        self._stream = stream
        self._prices = prices
        self._echo = echo
        self.clock = clock
        self._grace = grace
        self._tick = tick
        self._log = Log(where.log)
        self._claim = claim or of_participant(saved.participant)
        self._about = about or saved.participant
        self._locks = locks
        self._goes_on = goes_on
        self._hold: Hold | None = None
        self._stack = contextlib.ExitStack()
        self._written = 0.0
        self._full = False  # the state could not be written: say so once
        self._unfinished: Run | None = None

    @classmethod
    def of(
        cls,
        program: Program,
        participant: str,
        *,
        mode: str = "turns",
        attempts: int = 0,
        deadline: datetime | None = None,
        command: tuple[str, ...] = (),
        echo: Callable[[str], None] | None = None,
        tick: float = TICK,
        run_id: str = "",
        locks: Locks | None = None,
        clock: Callable[[], datetime] = utc_now,
        goes_on: bool = False,
    ) -> Session:
        """The session of a participant with a program, not yet entered.

        Args:
            program: acts for the participant.
            participant: as the collaboration names it.
            mode: how it takes part.
            attempts: how often a turn is tried at most.
            deadline: when all must be through.
            command: the program's words as they are shown, by default without a prompt.
            echo: is given every line of the log as well.
            tick: seconds between two looks at a running program, at most.
            run_id: the collaboration's run, where its protocol names one.
            locks: what this process held already before it became this program.
            clock: says what time it is.
            goes_on: it takes the place of one that was interrupted.
        """
        preset = program.preset
        saved = Saved(
            folder=key_of(program.folder),
            participant=participant,
            process=myself(),
            started=clock(),
            program=preset.name,
            version=program.version,
            model=program.model,
            command=command or program.words,
            workdir=program.workdir,
            mode=mode,
            attempts=attempts,
            deadline=deadline,
            run_id=run_id,
            live=program.live_state,
        )
        return cls(
            place(program.folder, participant),
            saved,
            stream=preset.stream,
            prices=(preset.price_in, preset.price_out),
            echo=echo,
            tick=tick,
            locks=locks,
            clock=clock,
            goes_on=goes_on,
        )

    def __enter__(self) -> Session:
        with contextlib.ExitStack() as stack:
            self._hold = stack.enter_context(self._held())
            atomic.sweep(self.where.state)
            self._carry_over(load(self.where))
            stack.enter_context(self.signals)
            codec.write(self.where.state, self.state)
            self._stack = stack.pop_all()
        return self

    def _held(self) -> contextlib.AbstractContextManager[Hold]:
        where, folder = self.where, self.state.folder
        if self._locks is not None:
            return inherit(where, folder, self._claim, self._locks)
        left = attempt_left(where, load(where))
        adopts = left.process.pid if left else None
        return hold(where, folder, self._claim, self.state.program, self._about, adopts)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        self._hold = None

    def _carry_over(self, before: Saved | None) -> None:
        if self._locks is not None:
            self.state = before or self.state
            return
        if before is not None:
            self._go_on_from(before)
        if (left := attempt_left(self.where, before)) is not None:
            self.state = replace(self.state, run=left)
            self._unfinished = left

    def _go_on_from(self, before: Saved) -> None:
        same = before.run_id == self.state.run_id
        names = (*_CARRIED, *_FIGURES) if same else _CARRIED
        names = (*names, *_PAUSE) if before.command == self.state.command else names
        names = (*names, *_WAITED_FOR) if self._goes_on else names
        changes: dict[str, Any] = {name: getattr(before, name) for name in names}
        earlier = before.earlier if same else (*before.earlier, before.figures)
        changes["earlier"] = earlier[-_EARLIER:]
        changes["left_over"] = tuple(each for each in before.left_over if each.alive())
        self.state = replace(self.state, **changes)

    @property
    def stopping(self) -> str:
        """Why the session should end: the name of a signal, a sentence, or ""."""
        if self._hold is None:
            return self.signals.stop
        return self._hold.lost() or self.signals.stop or self._hold.asked_to_stop()

    @property
    def stopped(self) -> str:
        """Why the session ends, for people."""
        why = self.stopping
        return f"stopped by {why}" if why == self.signals.stop else why

    @property
    def locks(self) -> Locks | None:
        """What it holds, for the program that this process becomes; None without a claim."""
        return self._hold.locks if self._hold else None

    @property
    def claim(self) -> str:
        """The name of its claim."""
        return self._claim

    def check(self) -> None:
        """Look whether the session still is its participant's only one, before it acts.

        Raises:
            Lost: it may not be.
        """
        if self._hold is not None:
            self._hold.check()

    def say(self, text: str, who: str = "loop") -> None:
        """Write a line into the log."""
        if not self._is_lost():
            self._log.write(who, text, self.clock())
        if self._echo is None:
            return
        try:
            self._echo(text if who == "loop" else f"  {text}")
        except (OSError, ValueError):  # whoever read it is gone, which is no reason to end
            self._echo = None

    def update(self, **changes: Any) -> None:
        """Change the state and write it."""
        phase = changes.get("phase", self.state.phase)
        if phase is not self.state.phase:
            changes.setdefault("since", self.clock())
        self.state = replace(self.state, **changes)
        self._write()

    def _write(self) -> None:
        """Replace the state file. A full disk stops no session: its state is then an old one."""
        if self._is_lost():
            return  # what stands there may be another session's
        self._written = time.monotonic()
        try:
            codec.write(self.where.state, self.state)
            self._full = False
        except OSError as error:
            if not self._full:
                self.say(f"the state cannot be written: {error.strerror or error}")
            self._full = True

    def _is_lost(self) -> bool:
        return self._hold is not None and self._hold.lost() != ""

    def _note_child(self, pid: int | None) -> None:
        if self._hold is not None:
            self._hold.note_child(pid)

    def unfinished(self) -> Run | None:
        """A run that an earlier session began and did not see the end of, once: see `take_over`."""
        run, self._unfinished = self._unfinished, None
        return run

    def take_over(self, run: Run, check: Check) -> Run:
        """Watch a program that an earlier session started, or read what it printed, to its end."""
        if run.live:
            return self.watch(live_turns.adopt(self.where, run.process, Path(run.out)), run, check)
        return self.watch(adopt_program(run.process), run, check)

    def next_number(self) -> int:
        """The number of the run that would be started now."""
        return self.state.run.number + 1 if self.state.run else 1

    def file(self, number: int, kind: str) -> Path:
        """A file of a run: its ``prompt``, ``out`` or ``err``."""
        return self.where.file(number, kind)

    def run(self, command: Command | LiveCommand, check: Check) -> Run:
        """Run a program to its end, or until ``check`` or a signal says to stop it.

        Args:
            command: the program, or a turn of the one that stays.
            check: see `Check`.

        Returns:
            How it ended.

        Raises:
            SpawnError: it cannot be started.
            Lost: this is not the participant's only session any more.
        """
        self.check()
        number = self.next_number()
        self._prune(number)
        out, err = self.file(number, "out"), self.file(number, "err")
        for path in (out, err):
            path.unlink(missing_ok=True)
        is_live = isinstance(command, LiveCommand)
        if isinstance(command, LiveCommand):
            child: Child | LiveTurn = live_turns.start(self.where, command, number, out)
        else:
            child = start_program(mark_attempt(command, self.where, number), out, err)
        run = Run(number, child.identity, self.clock(), out=str(out), err=str(err), live=is_live)
        self._note_child(child.identity.pid)
        self.update(run=run, left_over=tuple(each for each in self.state.left_over if each.alive()))
        return self.watch(child, run, check)

    def watch(self, process: Process, run: Run, check: Check) -> Run:
        """See a program at work to its end, or until ``check`` or a signal says to stop it."""
        stream = streams.LIVE if run.live else self._stream
        output = Output(Path(run.out), Path(run.err), stream)
        attempt = Attempt(process, self._grace)
        while (ended := attempt.poll()) is None:
            self._say_all(output.read(time.time()))
            run = self._measured(run, output)
            why = attempt.stopped or run.stopped or self.stopping or check(run)
            if why and not attempt.stopped:
                self.say(f"stopping the program: {why}")
                run = replace(run, stopped=why)
                self.update(run=run)  # before it: whoever takes over must know why it ended
                attempt.stop(why)
            self._show(run)
            self.signals.wait(self._tick)
        self._say_all(output.end(time.time()))
        return self._end(self._measured(run, output), ended)

    def _say_all(self, lines: list[tuple[str, str]]) -> None:
        for who, line in lines:
            self.say(line, who)

    def _show(self, run: Run) -> None:
        """Write how far the program is, now and then."""
        if run != self.state.run and time.monotonic() - self._written >= _WRITE:
            self.update(run=run)

    def _measured(self, run: Run, output: Output) -> Run:
        return measured(run, output, self._prices, self.clock())

    def _end(self, run: Run, how: Exit) -> Run:
        run = ended(run, how, self.clock())
        self._note_child(None)
        state = self.state
        left = () if run.live else session_members(run.process.pid)
        if by := live_turns.cancelled_by(self.where, run.number):
            run = replace(run, stopped=f"cancelled by {by}", cancelled=by)
        if run.live:
            out = Path(run.out)
            crashed = not run.stopped and live_turns.crashed(out)
            run = replace(
                run,
                unusable=live_turns.unusable(out),
                crashed=crashed,
                calls=tool_uses(out),
            )
            live_turns.end_leftovers(self.where)
        budgets.note_run(run, state.folder, state.participant, self.clock())
        cost = state.cost if run.cost is None else (state.cost or 0.0) + run.cost
        self.update(
            run=run,
            left_over=(*state.left_over, *left),
            tokens_in=state.tokens_in + run.tokens_in,
            tokens_out=state.tokens_out + run.tokens_out,
            cost=cost,
            unpriced=state.unpriced + run.unpriced,
            estimated=state.estimated or run.cost_estimated or run.tokens_estimated,
            model=run.model or state.model,
            version=run.version or state.version,
        )
        return run

    def record(self, run: Run, **facts: object) -> None:
        """Keep for good which program took a turn, and how that ended.

        Args:
            run: the run that ended.
            facts: what else is known of the turn, ready for JSON.
        """
        state = self.state
        own = {"program": state.program, "version": state.version, "model": state.model}
        append(self.where.turns, run, own | facts)

    def finish(self, phase: Phase, note: str, **changes: Any) -> None:
        """End what the program left behind, and note that the session is over.

        Args:
            phase: how it ended.
            note: why, in a sentence.
            changes: more of the state.
        """
        self.end_strays()
        self.update(phase=phase, note=note, ended=self.clock(), **changes)

    def end_strays(self) -> None:
        """End what earlier runs left behind, and the live session."""
        live_turns.stop(self.where)
        alive = [each for each in self.state.left_over if each.alive()]
        for each in alive:
            self.say(f"stopping process {each.pid}, which the agent left running")
        processes.end(alive, _STRAYS)

    def _prune(self, number: int) -> None:
        """Remove the files of old runs."""
        with contextlib.suppress(OSError):
            for path in self.where.runs.iterdir():
                if path.stem.isdecimal() and int(path.stem) <= number - KEPT_RUNS:
                    path.unlink(missing_ok=True)


def mark_command(command: Command, attempt: str) -> Command:
    """The same program, which bears the name of its attempt."""
    return replace(command, env={**command.env, ATTEMPT: attempt})


def mark_attempt(command: Command, where: LoopDirectory, number: int) -> Command:
    """The same program, which bears the name of an attempt of a participant's session."""
    return mark_command(command, _attempt_name(where, number))


def attempt_left(where: LoopDirectory, before: Saved | None) -> Run | None:
    """The attempt that the session before this one began, and did not see the end of.

    Args:
        where: the participant's place.
        before: what that session noted; None where it noted nothing.
    """
    last = before.run if before else None
    if last is not None and last.ended is None:
        return last
    return _attempt_at_work(where, last.number + 1 if last else 1)


def _attempt_at_work(where: LoopDirectory, number: int) -> Run | None:
    """The attempt that follows the last one that was noted, if its program works."""
    out = where.file(number, "out")
    if not out.exists():
        return None  # it is made before the program is started
    found = attempt_begun(where, number, ATTEMPT, _attempt_name(where, number))
    if found is None or not found.process.alive():
        return None
    return None if found.live and live_turns.end_of(out).exists() else found


def attempt_begun(where: LoopDirectory, number: int, variable: str, mark: str) -> Run | None:
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


def _attempt_name(where: LoopDirectory, number: int) -> str:
    return f"{where.folder}#{number}"
