"""One run of one agent's program, from its prompt to what it said.

A run has a name, its key. What it said is kept under that name in the progress folder: a run
whose words stand there is finished, and is never repeated. Until then it is an assignment.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_core.agents import budgets, streams
from acp_core.agents.assignment import LATE, Assignment, perform
from acp_core.agents.live.state import TurnScope
from acp_core.agents.loop_directory import CannotClaim, LoopRunning, place
from acp_core.agents.output import parse, read_end
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Program
from acp_core.agents.session import Session
from acp_core.agents.session_lock import program_runs
from acp_core.agents.spawn import SpawnError
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic
from acp_core.files.claims import ClaimError
from acp_core.model.text import clean_line
from acp_core.protocols.cycle.conduct.delivery import Mailbox
from acp_core.protocols.cycle.read import board, state_file
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.write import layout
from acp_core.protocols.kit.tools import tools_in

VARIABLE = "ACP_CYCLE_RUN"  # tells a program, and whoever looks for it, which run it is
_PAUSE = 0.5  # seconds between two looks whether another orchestrator's program has ended
_TICK = 0.1  # seconds between two looks at it: a thread is not told that a child has ended
_LONGEST = 1 << 20  # characters of what was said that are kept


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        key: the run.
        output: everything that the agent said.
        why: why it came to nothing, "" where it ended by itself with exit code 0.
        stopped: somebody stopped it: it counts as if it had not been.
        capped: the budget that is used up, where nobody was to wait until it is raised.
        cancelled: a person cancelled it, and is asked what is next.
    """

    key: str
    output: str = ""
    why: str = ""
    stopped: bool = False
    capped: str = ""
    cancelled: bool = False

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
        participant: as which its program is started, listed and stopped; "" for the agent itself.
        folder: in which its words are kept.
    """

    agent: str
    key: str
    prompt: str
    progress: Path
    timeout: float
    participant: str = ""
    folder: str = "phase-results"

    @property
    def result(self) -> Path:
        """The file that keeps what the agent said."""
        return self.progress / "coordination" / self.folder / f"{self.key}.txt"

    @property
    def who(self) -> str:
        """As which its program is started."""
        return self.participant or self.agent


class AgentRun(Assignment):
    """Runs a program for one piece of work; used once, in any thread.

    Args:
        spec: what the orchestrator is asked to do.
        work: what this run is to do.
        stop: says why the program should be stopped, or "".
        mailbox: feedback for the run.
        tell: is told what people should know while it lasts.
    """

    def __init__(
        self,
        spec: Spec,
        work: Work,
        stop: Callable[[], str],
        mailbox: Mailbox,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        iteration, _, _ = work.key.partition("-")
        super().__init__(
            f"{spec.cycle}/{work.key}",
            VARIABLE,
            note=work.key,
            title=f"run {work.key}",
            timeout=work.timeout,
            turn=f"{spec.cycle}/{iteration}-{work.agent}",
            leaves=spec.leave,
        )
        self._spec = spec
        self._work = work
        self._stop = stop
        self._mailbox = mailbox
        self._tell = tell
        self._where = place(spec.root, work.who)
        self._recalled = 0  # the attempt of which is known what was delivered in it

    def run(self) -> Ended:
        """Run it to its end, or find out how it ended. Never raises."""
        key = self._work.key
        if state_file.is_regular(self._work.result):
            return read_result(self._work)
        until = time.monotonic() + self._work.timeout
        while True:
            try:
                return self._run()
            except (SpawnError, PresetError, ClaimError, CannotClaim) as error:
                return Ended(key, why=str(error))
            except LoopRunning as error:
                if not program_runs(self._spec.root, self._work.who):
                    return Ended(key, why=f"{self._work.who} already has its own loop")
                if self._stop():
                    return Ended(key, stopped=True)
                if time.monotonic() > until:
                    return Ended(key, why=str(error))
            except OSError as error:
                return Ended(key, why=f"{error.filename or 'a file'}: {error.strerror or error}")
            time.sleep(_PAUSE)  # another orchestrator left its program at work: it ends first

    def _run(self) -> Ended:
        program = self.program()
        spec = self._spec
        with Session.of(
            program,
            self._work.who,
            attempts=spec.attempts,
            tick=_TICK,
            run_id=clean_line(spec.cycle),
        ) as session:
            run = perform(session, self)
            if run.live:
                self._mailbox.recall(Path(run.out))
            stream = streams.LIVE if run.live else program.preset.stream
            ended = self._concluded(run, stream)
            session.record(run, turn=self._work.key, took=not ended.why, mode="turns")
            took = not ended.why and not ended.stopped
            turns = session.state.turns + took
            phase = Phase.GAVE_UP if ended.capped else Phase.DONE
            session.finish(phase, ended.capped or ended.why or "through", turns=turns)
            return ended

    def program(self) -> Program:
        """The agent's program."""
        return self._spec.program(self._work.agent)

    def prompt(self) -> str:
        """What the agent is told."""
        return self._work.prompt

    def scope(self) -> TurnScope:
        """It may change its own folder and the board, and CD the project; never the state."""
        agent, progress = self._work.agent, self._work.progress
        project = (self._spec.root,) if agent == "cd" else ()
        return TurnScope(
            self.note,
            documents=(str(progress / board.BOARD),),
            folders=(str(progress / agent), *project),
            permissions=self._spec.permissions,
        )

    def tools(self) -> tuple[str, ...]:
        """Those of the protocol's participants."""
        return tools_in("cycle")

    def mark(self, number: int) -> str:
        """Which run of which cycle it is, also where several projects run at once."""
        return f"{self._spec.root}:{self.key}@{number}"

    def check(self, run: Run) -> str:
        """Why the orchestrator wants it stopped, or ""; deliver what came for it meanwhile."""
        why = self._stop()
        if run.live and not why:
            if self._recalled != run.number:
                self._mailbox.recall(Path(run.out))
                self._recalled = run.number
            self._mailbox.deliver(self._where, run.number)
        return why

    def withdrawn(self) -> str:
        """Why the orchestrator does not want it any more, or ""."""
        return self._stop()

    def held(self, why: str) -> None:
        """Say it where the orchestrator's log is read."""
        self._tell(f"{self._work.who}: {why}; it continues when you raise the budget")

    def refused(self, why: str) -> None:
        """Say it where the orchestrator's log is read."""
        self._tell(f"{self._work.who} waits for its model service: {why}")

    def counts(self, run: Run) -> bool:
        """A run that an orchestrator stopped as it ended itself is made anew."""
        return not run.stopped or run.stopped == LATE or bool(run.cancelled)

    def _concluded(self, run: Run, stream: str) -> Ended:
        key = self._work.key
        if run.stopped and run.stopped != LATE and not run.cancelled:
            capped = run.stopped if budgets.stopped_it(run.stopped) else ""
            return Ended(key, stopped=True, capped=capped)
        output = spoken(Path(run.out), stream)
        why = ""
        if run.cancelled:
            why = run.stopped
        elif run.stopped:
            seconds = self._work.timeout
            allowed = f"{seconds / 60:g} minutes" if seconds >= 60 else f"{seconds:g} seconds"
            why = f"{LATE}: {allowed}"
        elif run.exit_code or run.signal is not None:
            last = run.error or next((line for line in reversed(run.lines) if line.strip()), "")
            why = f"{run.exit}: {last}" if last else run.exit
        elif run.is_error:
            why = run.error or "the program reported a failure"
        facts = {"run": key, "why": why} | ({"cancelled": True} if run.cancelled else {})
        head = json.dumps(facts, ensure_ascii=True)
        with contextlib.suppress(FileExistsError):
            data = f"{head}\n{output[-_LONGEST:]}".encode("utf-8", "replace")
            atomic.create(self._work.result, data)
        return read_result(self._work)


def read_result(work: Work) -> Ended:
    """What is kept of a run that ended."""
    head, _, output = layout.read(work.result).partition("\n")
    try:
        facts = json.loads(head)
        why, cancelled = facts["why"], facts.get("cancelled") is True
    except (ValueError, KeyError, TypeError, AttributeError):
        return Ended(work.key, f"{head}\n{output}")
    return Ended(work.key, output, why if isinstance(why, str) else "", cancelled=cancelled)


def spoken(path: Path, stream: str) -> str:
    """What an agent said, out of what its program printed.

    Args:
        path: the file that the program printed into.
        stream: the form of it: plain text, or records of JSON in which the words stand.
    """
    if stream == streams.LIVE:  # its journal holds the prompt as well
        return _whole(parse(read_end(path), stream).messages)
    text = read_end(path).decode("utf-8", "replace")
    if stream == "text":
        return text
    texts: list[str] = []
    for line in text.splitlines():
        try:
            _collect(json.loads(line), texts)
        except (ValueError, RecursionError):
            texts.append(line)
    return "\n\n".join(texts)


def _whole(messages: Sequence[str]) -> str:
    """What was said in messages of which each may be the beginning of the next."""
    pairs = zip(messages, (*messages[1:], ""), strict=False)
    return "\n\n".join(each for each, later in pairs if not later.startswith(each))


def _collect(value: object, texts: list[str], depth: int = 0) -> None:
    """The texts in a record that hold a result; programs print their last words twice."""
    if isinstance(value, str):
        if "PHASE_RESULT" in value and value.strip() not in map(str.strip, texts):
            texts.append(value)
    elif depth < 20 and isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _collect(each, texts, depth + 1)
