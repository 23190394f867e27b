"""Tasks of the plan that CD works on at the same time, each in a run of its own.

They come before CD's own run, which looks at what they left, does what is left to do, and alone
writes CD's documents: so each document keeps a single writer. A task that fails is not repeated,
and those that depend on it are not begun: CD's own run is told so. Where a person cancels one, none
is begun any more, and they are asked what is next. What each run said is kept under
its name like that of every run, so that whoever takes over from an orchestrator that died repeats
none. Source: development cycle specification, "Parallel Opportunities".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

from acp_core.agents.live.state import TurnScope
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.conduct.agent import AgentRun, Ended, Work, read_result
from acp_core.protocols.cycle.conduct.delivery import Mailbox
from acp_core.protocols.cycle.read import board, state_file
from acp_core.protocols.cycle.read.orchestrator_spec import Spec
from acp_core.protocols.cycle.read.reports import PhaseResult, parse_result
from acp_core.protocols.cycle.schema import Task
from acp_core.protocols.cycle.state import startable


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


class TaskRuns:
    """CD's run where tasks of the plan come first; used once, in any thread.

    Args:
        spec: what the orchestrator is asked to do.
        work: what CD's own run is to do.
        tasks: which come first, by the number of their run, in the order of the plan.
        stop: says why programs should be stopped, or "".
        mailbox: feedback for CD's own run.
        tell: is told what people should know while it lasts.
        of_task: what the program is told that does a task, beside the others.
        prompt: what CD's own run is told, once the tasks have ended.
    """

    def __init__(
        self,
        spec: Spec,
        work: Work,
        tasks: Mapping[int, Task],
        stop: Callable[[], str],
        mailbox: Mailbox,
        tell: Callable[[str], None],
        of_task: Callable[[Task, Sequence[Task]], str],
        prompt: Callable[..., str],
    ) -> None:
        self._spec = spec
        self._work = work
        self._tasks = tasks
        self._stop = stop
        self._mailbox = mailbox
        self._tell = tell
        self._of_task = of_task
        self._prompt = prompt
        self._lock = threading.Lock()
        self._news: list[TaskRun] = []

    def run(self) -> Ended:
        """Run the tasks, then CD's own run. Never raises."""
        runs = list(self._work_on())
        stopped = next((each.ended for each in runs if each.ended and each.ended.stopped), None)
        if stopped is not None:
            return replace(stopped, key=self._work.key)
        cancelled = next((each.ended for each in runs if each.ended and each.ended.cancelled), None)
        if cancelled is not None:
            return replace(cancelled, key=self._work.key)
        if self._stop():
            return Ended(self._work.key, stopped=True)
        begun = {each.key for each in runs}
        runs += [TaskRun(task, work.key) for task, work in self._works() if work.key not in begun]
        work = replace(self._work, prompt=self._prompt(tasks=[each.sentence for each in runs]))
        return AgentRun(self._spec, work, self._stop, self._mailbox, self._tell).run()

    def news(self) -> list[TaskRun]:
        """The runs that began or ended since the last call."""
        with self._lock:
            found, self._news = self._news, []
        return found

    def _work_on(self) -> Iterator[TaskRun]:
        """Have the tasks done as they can begin; gives each as it ends."""
        works = self._works()
        ended = [_read(task, work) for task, work in works if state_file.is_regular(work.result)]
        yield from ended
        done = {each.task.id for each in ended if each.is_done}
        done |= {id for task, _ in works for id in task.depends_on} - {task.id for task, _ in works}
        over = {each.key for each in ended}
        waiting = {task.id: (task, work) for task, work in works if work.key not in over}
        at_work: dict[Future[TaskRun], Task] = {}
        cancelled = any(each.ended and each.ended.cancelled for each in ended)
        with ThreadPoolExecutor(self._spec.jobs, "task") as pool:
            while True:
                goes_on = not (cancelled or self._stop())
                free = self._spec.jobs - len(at_work) if goes_on else 0
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
        return [self._of(number, task) for number, task in self._tasks.items()]

    def _of(self, number: int, task: Task) -> tuple[Task, Work]:
        others = [each for each in self._tasks.values() if each.id != task.id]
        made = replace(
            self._work,
            key=f"{self._work.key}-task-{number}",
            participant=f"{self._work.agent}-{number}",
            prompt=self._of_task(task, others),
            folder="task-results",
        )
        return task, made

    def _run(self, task: Task, work: Work) -> TaskRun:
        self._add(TaskRun(task, work.key))
        ended = _OneTask(self._spec, work, self._stop, Mailbox(), self._tell).run()
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
            documents=(str(progress / board.BOARD), str(progress / "cd" / schema.LOG_NAMES["cd"])),
            folders=(self._spec.root,),
            permissions=self._spec.permissions,
        )

    def tools(self) -> tuple[str, ...]:
        """None: the protocol knows no such participant."""
        return ()


def _read(task: Task, work: Work) -> TaskRun:
    ended = read_result(work)
    return TaskRun(task, work.key, ended, parse_result(ended.output))
