"""The runs of an agent's program, from its prompt to what it said; CD's tasks side by side; feedback at work.

A run has a name, its key. What it said is kept under that name in the progress folder: a run whose
words stand there is finished, and is never repeated. Until then it is an assignment.

Tasks of the plan that CD works on at the same time have a run each. They come before CD's own run,
which looks at what they left, does what is left to do, and alone writes CD's documents: so each
document keeps a single writer. A task that fails is not repeated, and those that depend on it are
not begun: CD's own run is told so. Where a person cancels one, none is begun any more, and they are
asked what is next.

Feedback reaches a live session at once, where the agent takes messages, else the agent's next run.
Where an orchestrator is killed between the delivery and its note of it, the next one finds it in the
session's journal, and does not deliver it again. Source: development cycle specification, "Parallel
Opportunities" and "Feedback".
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from acp_core.agents import budgets, streams
from acp_core.agents.assignment import LATE, Assignment, perform
from acp_core.agents.live import turn
from acp_core.agents.live.turn import Steering, TurnScope
from acp_core.agents.loop_directory import CannotClaim, LoopDirectory, LoopRunning, place
from acp_core.agents.output import parse, read_end
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Program, SpawnError
from acp_core.agents.session import Session
from acp_core.agents.session_lock import program_runs
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic
from acp_core.files.claims import ClaimError
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read import progress as read_progress
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.read.orchestrator_spec import ORCHESTRATOR, Spec
from acp_core.protocols.cycle.read.progress import PhaseResult, parse_result
from acp_core.protocols.cycle.schema import Object, Task, stamp_of
from acp_core.protocols.cycle.state import startable
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.layout import note
from acp_core.protocols.kit.tools import tools_in


class Mailbox:
    """Feedback for one run. The orchestrator fills it; the thread that watches the run delivers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[tuple[str, ...], str]] = []
        self._known: set[str] = set()
        self._delivered: list[str] = []
        self._recalled: frozenset[str] = frozenset()  # delivered already, as the journal tells

    def new(self, entries: Sequence[Object]) -> list[Object]:
        """The feedback that was not put in yet."""
        return [each for each in entries if schema.text(each.get("id")) not in self._known]

    def put(self, entries: Sequence[Object], text: str) -> None:
        """Have feedback delivered.

        Args:
            entries: the feedback, as the state holds it.
            text: the message that it makes.
        """
        ids = tuple(schema.text(each.get("id")) for each in entries)
        self._known.update(ids)
        with self._lock:
            if self._recalled.issuperset(ids):
                self._delivered += ids
            else:
                self._waiting.append((ids, text))

    def deliver(self, where: LoopDirectory, number: int) -> None:
        """Give the agent what waits; what it does not take waits for its next run.

        Args:
            where: the agent's place.
            number: of the run.
        """
        while self._waiting and turn.can_steer(where):
            with self._lock:
                ids, text = self._waiting.pop(0)
            with contextlib.suppress(OSError):
                if turn.steer(where, Steering(number, text, ORCHESTRATOR, ids)).delivered:
                    with self._lock:
                        self._delivered += ids

    def recall(self, journal: Path) -> None:
        """Find out what an orchestrator before this one delivered, and noted nowhere.

        Args:
            journal: the run's.
        """
        found = turn.delivered(journal)
        with self._lock:
            self._recalled = found
            for ids, text in [each for each in self._waiting if found.issuperset(each[0])]:
                self._waiting.remove((ids, text))
                self._delivered += ids

    def delivered(self) -> list[str]:
        """The ids of feedback that the agent took since the last call."""
        with self._lock:
            found, self._delivered = self._delivered, []
        return found


def sent(state: Object, now: datetime, name: str, run: str, ids: Sequence[str]) -> None:
    """Note that an agent got feedback in the middle of a run.

    Args:
        state: the cycle's state.
        now: the time.
        name: the agent.
        run: the name of the run.
        ids: of the feedback.
    """
    for each in changes.entries(state, "feedback_log"):
        if each.get("id") in ids and not each.get("sent_at"):
            each |= {"sent_at": stamp_of(now), "run": run}
            note(state, now, name, f"got feedback {each['id']} while at work, run {run}")


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
        if scan.is_regular(self._work.result):
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
            documents=(str(progress / read_progress.BOARD),),
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


@dataclass(frozen=True, slots=True)
class TaskRun:
    """The run of a task.

    Attributes:
        task: what it is about.
        key: its name.
        ended: how it ended; None as long as it works.
        result: what it reported; None where it did not.
    """

    task: Task
    key: str
    ended: Ended | None = None
    result: PhaseResult | None = None

    @property
    def is_done(self) -> bool:
        """Whether it reported that the task is done."""
        through = self.ended is not None and not self.ended.why and not self.ended.stopped
        said = self.result
        return bool(through and said and said.phase == "cd" and said.status == "success")

    @property
    def trouble(self) -> str:
        """Why the task is not done."""
        if self.ended is None or self.is_done:
            return ""
        said = self.result
        reasons = said.items("blockers") + said.items("issues") if said else ()
        return self.ended.why or "; ".join(reasons) or "the run did not report success"

    @property
    def sentence(self) -> str:
        """How it ended, for CD's own run."""
        if self.ended is None:
            return f"{self.task.id}: not begun, because a task that it depends on is not done"
        if not self.is_done or self.result is None:
            return f"{self.task.id}: not done: {self.trouble}"
        files = ", ".join(self.result.items("files_modified")) or "none"
        return f"{self.task.id}: done: {self.result.summary} (files: {files})"


@dataclass(eq=False, slots=True)
class TaskRuns:
    """CD's run where tasks of the plan come first; used once, in any thread.

    Attributes:
        spec: what the orchestrator is asked to do.
        work: what CD's own run is to do.
        tasks: which come first, by the number of their run, in the order of the plan.
        stop: says why programs should be stopped, or "".
        mailbox: feedback for CD's own run.
        tell: is told what people should know while it lasts.
        of_task: what the program is told that does a task, beside the others.
        prompt: what CD's own run is told, once the tasks have ended.
    """

    spec: Spec
    work: Work
    tasks: Mapping[int, Task]
    stop: Callable[[], str]
    mailbox: Mailbox
    tell: Callable[[str], None]
    of_task: Callable[[Task, Sequence[Task]], str]
    prompt: Callable[..., str]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _news: list[TaskRun] = field(default_factory=list, init=False)

    def run(self) -> Ended:
        """Run the tasks, then CD's own run. Never raises."""
        runs = list(self._work_on())
        stopped = next((each.ended for each in runs if each.ended and each.ended.stopped), None)
        if stopped is not None:
            return replace(stopped, key=self.work.key)
        cancelled = next((each.ended for each in runs if each.ended and each.ended.cancelled), None)
        if cancelled is not None:
            return replace(cancelled, key=self.work.key)
        if self.stop():
            return Ended(self.work.key, stopped=True)
        begun = {each.key for each in runs}
        runs += [TaskRun(task, work.key) for task, work in self._works() if work.key not in begun]
        work = replace(self.work, prompt=self.prompt(tasks=[each.sentence for each in runs]))
        return AgentRun(self.spec, work, self.stop, self.mailbox, self.tell).run()

    def news(self) -> list[TaskRun]:
        """The runs that began or ended since the last call."""
        with self._lock:
            found, self._news = self._news, []
        return found

    def _work_on(self) -> Iterator[TaskRun]:
        """Have the tasks done as they can begin; gives each as it ends."""
        works = self._works()
        ended = [_read(task, work) for task, work in works if scan.is_regular(work.result)]
        yield from ended
        done = {each.task.id for each in ended if each.is_done}
        done |= {id for task, _ in works for id in task.depends_on} - {task.id for task, _ in works}
        over = {each.key for each in ended}
        waiting = {task.id: (task, work) for task, work in works if work.key not in over}
        at_work: dict[Future[TaskRun], Task] = {}
        cancelled = any(each.ended and each.ended.cancelled for each in ended)
        with ThreadPoolExecutor(self.spec.jobs, "task") as pool:
            while True:
                goes_on = not (cancelled or self.stop())
                free = self.spec.jobs - len(at_work) if goes_on else 0
                known = [task for task, _ in waiting.values()]
                known.sort(key=lambda task: task.state != "in_progress")  # begun before: taken over
                for task in startable(known, done, at_work.values())[:free]:
                    at_work[pool.submit(self._run, *waiting.pop(task.id))] = task
                if not at_work:
                    return
                for future in wait(at_work, return_when=FIRST_COMPLETED).done:
                    del at_work[future]
                    run = future.result()
                    if run.is_done:
                        done.add(run.task.id)
                    cancelled = cancelled or (run.ended is not None and run.ended.cancelled)
                    yield run

    def _works(self) -> list[tuple[Task, Work]]:
        return [self._of(number, task) for number, task in self.tasks.items()]

    def _of(self, number: int, task: Task) -> tuple[Task, Work]:
        others = [each for each in self.tasks.values() if each.id != task.id]
        made = replace(
            self.work,
            key=f"{self.work.key}-task-{number}",
            participant=f"{self.work.agent}-{number}",
            prompt=self.of_task(task, others),
            folder="task-results",
        )
        return task, made

    def _run(self, task: Task, work: Work) -> TaskRun:
        self._add(TaskRun(task, work.key))
        ended = _OneTask(self.spec, work, self.stop, Mailbox(), self.tell).run()
        run = TaskRun(task, work.key, ended, parse_result(ended.output))
        self._add(run)
        return run

    def _add(self, run: TaskRun) -> None:
        with self._lock:
            self._news.append(run)


class _OneTask(AgentRun):
    """The run of one task."""

    def scope(self) -> TurnScope:
        """It may change the project, and add to the board and to CD's log; no document of CD's."""
        progress = self._work.progress
        return TurnScope(
            self.note,
            documents=(
                str(progress / read_progress.BOARD),
                str(progress / "cd" / schema.LOG_NAMES["cd"]),
            ),
            folders=(self._spec.root,),
            permissions=self._spec.permissions,
        )

    def tools(self) -> tuple[str, ...]:
        """None: the protocol knows no such participant."""
        return ()


def _read(task: Task, work: Work) -> TaskRun:
    ended = read_result(work)
    return TaskRun(task, work.key, ended, parse_result(ended.output))
