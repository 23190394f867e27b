"""Answering messages and tasks by running a program: ``acp agent --on-message``.

``choose`` takes the program from ``--on-message`` and the options beside it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import shlex
import shutil
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from acp_core.agents import budgets, limits, presets, session, shim, streams
from acp_core.agents.budgets import Cap, Spent, Use
from acp_core.agents.limits import LOOK
from acp_core.agents.live import binding
from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.binding import offered
from acp_core.agents.live.turn import LiveCommand, LiveTurn, TurnScope
from acp_core.agents.loop_directory import LoopDirectory, LoopRunning
from acp_core.agents.output import Output
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.agents.processes import GRACE, myself
from acp_core.agents.program import (
    ERR,
    OUT,
    Attempt,
    Command,
    Ended,
    Program,
    SpawnError,
    locate,
    run_shielded,
)
from acp_core.agents.state import Run
from acp_core.files import atomic
from acp_core.files.decode import text
from acp_core.model.clock import utc_now
from acp_core.model.errors import InvalidInput
from acp_core.model.text import clean_name
from acp_core.person import settings
from acp_core.person.permissions import Policy
from acp_core.protocols.wire import write
from acp_core.protocols.wire.conduct import answer_jobs, peers
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.answer_jobs import Job, Material, Outcome
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.schema.basics import (
    MESSAGE,
    REPLY,
    TERMINAL,
    Code,
    Json,
    TaskState,
    WireError,
)
from acp_core.protocols.wire.schema.bodies import Draft, data_part, text_part
from acp_core.protocols.wire.write import Tx

logger = logging.getLogger("acp.wire")

FOLDER, SESSIONS = "answers", "sessions"

TRIES = 3  # runs of one job of whose end nothing is known

FOLDERS = 30  # of runs that are over, kept to look into

_NOT_LIVE = "no live session: %s; the program is started for each answer"

_UNBOUND = (
    "no live session is possible now, and the policy 'none' cannot bind the program without one "
    "(let it answer anyway with --once, or choose another policy with --permissions)"
)

_PATIENCE = 5.0  # seconds until what could not be done is tried again


@contextlib.asynccontextmanager
async def answering(agent: Agent, setup: Setup) -> AsyncIterator[None]:
    """Answer as long as the block lasts; at its end all programs are ended."""
    service = Answering(agent, setup, agent.store.path.parent / FOLDER)
    await service.prepare()
    work = asyncio.create_task(service.run())
    try:
        yield
    finally:
        await service.stop()
        await asyncio.gather(work, return_exceptions=True)


class Answering:
    """Answers what arrives.

    Args:
        folder: where each run has a folder of its own; need not exist.
    """

    def __init__(self, agent: Agent, setup: Setup, folder: Path) -> None:
        self._agent = agent
        self._setup = setup
        self._folder = folder
        self._program = setup.program
        self._live = self._program.live
        config, place = agent.config, folder.parent
        self._costs = Costs(str(place), config.name, setup.preset)
        self._sessions = Sessions(
            place / SESSIONS, str(place), config.name, self._program, setup.permissions
        )
        self._begun: list[Job] = []
        self._running: dict[int, asyncio.Task[None]] = {}
        self._working: dict[str, int] = {}  # the job that works on a task now
        self._why: dict[int, str] = {}  # why a job's program has to end
        self._stir = asyncio.Event()
        self._stopping = False

    async def prepare(self) -> None:
        """Make ready, and find what was begun before."""
        if self._program.not_live and not self._setup.once:
            logger.warning(_NOT_LIVE, self._program.not_live)
        await self._agent.store.write(answer_jobs.prepare)
        self._begun = await self._agent.store.read(answer_jobs.unfinished)

    async def run(self) -> None:
        """Answer until it is stopped."""
        listening = asyncio.create_task(self._listen())
        try:
            while not self._stopping:
                self._stir.clear()
                try:
                    more = await self._read_on()
                except sqlite3.Error as error:
                    logger.warning("messages cannot be answered now: %s", error)
                    more = True
                    await asyncio.sleep(_PATIENCE)
                if not more:
                    await self._stir.wait()
        finally:
            listening.cancel()

    async def stop(self) -> None:
        """End the programs that run; their jobs are begun again next time."""
        self._stopping = True
        self._stir.set()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._sessions.close()

    async def _listen(self) -> None:
        """Stir whenever the log has grown."""
        hub = self._agent.hub
        place = hub.last
        while not hub.closed:
            if await hub.grown(place, 60.0):
                place = hub.last
                self._stir.set()

    async def _read_on(self) -> bool:
        """Read on, begin what can be begun; says whether there is more to read."""
        store = self._agent.store
        gathered = await store.write(answer_jobs.gather)
        for task_id in gathered.canceled & self._working.keys():
            self._why[self._working[task_id]] = "the task was canceled"
        for late in await store.read(partial(answer_jobs.too_many, bound=self._setup.waiting)):
            material = await store.read(self._material(late))
            await self._close(
                late,
                material,
                answer_jobs.failed_outcome("too many messages are waiting for this agent"),
            )
        while len(self._running) < self._setup.at_once and not self._stopping:
            job = await self._next()
            if job is None:
                break
            if job.task_id:
                self._working[job.task_id] = job.id
            work = self._running[job.id] = asyncio.create_task(self._safely(job))
            work.add_done_callback(partial(self._ended, job))
        return gathered.more

    async def _next(self) -> Job | None:
        """The job that is to be carried out next; those that were begun before come first."""
        if self._begun:
            return self._begun.pop(0)
        ready = await self._agent.store.read(partial(answer_jobs.ready, limit=1))
        if not ready:
            return None
        await self._agent.store.write(
            partial(answer_jobs.enter, job=ready[0], state=answer_jobs.RUNNING)
        )
        return ready[0]

    def _ended(self, job: Job, work: asyncio.Task[None]) -> None:
        self._running.pop(job.id, None)
        self._why.pop(job.id, None)
        if job.task_id:
            self._working.pop(job.task_id, None)
        self._stir.set()

    async def _safely(self, job: Job) -> None:
        """Carry out a job; a fault of ours is told as a failure, and harms no other."""
        try:
            await self._carry_out(job)
        except Exception as error:
            logger.exception("job %d failed", job.id)
            material = await self._agent.store.read(self._material(job))
            why = answer_jobs.failed_outcome(f"{type(error).__name__} inside the agent")
            await self._close(job, material, why)

    def _material(self, job: Job) -> Callable[[sqlite3.Connection], Material]:
        return partial(answer_jobs.material, job=job, own=self._agent.config.name)

    async def _carry_out(self, job: Job) -> None:
        store = self._agent.store
        material = await store.read(self._material(job))
        gone = job.task_id is None and material.message is None
        if gone or (job.task_id and is_over(material.task)):
            await store.write(partial(answer_jobs.enter, job=job, state=answer_jobs.OVER))
            return
        if job.task_id:
            await report_begun(self._agent, job.task_id)
        told = await self._run(job, material)
        if told is None:  # the agent ends: once more, the next time it runs
            again = job._replace(attempt=job.attempt + 1)
            await store.write(partial(answer_jobs.enter, job=again, state=answer_jobs.WAITING))
            return
        await self._close(job, material, told)
        if self._live and not self._stopping:
            asks = told.status is TaskState.INPUT_REQUIRED
            goes_on = asks if job.task_id else job.line.startswith(answer_jobs.CONTEXT)
            await self._sessions.over(job, material, goes_on=goes_on)

    async def _run(self, job: Job, material: Material) -> Outcome | None:
        """Run the program for a job; None where it was ended because the agent ends."""
        crashes = 0
        while True:
            folder = self._folder / job.place
            try:
                is_live = self._is_live(job, material, folder, crashes)
                begun = (folder / OUT).exists()  # it is seen to its end
                if not begun and (over := await asyncio.to_thread(self._costs.over)):
                    return answer_jobs.failed_outcome(over)
                ended = await self._measured_run(job, material, folder, is_live)
            except SpawnError as error:
                return answer_jobs.failed_outcome(str(error))
            except OSError as error:
                return answer_jobs.failed_outcome(
                    f"the agent cannot run it: {error.strerror or error}"
                )
            if ended.stopped and self._stopping:
                return None
            if not self._is_tried_again(folder, ended, is_live) or job.attempt >= TRIES:
                return answer_jobs.judge_run(folder, ended, self._setup.preset, live=is_live)
            crashes += is_live
            job = job._replace(attempt=job.attempt + 1)
            await self._agent.store.write(
                partial(answer_jobs.enter, job=job, state=answer_jobs.RUNNING)
            )

    async def _measured_run(
        self, job: Job, material: Material, folder: Path, is_live: bool
    ) -> Ended:
        """Run the program for one attempt, as long as the day's budget lasts, and count its cost."""
        watch = asyncio.create_task(self._watch(job, folder, is_live))
        try:
            ended = await self._run_once(job, material, folder, is_live)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        await asyncio.to_thread(self._costs.count, folder, live=is_live)
        return ended

    async def _watch(self, job: Job, folder: Path, is_live: bool) -> None:
        """End the program of a job when the day's budget is used up."""
        if not self._costs.is_capped:
            return
        meter, over = self._costs.meter(folder, live=is_live), ""
        while not over:
            await asyncio.sleep(LOOK)
            over = await asyncio.to_thread(self._costs.over, folder, meter)
        self._why[job.id] = over

    def _is_live(self, job: Job, material: Material, folder: Path, crashes: int) -> bool:
        """Whether an attempt is made in a live session; one that was begun stays what it is."""
        if (folder / shim.LOCK).exists():
            return False
        wanted = self._live and crashes < live_turns.CRASHES
        return wanted or self._sessions.knows(job, material, folder)

    async def _run_once(self, job: Job, material: Material, folder: Path, is_live: bool) -> Ended:
        """Run the program for one attempt."""
        told, prompt = self._tell(folder, material)
        seconds, why = self._setup.seconds, partial(self._reason, job)
        if is_live:
            return await self._sessions.run(job, material, folder, prompt, seconds, why)
        is_begun = (folder / shim.LOCK).exists()
        if self._program.live and self._setup.permissions == Policy.NONE and not is_begun:
            raise SpawnError(_UNBOUND)
        command = self._command(folder, told, prompt)
        return await run_shielded(folder, command, seconds, self._setup.grace, why)

    def _is_tried_again(self, folder: Path, ended: Ended, is_live: bool) -> bool:
        """Whether an attempt says nothing of its job: nobody saw its end, or its session crashed."""
        if ended.stopped:
            return False
        if not is_live:
            return ended.exit.code is None and ended.exit.signal is None
        if why := live_turns.unusable(folder / OUT):
            logger.warning(_NOT_LIVE, why)
            self._live = live_turns.only_now(why)
            return True
        return live_turns.crashed(folder / OUT)

    def _reason(self, job: Job) -> str:
        return "the agent ends" if self._stopping else self._why.get(job.id, "")

    def _tell(self, folder: Path, material: Material) -> tuple[str, Path]:
        """What the program is told, and the file that holds it."""
        _make(folder)
        config = self._agent.config
        told = answer_jobs.prompt_of(material, self._setup.preset, config.name, config.description)
        content = {
            "message": material.message, "task": material.task, "history": material.history
        }  # fmt: skip
        prompt = _put(folder / "prompt.md", told.encode(errors="backslashreplace"))
        _put(folder / "message.json", answer_jobs.as_json(content))
        return told, prompt

    def _command(self, folder: Path, told: str, prompt: Path) -> Command:
        drafts = folder / "drafts"
        _make(drafts)
        env = answer_jobs.environment(str(folder))
        return self._program.command(told, str(prompt), str(drafts), env)

    async def _close(self, job: Job, material: Material, told: Outcome) -> None:
        """Tell what came of a job, as often as needed; then it is over."""
        while True:
            try:
                await report_outcome(self._agent, job, material, told)
                break
            except WireError as refusal:
                if self._stopping:
                    return  # it stays as it is: what the program said is told the next time
                logger.warning("an answer cannot be sent yet: %s", refusal.message)
                await asyncio.sleep(_PATIENCE)
        await self._agent.store.write(partial(answer_jobs.enter, job=job, state=answer_jobs.OVER))
        await asyncio.to_thread(self._tidy)

    def _tidy(self) -> None:
        with contextlib.suppress(OSError):
            running = {f"{id:06}" for id in self._running}
            old = sorted(name for name in os.listdir(self._folder) if name[:6] not in running)
            for name in old[:-FOLDERS]:
                shutil.rmtree(self._folder / name, ignore_errors=True)


def _make(folder: Path) -> None:
    """Make the folder of a run; its owner alone can look into it."""
    atomic.private_folder(folder)


def _put(path: Path, data: bytes) -> Path:
    atomic.replace(path, data, sync=False, private=True)
    return path


_OVER = {state.value for state in TERMINAL}


def is_over(task: Json | None) -> bool:
    """Whether nothing can follow in a task; also where it is kept no longer."""
    return task is None or task["status"] in _OVER


async def report_begun(agent: Agent, task_id: str) -> None:
    """Say of a task that it is worked on."""
    await _change(agent, task_id, TaskState.WORKING, None, None)


async def report_outcome(agent: Agent, job: Job, material: Material, told: Outcome) -> None:
    """Report an outcome. Doing it again, after a crash in between, changes nothing.

    A message gets a reply. A task gets its artifact, its error or its question, and its message
    a reply as well where it waits for one.

    Raises:
        Refusal: the queue of the peer is full.
    """
    message = material.message or {}
    waits = text(message.get("correlation_id")) is not None
    if material.message is not None and (job.task_id is None or waits):
        await _send(agent, job, material, told, REPLY)
    if job.task_id is None:
        return
    asks = told.status is TaskState.INPUT_REQUIRED
    if asks and not waits and told.parts:
        await _send(agent, job, material, told, MESSAGE)
    artifact = {"parts": told.parts} if told.parts and not asks else None
    if told.status is TaskState.FAILED:
        artifact = None
    await _change(agent, job.task_id, told.status, artifact, told.error or None)


async def _change(
    agent: Agent, id: str, status: TaskState, artifact: Json | None, error: str | None
) -> None:
    def work(tx: Tx) -> str | None:
        task = store.find_task(tx.db, id)
        if task is None or is_over(task):  # canceled meanwhile, or told before a crash
            return None
        if write.update_task(tx, task, status, artifact, error) and write.tell_task(tx, task):
            return str(task["peer_id"])
        return None

    peer_id = await agent.store.write(work)
    if peer_id:
        agent.peers.queued(peer_id)


async def _send(agent: Agent, job: Job, material: Material, told: Outcome, type: str) -> None:
    parts = told.parts
    if told.status is TaskState.FAILED:
        failure: dict[str, Any] = {"status": "failed", "error": told.error}
        parts = [*parts, text_part(f"failed: {told.error}"), data_part(failure)]
    if not parts and type == REPLY and not (material.message or {}).get("correlation_id"):
        return  # nothing was said, and nobody waits
    draft = _draft(agent, job, material, parts or [text_part("")], type)
    try:
        await peers.answer(agent, draft, material.peer_id, type)
    except WireError as refusal:
        if refusal.code is Code.TOO_LARGE:
            short = text_part(f"the answer is too large to be sent: {refusal.message}")
            draft = _draft(agent, job, material, [short], type)
            await peers.answer(agent, draft, material.peer_id, type)
        elif refusal.code is not Code.NOT_FOUND:  # a peer that was forgotten is told nothing
            raise


def _draft(agent: Agent, job: Job, material: Material, parts: list[Json], type: str) -> Draft:
    message = material.message or {}
    carried = {}
    if type == REPLY:
        asked = text(message.get("correlation_id"))
        carried["correlation_id"] = str(message["message_id"]) if asked is None else asked
    context = message.get("context_id") or (material.task or {}).get("context_id")
    return Draft(
        parts=parts,
        role="agent",
        message_id=f"msg_{agent.instance_id[-8:]}_{job.id:08x}",
        task_id=job.task_id,
        context_id=text(context),
        peer_id=material.peer_id,
        sender=None,
        sync=False,
        timeout=0.0,
        create_task=False,
        carried=carried,
    )


WARM = 4
"""Sessions that stay between messages; the one that was used longest ago ends first."""

KEPT = 200
"""Sessions that can be resumed; what is known of older ones is removed."""

_STEP = 0.05  # seconds between two looks at a running turn

_TRIES = 1_000  # more attempts at one job than there ever are


@dataclass(slots=True)
class _Session:
    """A session of this process: its place, which is held; how many work in it, and since when none does."""

    where: LoopDirectory
    held: contextlib.ExitStack
    busy: int = 0
    used: float = 0.0


class Sessions:
    """The live sessions of an agent that answers.

    Args:
        folder: where each has a folder of its own; need not exist.
        key: of the agent, as a collaboration; ``name`` the agent's.
        program: answers.
        permissions: the policy for what it asks.
    """

    def __init__(
        self, folder: Path, key: str, name: str, program: Program, permissions: str
    ) -> None:
        self._folder = folder
        self._key, self._name = key, name
        self._program = program
        self._permissions = permissions
        self._sessions: dict[str, _Session] = {}
        self._ending: dict[str, asyncio.Future[None]] = {}

    def knows(self, job: Job, material: Material, folder: Path) -> bool:
        """Whether this attempt was begun in a live session: it is seen to its end there.

        Args:
            job: the attempt; ``material`` what it is about; ``folder`` its own.
        """
        if live_turns.exit_of(folder / OUT) is not None:
            return True
        return live_turns.begun(self._place(_name(job, material)), _number(job)) is not None

    async def run(
        self,
        job: Job,
        material: Material,
        folder: Path,
        prompt: Path,
        seconds: float,
        why: Callable[[], str],
    ) -> Ended:
        """Have a job answered in its session; a turn that works there already is watched instead.

        Args:
            job: the attempt; ``material`` what it is about; ``folder`` its own.
            prompt: the file of what the program is told.
            seconds: after which it is ended; ``why`` says why it should be ended now, or "".

        Raises:
            SpawnError: no session can be held.
            OSError: a file cannot be written.
        """
        if (before := live_turns.exit_of(folder / OUT)) is not None:
            return Ended(before, "")
        began = time.monotonic()
        session = await self._hold(_name(job, material))
        session.busy += 1
        try:
            begin = partial(self._begin, session.where, job, material, folder, prompt)
            attempt = Attempt(await asyncio.to_thread(begin), GRACE)
            while (ended := await asyncio.to_thread(attempt.poll)) is None:
                late = time.monotonic() - began > seconds
                reason = why() or (f"not through after {seconds:g} s" if late else "")
                await asyncio.to_thread(attempt.stop, reason)
                await asyncio.sleep(_STEP)
            return Ended(ended, attempt.stopped)
        finally:
            session.busy -= 1
            session.used = time.monotonic()

    async def over(self, job: Job, material: Material, *, goes_on: bool) -> None:
        """A job was answered: end its session where nothing follows in it, and what is too much.

        Args:
            job: what was answered; ``material`` what it was about.
            goes_on: more may follow for which the session's memory is of use.
        """
        name = _name(job, material)
        idle = [each for each in self._sessions if not self._sessions[each].busy]
        idle.sort(key=lambda each: self._sessions[each].used)
        ending = set(idle[:-WARM]) | ({name} & set(idle) if not goes_on else set())
        await asyncio.gather(*map(self._end, ending))
        await asyncio.to_thread(self._tidy)

    async def close(self) -> None:
        """End all sessions, with everything that their programs started."""
        await asyncio.gather(*map(self._end, list(self._sessions)), return_exceptions=True)

    def _place(self, name: str) -> LoopDirectory:
        return LoopDirectory(
            self._folder / hashlib.sha256(name.encode(errors="replace")).hexdigest()[:32]
        )

    async def _hold(self, name: str) -> _Session:
        """The session of this name: as long as its place is held, it stays between messages.

        Raises:
            SpawnError: another process holds it.
        """
        if name in self._ending:
            await asyncio.wait({self._ending[name]})
        if name not in self._sessions:
            where, held = self._place(name), contextlib.ExitStack()
            try:
                await asyncio.to_thread(atomic.private_folder, self._folder)
                await asyncio.to_thread(held.enter_context, where.locked())
            except LoopRunning:
                raise SpawnError("another process holds this live session") from None
            self._sessions[name] = _Session(where, held)
        return self._sessions[name]

    def _begin(
        self, where: LoopDirectory, job: Job, material: Material, folder: Path, prompt: Path
    ) -> LiveTurn:
        journal, number = folder / OUT, _number(job)
        runner = live_turns.begun(where, number)
        if runner is not None:
            return live_turns.adopt(where, runner, journal)
        return live_turns.start(where, self._command(where, material, prompt), number, journal)

    def _command(self, where: LoopDirectory, material: Material, prompt: Path) -> LiveCommand:
        sender = clean_name(material.sender, 64)
        scope = TurnScope(
            f"answer {sender}" if sender else "answer a message",
            folders=(self._program.workdir,),
            permissions=self._permissions,
        )
        made = binding.command(self._program, where, self._name, str(prompt), {}, scope=scope)
        return replace(made, order=replace(made.order, folder=self._key))

    async def _end(self, name: str) -> None:
        session = self._sessions.pop(name)
        ending = asyncio.ensure_future(asyncio.to_thread(live_turns.stop, session.where))
        self._ending[name] = ending
        try:
            await ending
        finally:
            session.held.close()
            del self._ending[name]

    def _tidy(self) -> None:
        """Remove what is known of sessions that nobody has used for long."""
        held = {each.where.folder.name for each in self._sessions.values()}
        with contextlib.suppress(OSError):
            found = [each for each in os.scandir(self._folder) if each.name not in held]
            found.sort(key=lambda each: each.stat().st_mtime)
            for each in found[: max(0, len(found) - KEPT)]:
                shutil.rmtree(each.path, ignore_errors=True)


def _name(job: Job, material: Material) -> str:
    """What names a session: the conversation or task, and who speaks in it."""
    return f"{job.line}\0{material.peer_id or material.sender}"


def _number(job: Job) -> int:
    """A number that no other attempt has, at this job or another one."""
    return job.id * _TRIES + job.attempt % _TRIES


USED_UP = "the budget of this agent for today is used up"

_COUNTED = "counted"  # the file in the folder of an attempt that says that its cost was counted

_DAY = "day"


class Meter:
    """Measures one attempt by what it has printed so far.

    Args:
        folder: of the attempt; need not hold anything yet.
        preset: of its program.
        live: it is a turn of a live session.
    """

    def __init__(self, folder: Path, preset: Preset, *, live: bool) -> None:
        stream = streams.LIVE if live else preset.stream
        self._output = Output(folder / OUT, folder / ERR, stream)
        self._prices = (preset.price_in, preset.price_out)
        self._run = Run(0, myself(), utc_now(), live=live)

    def measure(self) -> Run:
        """What it took so far."""
        self._output.read(time.time())
        return self._measured()

    def end(self) -> Run:
        """What it took in all, once it has ended."""
        self._output.end(time.time())
        return self._measured()

    def _measured(self) -> Run:
        return session.measured(self._run, self._output, self._prices, utc_now())


class Costs:
    """What the answers of one agent cost; used from any thread.

    Args:
        key: of the agent, as a collaboration; ``name`` the agent's.
        preset: of the program that answers.

    Raises:
        Refused: the budgets of the settings are not what they should be.
    """

    def __init__(self, key: str, name: str, preset: Preset) -> None:
        self._key, self._name, self._preset = key, name, preset
        self._caps = budgets.in_force(key, name, "", utc_now)
        self._lock = threading.Lock()
        self._running: dict[Path, Spent] = {}  # what attempts took that have not ended
        self._said: set[tuple[str, float, bool]] = set()

    @property
    def is_capped(self) -> bool:
        """Whether the day has a budget at all."""
        return bool(self._of_day())

    def meter(self, folder: Path, *, live: bool) -> Meter:
        """What measures the attempt in ``folder``."""
        return Meter(folder, self._preset, live=live)

    def over(self, folder: Path | None = None, meter: Meter | None = None) -> str:
        """Why no program may work on an answer now, for the one who asked; "" where one may.

        Args:
            folder: of an attempt that is at work, which ``meter`` measures.
            meter: of this attempt.
        """
        wanted = self._of_day()
        if not wanted:
            return ""
        with self._lock:
            if folder is not None and meter is not None:
                self._running[folder] = limits.spent_by_run(meter.measure())
            own = sum(self._running.values(), Spent())
            found = budgets.uses(wanted, {_DAY: limits.spent_today(utc_now(), own)})
            for each in found:
                self._say(each)
        return USED_UP if any(each.is_over for each in found) else ""

    def count(self, folder: Path, *, live: bool) -> None:
        """Count an attempt that has ended; once, also where an agent before this one saw its end.

        Args:
            folder: of the attempt.
            live: it was a turn of a live session.
        """
        with self._lock:
            self._running.pop(folder, None)
            try:  # first the mark: what a kill in between loses is not counted twice
                atomic.create(folder / _COUNTED, b"", sync=False, private=True)
            except OSError:  # it is there already, or nothing can be written
                return
            run = self.meter(folder, live=live).end()
            budgets.note_run(run, self._key, self._name, utc_now())

    def _of_day(self) -> list[Cap]:
        return [each for each in self._caps() if each.scope == _DAY]

    def _say(self, use: Use) -> None:
        """Tell the owner, once for each budget, that it is nearly or all used up."""
        what = (use.unit, use.amount, use.is_over)
        if use.is_near and what not in self._said:
            self._said.add(what)
            logger.warning("%s", use.sentence)


AT_ONCE = 4

SECONDS = 1800.0

WAITING = 1000


class SetupError(InvalidInput):
    """It cannot be set up so; the message is one line."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How messages are answered.

    Attributes:
        preset: how the program is run; its ``program`` is an absolute path.
        workdir: the folder in which it runs, absolute.
        model: chosen for it; "" for its own choice.
        at_once: how many run at the same time.
        seconds: after which one is ended.
        waiting: how many may wait for their turn; what comes beyond is refused.
        grace: seconds between asking a program to end and ending it.
        permissions: the policy for what a live session asks; what strangers write makes it ask.
        once: start the program for each answer, even if it can hold a live session.
    """

    preset: Preset
    workdir: str
    model: str = ""
    at_once: int = AT_ONCE
    seconds: float = SECONDS
    waiting: int = WAITING
    grace: float = 3.0
    permissions: str = Policy.NONE.value
    once: bool = False

    @property
    def program(self) -> Program:
        """The program that answers, in live sessions where it can."""
        made = Program(self.preset, self.workdir, self.workdir, self.preset.program, self.model)
        return offered(made, once=self.once)


def choose(words: str, workdir: str | None = None, model: str = "") -> Setup:
    """The set-up for a preset's name (``claude``), or for a command with its words.

    A command is taken apart into words here, once; no shell ever sees it, or a message.

    Raises:
        SetupError: it is neither, its program is not there, or there is no such folder.
    """
    place = os.path.abspath(os.path.expanduser(workdir or "."))
    if not os.path.isdir(place):
        raise SetupError(f"--workdir: no folder {place}")
    try:
        known = presets.load(settings.load().presets)
        given = shlex.split(words)
        preset = known.get(given[0]) if len(given) == 1 else None
        if preset is None or preset.name == ANY or not preset.program:
            preset = presets.command_here(given)
        program = locate(preset, place)
    except ValueError as error:
        raise SetupError(f"--on-message: {error}") from None
    except (PresetError, SpawnError, settings.SettingsError) as error:
        raise SetupError(f"--on-message: {error}") from None
    if model and not preset.model_args:
        raise SetupError(f"--model: {preset.title or preset.program} takes no model")
    return Setup(replace(preset, program=program), place, model)
