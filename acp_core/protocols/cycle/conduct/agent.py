"""One run of one agent's program, from its prompt to what it said.

A run has a name, its key. What it said is kept under that name in the progress folder: a run
whose words stand there is finished, and is never repeated. A program that goes on while its
orchestrator died is taken over; one that was started and not yet recorded is found by its
environment or by what it printed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import psutil

from acp_core.agents.identity import Identity, identify
from acp_core.agents.place import LoopRunning, Place, place
from acp_core.agents.presets import PresetError
from acp_core.agents.spawn import Command, SpawnError, Values, build
from acp_core.agents.state import Phase, Run, Saved
from acp_core.agents.supervise import Runner, myself
from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.cycle.conduct.spec import Spec
from acp_core.protocols.cycle.write import layout

VARIABLE = "ACP_CYCLE_RUN"  # tells a program, and whoever looks for it, which run it is
_TICK = 0.1  # seconds between two looks at it: a thread is not told that a child has ended
_TAIL = 16 << 20  # bytes of an output that are looked at, the last ones
_KEPT = 1 << 20  # characters of what was said that are kept
_STOPPED = "the orchestrator was stopped"
LATE = "it took longer than it may"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        key: the run.
        said: everything that the agent said.
        why: why it came to nothing, "" where it ended by itself with exit code 0.
        stopped: somebody stopped it: it counts as if it had not been.
    """

    key: str
    said: str = ""
    why: str = ""
    stopped: bool = False

    @property
    def late(self) -> bool:
        """It was stopped because it took too long."""
        return self.why.startswith(LATE)


@dataclass(frozen=True, slots=True)
class Work:
    """What a run is to do.

    Attributes:
        agent: whose run it is.
        key: the run.
        prompt: what its program is told.
        progress: the cycle's progress folder, in which its words are kept.
        timeout: seconds that it may take.
    """

    agent: str
    key: str
    prompt: str
    progress: Path
    timeout: float

    @property
    def result(self) -> Path:
        """The file that keeps what the agent said."""
        return self.progress / "coordination" / "phase-results" / f"{self.key}.txt"


class AgentRun:
    """Runs a program for one piece of work; used once, in any thread.

    Args:
        spec: what the orchestrator is asked to do.
        work: what this run is to do.
        stop: says why the program should be stopped, or "".
        clock: says what time it is.
    """

    def __init__(
        self, spec: Spec, work: Work, stop: Callable[[], str], clock: Callable[[], datetime]
    ) -> None:
        self._spec = spec
        self._work = work
        self._stop = stop
        self._clock = clock
        self._where: Place = place(spec.root, work.agent)

    def run(self) -> Ended:
        """Run it to its end, or find out how it ended. Never raises."""
        key = self._work.key
        if layout.regular(self._work.result):
            return kept(self._work)
        try:
            return self._run()
        except (SpawnError, PresetError) as error:
            return Ended(key, why=str(error))
        except LoopRunning:
            return Ended(key, why=f"{self._work.agent} has a loop of its own already")
        except OSError as error:
            return Ended(key, why=f"{error.filename or 'a file'}: {error.strerror or error}")

    def _run(self) -> Ended:
        preset, model = self._spec.preset(self._work.agent)
        saved = Saved(
            folder=self._spec.root,
            participant=self._work.agent,
            process=myself(),
            started=self._clock(),
            program=preset.name,
            model=model,
            workdir=self._spec.root,
            command=(preset.program, *preset.args),
            attempts=self._spec.attempts,
        )
        prices = (preset.price_in, preset.price_out)
        stream = preset.stream
        with Runner(self._where, saved, stream=stream, prices=prices, tick=_TICK) as runner:
            run = self._earlier(runner) or self._new(runner)
            ended = self._concluded(run, stream)
            runner.record(run, turn=self._work.key, took=not ended.why, mode="turns")
            runner.end_strays()
            runner.update(
                phase=Phase.DONE,
                note=ended.why or "through",
                turns=runner.state.turns + (not ended.why and not ended.stopped),
                ended=self._clock(),
            )
            return ended

    def _earlier(self, runner: Runner) -> Run | None:
        """The end of this very run, where an orchestrator before us began it."""
        unfinished = runner.unfinished()
        key, _, said = runner.state.turn.rpartition("@")
        number = int(said) if said.isdecimal() else 0
        if key != self._name:
            if unfinished:
                runner.take_over(unfinished, lambda run: "it belongs to an earlier run")
            return None
        run = runner.state.run
        if run is None or run.number != number:
            run = unfinished = self._unrecorded(runner, number)
        if run is None:
            return None
        if unfinished:
            runner.say(f"taking over process {run.process.pid}, which was started before")
            runner.update(phase=Phase.RUNNING, note="taken over", run=run)
            run = runner.take_over(run, self._check)
        return None if run.stopped and run.stopped != LATE else run

    def _unrecorded(self, runner: Runner, number: int) -> Run | None:
        """A program that was started just before its orchestrator died."""
        out, err = runner.file(number, "out"), runner.file(number, "err")
        process = _process_of(self._mark(number))
        if process is None:
            with contextlib.suppress(OSError):
                if out.stat().st_size:
                    started = datetime.fromtimestamp(out.stat().st_mtime, self._clock().tzinfo)
                    gone = Identity(2**22 + 1, 0.0)
                    return Run(number, gone, started, out=str(out), err=str(err))
            return None
        return Run(number, process, self._clock(), out=str(out), err=str(err))

    def _new(self, runner: Runner) -> Run:
        number = runner.next_number()
        for kind in ("out", "err"):
            runner.file(number, kind).unlink(missing_ok=True)
        command = self._command(runner, number)
        runner.update(phase=Phase.RUNNING, turn=f"{self._name}@{number}", note=self._work.key)
        runner.say(f"run {self._work.key}")
        return runner.run(command, self._check)

    @property
    def _name(self) -> str:
        return f"{self._spec.cycle}/{self._work.key}"

    def _mark(self, number: int) -> str:
        return f"{self._spec.root}:{self._name}@{number}"

    def _command(self, runner: Runner, number: int) -> Command:
        preset, model = self._spec.preset(self._work.agent)
        path = runner.file(number, "prompt")
        atomic.replace(path, self._work.prompt.encode(errors="replace"), sync=False)
        values = Values(
            folder=self._spec.root,
            workdir=self._spec.root,
            drafts=str(self._where.drafts),
            prompt=self._work.prompt,
            prompt_file=str(path),
            model=model,
        )
        command = build(preset, values)
        return replace(command, env={**command.env, VARIABLE: self._mark(number)})

    def _check(self, run: Run) -> str:
        if (self._clock() - run.started).total_seconds() > self._work.timeout:
            return LATE
        return self._stop()

    def _concluded(self, run: Run, stream: str) -> Ended:
        key = self._work.key
        if run.stopped and run.stopped != LATE:
            return Ended(key, stopped=True)
        said = spoken(Path(run.out), stream)
        why = ""
        if run.stopped:
            seconds = self._work.timeout
            allowed = f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"
            why = f"{LATE}: {allowed}"
        elif run.exit_code or run.signal is not None:
            last = run.error or next((line for line in reversed(run.lines) if line.strip()), "")
            why = f"{run.exit}: {last}" if last else run.exit
        elif run.is_error:
            why = run.error or "the program says that it failed"
        head = json.dumps({"run": key, "why": why}, ensure_ascii=True)
        with contextlib.suppress(FileExistsError):
            data = f"{head}\n{said[-_KEPT:]}".encode("utf-8", "replace")
            atomic.create(self._work.result, data)
        return kept(self._work)


def kept(work: Work) -> Ended:
    """What is kept of a run that ended."""
    head, _, said = layout.read(work.result).partition("\n")
    try:
        why = json.loads(head)["why"]
    except (ValueError, KeyError, TypeError):
        return Ended(work.key, f"{head}\n{said}")
    return Ended(work.key, said, why if isinstance(why, str) else "")


def spoken(path: Path, stream: str) -> str:
    """What an agent said, out of what its program printed.

    Args:
        path: the file that the program printed into.
        stream: the form of it: plain text, or records of JSON in which the words stand.
    """
    try:
        size = path.stat().st_size
        if size > _TAIL:
            with path.open("rb") as file:
                file.seek(size - _TAIL)
                data = file.read(_TAIL)
        else:
            data = read_bounded(path, _TAIL)
    except (OSError, Unreadable):
        return ""
    text = data.decode("utf-8", "replace")
    if stream == "text":
        return text
    said: list[str] = []
    for line in text.splitlines():
        try:
            _collect(json.loads(line), said)
        except (ValueError, RecursionError):
            said.append(line)
    return "\n\n".join(said)


def _collect(value: object, said: list[str], depth: int = 0) -> None:
    """The texts in a record that hold a result; programs print their last words twice."""
    if isinstance(value, str):
        if "PHASE_RESULT" in value and value.strip() not in map(str.strip, said):
            said.append(value)
    elif depth < 20 and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _collect(each, said, depth + 1)


def _process_of(mark: str) -> Identity | None:
    """The living process that was started for a run."""
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get(VARIABLE) == mark and os.getsid(process.pid) == process.pid:
                return identify(process.pid)
        except (psutil.Error, OSError):
            continue
    return None
