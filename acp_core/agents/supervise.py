"""Running one participant's program, again and again, and telling how it goes.

The runner knows no protocol: a loop (see `acp_core.loops`) says what to run and when. It holds
the participant's lock, keeps the state file and the log, reads what the program prints, and ends
it when asked. A runner that dies loses nothing: the program goes on, prints into its files, and
the next runner takes it over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from acp_core.agents import codec, spawn
from acp_core.agents.identity import Identity, identify, session_members
from acp_core.agents.logs import Log, rotate
from acp_core.agents.output import Output
from acp_core.agents.place import Place
from acp_core.agents.registry import GRACE, load
from acp_core.agents.signals import Signals
from acp_core.agents.spawn import Child, Command, Exit
from acp_core.agents.state import Run, Saved
from acp_core.files import atomic
from acp_core.model.clock import utc_now

TICK = 0.25  # seconds between two looks at a running program
_WRITE = 1.0  # seconds between two writes of the state while the program works
KEPT_RUNS = 30
_TURNS_LIMIT = 1 << 20

_CARRIED = (
    "turn", "own", "turns", "attempt", "restarts", "run",
    "tokens_in", "tokens_out", "cost", "estimated",
)  # fmt: skip

Check = Callable[[Run], str]
"""Called at every look at a running program; says why it should be stopped, or ""."""


class Runner:
    """Runs a participant's program; a context manager that holds the participant's lock.

    Args:
        where: The loop's place.
        saved: What its state is at the start; figures of earlier loops are carried over.
        stream: The form of what the program prints.
        prices: US dollars per million tokens read and written, where known.
        echo: Is given every line of the log as well.
        clock: Says what time it is.
        grace: Seconds between asking a program to end and ending it.
        tick: Seconds between two looks at a running program, at most.

    Raises:
        Busy: (on entering) the participant has a loop already.
        OSError: (on entering) the state cannot be written.
    """

    def __init__(
        self,
        where: Place,
        saved: Saved,
        *,
        stream: str,
        prices: tuple[float | None, float | None] = (None, None),
        echo: Callable[[str], None] | None = None,
        clock: Callable[[], datetime] = utc_now,
        grace: float = GRACE,
        tick: float = TICK,
    ) -> None:
        self.where = where
        self.state = saved
        self.signals = Signals()
        self._stream = stream
        self._prices = prices
        self._echo = echo
        self._clock = clock
        self._grace = grace
        self._tick = tick
        self._log = Log(where.log)
        self._stack = contextlib.ExitStack()
        self._written = 0.0
        self._full = False  # the state could not be written: say so once
        self._unfinished: Run | None = None

    def __enter__(self) -> Runner:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.where.locked())
            atomic.sweep(self.where.state)
            self._carry_over(load(self.where))
            stack.enter_context(self.signals)
            atomic.replace(self.where.state, codec.encode(self.state), sync=False)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _carry_over(self, before: Saved | None) -> None:
        if before is None:
            return
        changes: dict[str, Any] = {name: getattr(before, name) for name in _CARRIED}
        changes["left_over"] = tuple(each for each in before.left_over if each.alive())
        self.state = replace(self.state, **changes)
        if before.run and before.run.ended is None:
            self._unfinished = before.run

    @property
    def stopping(self) -> str:
        """Why the loop should end: the name of a signal, or ""."""
        return self.signals.stop

    def say(self, text: str, who: str = "loop") -> None:
        """Write a line into the log."""
        self._log.write(who, text, self._clock())
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
            changes.setdefault("since", self._clock())
        self.state = replace(self.state, **changes)
        self._write()

    def _write(self) -> None:
        """Replace the state file. A full disk stops no loop: its state is then an old one."""
        self._written = time.monotonic()
        try:
            atomic.replace(self.where.state, codec.encode(self.state), sync=False)
            self._full = False
        except OSError as error:
            if not self._full:
                self.say(f"the state cannot be written: {error.strerror or error}")
            self._full = True

    def unfinished(self) -> Run | None:
        """A run that an earlier loop began and did not see the end of, once.

        Watch it with `take_over`.
        """
        run, self._unfinished = self._unfinished, None
        return run

    def take_over(self, run: Run, check: Check) -> Run:
        """Watch a program that an earlier loop started, or read what it had to say, to its end."""
        return self._watch(spawn.adopt(run.process), run, check)

    def next_number(self) -> int:
        """The number of the run that would be started now."""
        return self.state.run.number + 1 if self.state.run else 1

    def file(self, number: int, kind: str) -> Path:
        """A file of a run: its ``prompt``, ``out`` or ``err``."""
        return self.where.runs / f"{number:05}.{kind}"

    def run(self, command: Command, check: Check) -> Run:
        """Run a program to its end, or until ``check`` or a signal says to stop it.

        Raises:
            SpawnError: it cannot be started.
        """
        number = self.next_number()
        self._prune(number)
        out, err = self.file(number, "out"), self.file(number, "err")
        for path in (out, err):
            path.unlink(missing_ok=True)
        child = spawn.start(command, out, err)
        run = Run(number, child.identity, self._clock(), out=str(out), err=str(err))
        self.update(run=run, left_over=tuple(each for each in self.state.left_over if each.alive()))
        return self._watch(child, run, check)

    def _watch(self, child: Child, run: Run, check: Check) -> Run:
        output = Output(Path(run.out), Path(run.err), self._stream)
        stop = ""
        kill_at: float | None = None
        while True:
            ended = child.poll()
            self._tell(output.look(time.time()))
            run = self._measured(run, output)
            if ended:
                break
            stop = stop or self.stopping or check(run)
            if stop and kill_at is None:
                self.say(f"stopping the program: {stop}")
                run = replace(run, stopped=stop)
                child.signal(signal.SIGTERM)
                kill_at = time.monotonic() + self._grace
            elif kill_at is not None and time.monotonic() > kill_at:
                child.signal(signal.SIGKILL)
            self._show(run)
            self.signals.wait(self._tick)
        self._tell(output.end(time.time()))
        return self._end(self._measured(run, output), ended)

    def _tell(self, said: list[tuple[str, str]]) -> None:
        for who, line in said:
            self.say(line, who)

    def _show(self, run: Run) -> None:
        """Write how far the program is, now and then."""
        if run != self.state.run and time.monotonic() - self._written >= _WRITE:
            self.update(run=run)

    def _measured(self, run: Run, output: Output) -> Run:
        progress = output.progress
        cost, estimated = progress.cost, False
        if cost is None and None not in self._prices and progress.tokens_in + progress.tokens_out:
            price_in, price_out = (price or 0.0 for price in self._prices)
            cost = (progress.tokens_in * price_in + progress.tokens_out * price_out) / 1e6
            estimated = True
        finished = run.finished or (self._clock() if progress.finished else None)
        return replace(
            run,
            first_output=_moment(output.first),
            last_output=_moment(output.last),
            tool=progress.tool,
            refused=tuple(progress.refused),
            refusals=tuple(progress.refusals),
            retries=progress.retries,
            retrying=progress.retrying,
            retrying_until=_moment(progress.retrying_until),
            retry_reason=progress.retry_reason,
            tokens_in=progress.tokens_in,
            tokens_out=progress.tokens_out,
            tokens_estimated=progress.tokens_estimated,
            cost=cost,
            cost_estimated=estimated,
            session=progress.session,
            model=progress.model,
            version=progress.version,
            finished=finished if progress.finished else None,
            is_error=progress.is_error,
            error=progress.error,
            cut_off=progress.cut_off,
            lines=tuple(output.lines),
        )

    def _end(self, run: Run, ended: Exit) -> Run:
        run = replace(
            run,
            ended=self._clock(),
            exit_code=ended.code,
            signal=ended.signal,
            exit=str(ended),
            tool="",
            retrying=False,
            retrying_until=None,
        )
        state = self.state
        cost = state.cost if run.cost is None else (state.cost or 0.0) + run.cost
        self.update(
            run=run,
            left_over=(*state.left_over, *session_members(run.process.pid)),
            tokens_in=state.tokens_in + run.tokens_in,
            tokens_out=state.tokens_out + run.tokens_out,
            cost=cost,
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
        left_out = ("process", "lines", "tool", "retrying", "retrying_until")
        kept = {
            each.name: getattr(run, each.name) for each in fields(run) if each.name not in left_out
        }
        kept = {name: v.isoformat() if isinstance(v, datetime) else v for name, v in kept.items()}
        kept |= {
            "program": self.state.program,
            "version": self.state.version,
            "model": self.state.model,
        }
        line = json.dumps(kept | facts, ensure_ascii=True, default=str).encode() + b"\n"
        with contextlib.suppress(OSError):
            if self.where.turns.is_file() and self.where.turns.stat().st_size > _TURNS_LIMIT:
                rotate(self.where.turns)
            with self.where.turns.open("ab") as file:
                file.write(line)

    def end_strays(self) -> None:
        """End what earlier runs left behind."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            alive = [each for each in self.state.left_over if each.alive()]
            for each in alive:
                self.say(f"ending process {each.pid}, which the program left behind")
                with contextlib.suppress(OSError):
                    os.kill(each.pid, number)
            deadline = time.monotonic() + 2
            while any(each.alive() for each in alive) and time.monotonic() < deadline:
                time.sleep(0.05)

    def _prune(self, number: int) -> None:
        """Remove the files of old runs."""
        with contextlib.suppress(OSError):
            for path in self.where.runs.iterdir():
                if path.stem.isdecimal() and int(path.stem) <= number - KEPT_RUNS:
                    path.unlink(missing_ok=True)


def myself() -> Identity:
    """The identity of this process."""
    return identify(os.getpid()) or Identity(os.getpid(), time.time())


def _moment(seconds: float | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
