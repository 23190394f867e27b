"""The orchestrator of a cycle: the only writer of its state, and the one that starts its agents.

Everything that it knows stands in files: whenever it is ended, however roughly, the next one goes
on where it was. Source: development cycle specification, "Overview" and "Iteration Flow with
Communication".
"""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from acp_core.agents.session import Session
from acp_core.agents.state import Phase
from acp_core.files import atomic, claims, requests
from acp_core.files.claims import CONDUCT
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.files.requests import Request
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import prompts, schema
from acp_core.protocols.cycle.conduct import agent as conduct_agent
from acp_core.protocols.cycle.conduct import results, steps
from acp_core.protocols.cycle.conduct.agent import AgentRun, Ended, Mailbox, TaskRuns, Work
from acp_core.protocols.cycle.conduct.results import read_facts
from acp_core.protocols.cycle.conduct.steps import (
    FINALIZING,
    Kind,
    Todo,
    adopt,
    begin_cycle,
    begin_run,
    next_step,
    next_version,
    pick_up,
    prepared,
    run_of,
    sent_in,
    status,
    tasks_apart,
    unsent,
)
from acp_core.protocols.cycle.read import progress as read_progress
from acp_core.protocols.cycle.read.orchestrator_spec import FINALIZE_TIMEOUT, Spec
from acp_core.protocols.cycle.read.progress import parse_result
from acp_core.protocols.cycle.schema import AGENTS, Object
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.layout import note
from acp_core.protocols.cycle.write.store import Store, Written

COMPLETED, GAVE_UP, ASKS, FAILED = 0, 1, 4, 5
_SIGNALS = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}
_TICK = 0.3  # seconds between two looks at the state
_STUMBLES = 20  # faults in a row after which it ends
_STOPPED = "the orchestrator was stopped"


class Orchestrator:
    """Conducts one cycle until it is over.

    Args:
        session: its own place, lock, log and signals; entered already.
        spec: what it is asked to do.
        clock: says what time it is.
    """

    def __init__(
        self, session: Session, spec: Spec, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._session = session
        self._spec = spec
        self._clock = clock
        self._store = Store(spec.root, spec.cycle)
        place = session.where.folder / f"outputs-{spec.cycle}"
        self._outputs = results.Outputs(self._store.progress, place)
        self._threads: dict[str, threading.Thread] = {}
        self._mailboxes: dict[str, Mailbox] = {}
        self._tasks: TaskRuns | None = None  # of CD's run
        self._ended: dict[str, Ended] = {}
        self._halt = ""  # why running programs are to be stopped
        self._capped = ""  # the budget that is used up, where nobody is to wait
        self._seen: Stamp | None = None
        self._state: Object = {}
        self._stumbles = 0

    def run(self) -> int:
        """Conduct the cycle.

        Returns:
            0 when it completed, 5 when it failed or was stopped, 4 when a person is wanted and it
            was asked to leave then, 1 when it gave up, and 128 and the number of the signal that
            stopped it.
        """
        with self._store.locked():
            layout.sweep(self._store.progress)
        while True:
            try:
                code = self._step()
                self._stumbles = 0
            except Exception as error:  # a fault of ours must not end a cycle
                code = self._stumble(error)
            if code is not None:
                return code

    def _step(self) -> int | None:
        if self._session.stopping:
            self._stop_programs(_STOPPED)
            self._collect()
            self._end(Phase.STOPPED, self._session.stopped)
            return _SIGNALS.get(self._session.stopping, GAVE_UP)
        self._collect()
        if self._capped:
            self._stop_programs(self._capped)
            self._collect()
            self._end(Phase.GAVE_UP, self._capped)
            return ASKS
        self._take_up()
        state = self._read_state()
        todo = next_step(state, self._spec.overlap)
        if todo.kind is Kind.OVER:
            return self._over(state)
        if todo.kind is Kind.WAIT:
            return self._wait(todo)
        if todo.kind is Kind.PREPARE:
            self._prepare(state)
        elif todo.kind is Kind.EVALUATE:
            self._change(lambda held: results.evaluate(held, self._clock()))
        elif todo.kind is Kind.STUCK:
            self._change(lambda held: self._stuck(held, todo.note))
        else:
            self._work(todo.agents)
        return None

    # the state

    def _read_state(self) -> Object:
        """The state as it stands; what others did to it is seen to first."""
        now_seen = stamp(self._store.path)
        if now_seen != self._seen or not self._state:
            self._change(self._settle)
            self._seen = stamp(self._store.path)
        return self._state

    def _settle(self, state: Object) -> None:
        now = self._clock()
        adopt(state, now)
        begin_cycle(state, now)
        pick_up(state, now)
        steps.apply_decisions(state, now)

    def _change(self, change: Callable[[Object], None]) -> Written:
        written = self._store.change(change, self._clock(), allow=self._session.check)
        self._state = written.state
        if written.restored:
            self._session.say(written.restored)
        for name in written.refused:
            self._session.say(f"acp undid a change of {name} by another program")
        if written.lost:
            self._session.say("another program wrote the state at the same time: reading again")
            self._state = {}
        return written

    def _take_up(self) -> None:
        """Do what other accounts ask for; each is answered, and none is done twice."""
        for request in requests.pending(self._spec.root, CONDUCT):
            if request.act == requests.STOP:
                continue  # the session's own
            if requests.take(request):
                self._session.say(f"{request.account} asks: {request.act}")
                requests.answer(request, *self._answered(request))

    def _answered(self, request: Request) -> tuple[str, str]:
        """Make the change that is asked for; how that ended, and a sentence."""
        try:
            if request.values.get("cycle") != self._spec.cycle:
                raise Refused(f"this orchestrator runs {self._spec.cycle}")
            edit = changes.requested_edit(request.act, request.values)
            written = self._change(lambda state: edit(state, self._clock()))
        except (Refused, OSError) as error:
            self._session.say(f"refused: {error}")
            return "refused", str(error)
        if written.lost:
            return "unknown", "Written but overwritten by another program: check, and repeat it."
        return "done", f"Done by the orchestrator of {claims.account(claims.uid())}."

    def _stuck(self, state: Object, message: str) -> None:
        name = next((n for n in AGENTS if status(state, n) != "completed"), "ra")
        options = (steps.AGAIN, steps.STOP)
        steps.escalate(state, self._clock(), "agent", message, options, agent=name)

    # agents

    def _work(self, agents: tuple[str, ...]) -> None:
        for name in agents:
            if name not in self._threads:
                self._begin(name)
        for name in tuple(self._threads):
            self._hand_over(name)
        at_work = ", ".join(sorted(self._threads))
        if self._session.state.phase is not Phase.RUNNING or self._session.state.note != at_work:
            self._session.update(phase=Phase.RUNNING, note=at_work)
        self._session.signals.wait(_TICK)

    def _begin(self, name: str) -> None:
        """Put an agent to work, or go on with what it was put to."""
        progress = self._store.progress
        if status(self._state, name) != "running":
            self._watch_logs()
            own = changes.agent_state(self._state, name).version
            layout.archive(progress, name, own)
            self._outputs.remember(n for n in AGENTS if n != name and n not in self._threads)
            self._change(lambda state: self._begin_run(state, name))
        state = self._state
        agent = changes.agent_state(state, name)
        if status(state, name) != "running":
            return  # it was paused meanwhile
        key = run_of(state, name)
        if not key:  # somebody else put it to work: it is begun anew
            self._change(lambda held: changes.agent_of(held, name).update(status="idle"))
            return
        entries = sent_in(state, key)
        version, trouble = layout.plain(agent.target_version), agent.error
        root, id = Path(self._spec.root), self._spec.cycle
        found = read_progress.read(layout.read(progress / read_progress.BOARD))
        timeout = self._spec.timeout
        prompt = partial(
            prompts.prompt, copy.deepcopy(state), id, name, root, version, entries, trouble, found
        )
        if agent.raw.get(FINALIZING):
            timeout = min(timeout, FINALIZE_TIMEOUT)
            text = prompts.finalize(state, id, name, root, version, entries, timeout)
        else:
            text = prompt()
        if entries:
            message = prompts.feedback_message(state, name, entries, progress)
            path = progress / "coordination" / "messages" / f"{key}.md"
            with contextlib.suppress(FileExistsError):
                atomic.create(path, message.encode("utf-8", "replace"), sync=False)
        work = Work(name, key, text, progress, timeout)
        self._session.say(f"{name}: run {key}")
        mailbox = self._mailboxes[name] = Mailbox()
        run: AgentRun | TaskRuns
        run = AgentRun(self._spec, work, self._why_stop, mailbox, self._session.say)
        if tasks := tasks_apart(state) if name == "cd" else {}:
            of_task = partial(prompts.task, copy.deepcopy(state), id, root, version)
            run = self._tasks = TaskRuns(
                self._spec, work, tasks, self._why_stop, mailbox, self._session.say, of_task, prompt
            )
        thread = threading.Thread(target=self._thread, args=(name, run), name=f"run-{name}")
        self._threads[name] = thread
        thread.start()

    def _hand_over(self, name: str) -> None:
        """Have feedback to an agent at work delivered, and note what it took."""
        mailbox, key = self._mailboxes[name], run_of(self._state, name)
        if new := mailbox.new(unsent(self._state, name)):
            mailbox.put(new, prompts.feedback_message(self._state, name, new, self._store.progress))
        if ids := mailbox.delivered():
            self._change(lambda held: conduct_agent.sent(held, self._clock(), name, key, ids))
        if name == "cd" and self._tasks and (moved := self._tasks.news()):
            self._change(lambda held: results.moved_tasks(held, self._clock(), moved))

    def _begin_run(self, state: Object, name: str) -> None:
        if state.get("status") == "running" and status(state, name) != "running":
            begin_run(state, self._clock(), name, self._spec.jobs)

    def _thread(self, name: str, run: AgentRun | TaskRuns) -> None:
        self._ended[name] = run.run()
        self._session.signals.wake()

    def _why_stop(self) -> str:
        return self._halt or (_STOPPED if self._session.stopping else "")

    def _collect(self) -> None:
        """Take up what ended."""
        for name in [n for n, t in self._threads.items() if n in self._ended or not t.is_alive()]:
            self._threads.pop(name).join()
            self._read_state()
            self._hand_over(name)
            ended = self._ended.pop(name, None)
            self._guard_outputs(name)
            if ended and not ended.stopped:
                self._conclude(name, ended)
            elif ended and ended.capped:
                self._capped = f"{name}: {ended.capped}"

    def _guard_outputs(self, name: str) -> None:
        """A run ended: what it changed that is not its agent's is put back, and said."""
        others = [each for each in AGENTS if each != name and each not in self._threads]
        found = self._outputs.put_back(name, others)
        self._outputs.remember([name, *{each.owner for each in found if not each.is_back}])
        if not found:
            return
        run = run_of(self._read_state(), name)
        self._change(lambda state: results.record(state, self._clock(), run, name, found))
        for each in found:
            done = "put back" if each.is_back else "no copy of the old content exists"
            self._session.say(f"{name} changed {each.name}, which only {each.owner} writes: {done}")

    def _conclude(self, name: str, ended: Ended) -> None:
        agent = changes.agent_of(self._read_state(), name)
        found = read_facts(self._store.progress, name, schema.moment(agent.get("started_at")))
        complaints = self._watch_logs()

        def change(state: Object) -> None:
            now, own = self._clock(), changes.agent_of(state, name)
            for each in complaints:
                _complain(state, now, name, each)
            if own.get("run") != ended.key or own.get("status") != "running":
                return  # a person wanted otherwise meanwhile
            result = parse_result(ended.output)
            if ended.cancelled:
                results.cancelled_run(state, now, name, ended.why)
            elif result is None:
                why, late = ended.why or "the run ended without PHASE_RESULT", ended.late
                results.failed_run(state, now, name, why, self._spec.attempts, late=late)
            elif ended.why and not ended.late:
                results.failed_run(state, now, name, ended.why, self._spec.attempts)
            else:
                results.ended_run(state, now, name, result, found, self._spec.attempts)

        self._change(change)
        self._session.say(
            f"{name}: run {ended.key} has finished" + (f", {ended.why}" * bool(ended.why))
        )

    def _watch_logs(self) -> list[str]:
        """Which logs lost something since the last look."""
        path = self._session.where.folder / f"logs-{self._spec.cycle}.json"
        known: layout.Memory = {}
        with contextlib.suppress(Unreadable, ValueError, TypeError):
            held = json.loads(read_bounded(path, 1 << 20))
            known = {str(name): (int(size), str(digest)) for name, (size, digest) in held.items()}
        found, complaints = layout.watch_logs(self._store.progress, known)
        if found != known:
            atomic.replace(path, json.dumps(found).encode(), sync=False, private=True)
        return complaints

    def _prepare(self, state: Object) -> None:
        """An iteration begins: copy every document, raise the version of those that stay."""
        version, progress = next_version(state), self._store.progress
        stay = []
        for name in AGENTS:
            own = changes.agent_state(state, name).version
            layout.archive(progress, name, own)
            if status(state, name) == "completed":
                layout.stamp(progress, name, version)
                stay.append(name)
        self._change(lambda held: prepared(held, self._clock(), version, tuple(stay)))

    # waiting and ending

    def _wait(self, todo: Todo) -> int | None:
        if self._threads:  # who is at work ends its run
            self._session.signals.wait(_TICK)
            return None
        if todo.agents:
            self._work(todo.agents)  # taken over from an orchestrator that died
            return None
        if self._spec.leave:
            self._end(Phase.GAVE_UP, todo.note)
            return ASKS
        if self._session.state.note != todo.note or self._session.state.phase is not Phase.WAITING:
            self._session.update(phase=Phase.WAITING, note=todo.note)
            self._session.say(todo.note)
        self._session.signals.wait(_TICK)
        return None

    def _over(self, state: Object) -> int:
        self._stop_programs("the cycle is over")
        at_work = [name for name in AGENTS if status(state, name) == "running"]
        if at_work:
            self._change(lambda held: self._laid_down(held, at_work))
        said = schema.text(state.get("status"))
        self._end(Phase.DONE, said)
        return COMPLETED if said == "completed" else FAILED

    def _laid_down(self, state: Object, agents: list[str]) -> None:
        for name in agents:
            changes.agent_of(state, name)["status"] = "idle"
            results.lay_down_tasks(state)
            note(state, self._clock(), "orchestrator", f"{name} was stopped: the cycle is over")

    def _stop_programs(self, why: str) -> None:
        self._halt = why
        for thread in self._threads.values():
            thread.join()

    def _stumble(self, error: Exception) -> int | None:
        self._stumbles += 1
        self._state = {}
        known = isinstance(error, Refused | OSError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        self._session.say(message)
        if self._stumbles >= _STUMBLES:
            self._stop_programs(_STOPPED)
            self._end(Phase.STOPPED, message)
            return GAVE_UP
        self._session.signals.wait(min(10.0, _TICK * 2**self._stumbles))
        return None

    def _end(self, phase: Phase, message: str) -> None:
        self._session.say(f"the orchestrator exits: {message}")
        self._session.finish(phase, message)


def _complain(state: Object, now: datetime, phase: str, message: str) -> None:
    """A log that should only grow lost something: that is said where errors are."""
    changes.add_error(state, now, phase, message)
    note(state, now, "orchestrator", message)
