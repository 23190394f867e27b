"""The agent's answering: takes jobs in turn, runs the program, tells what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from acp_core.agents import detached_run, shim
from acp_core.agents.live import turn as live_turns
from acp_core.agents.spawn import Command, SpawnError
from acp_core.agents.spending import LOOK
from acp_core.files import atomic, modes
from acp_core.person.permissions import Policy
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.answering import jobs, outcome, prompts, reporting
from acp_core.protocols.wire.conduct.answering.costs import Costs
from acp_core.protocols.wire.conduct.answering.jobs import Job, Material
from acp_core.protocols.wire.conduct.answering.outcome import Outcome
from acp_core.protocols.wire.conduct.answering.sessions import Sessions
from acp_core.protocols.wire.conduct.answering.setup import Setup
from acp_core.protocols.wire.schema import Refusal
from acp_core.protocols.wire.state import TaskState

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
        await self._agent.store.write(jobs.prepare)
        self._begun = await self._agent.store.read(jobs.unfinished)

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
        gathered = await store.write(jobs.gather)
        for task_id in gathered.canceled & self._working.keys():
            self._why[self._working[task_id]] = "the task was canceled"
        for late in await store.read(partial(jobs.too_many, bound=self._setup.waiting)):
            material = await store.read(self._material(late))
            await self._close(
                late, material, outcome.failure("too many messages are waiting for this agent")
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
        ready = await self._agent.store.read(partial(jobs.ready, limit=1))
        if not ready:
            return None
        await self._agent.store.write(partial(jobs.enter, job=ready[0], state=jobs.RUNNING))
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
            why = outcome.failure(f"{type(error).__name__} inside the agent")
            await self._close(job, material, why)

    def _material(self, job: Job) -> Callable[[sqlite3.Connection], Material]:
        return partial(jobs.material, job=job, own=self._agent.config.name)

    async def _carry_out(self, job: Job) -> None:
        store = self._agent.store
        material = await store.read(self._material(job))
        gone = job.task_id is None and material.message is None
        if gone or (job.task_id and reporting.is_over(material.task)):
            await store.write(partial(jobs.enter, job=job, state=jobs.OVER))
            return
        if job.task_id:
            await reporting.begin(self._agent, job.task_id)
        told = await self._run(job, material)
        if told is None:  # the agent ends: once more, the next time it runs
            again = job._replace(attempt=job.attempt + 1)
            await store.write(partial(jobs.enter, job=again, state=jobs.WAITING))
            return
        await self._close(job, material, told)
        if self._live and not self._stopping:
            asks = told.status is TaskState.INPUT_REQUIRED
            goes_on = asks if job.task_id else job.line.startswith(jobs.CONTEXT)
            await self._sessions.over(job, material, goes_on=goes_on)

    async def _run(self, job: Job, material: Material) -> Outcome | None:
        """Run the program for a job; None where it was ended because the agent ends."""
        crashes = 0
        while True:
            folder = self._folder / job.place
            try:
                is_live = self._is_live(job, material, folder, crashes)
                begun = (folder / detached_run.OUT).exists()  # it is seen to its end
                if not begun and (over := await asyncio.to_thread(self._costs.over)):
                    return outcome.failure(over)
                ended = await self._measured_run(job, material, folder, is_live)
            except SpawnError as error:
                return outcome.failure(str(error))
            except OSError as error:
                return outcome.failure(f"the agent cannot run it: {error.strerror or error}")
            if ended.stopped and self._stopping:
                return None
            if not self._is_tried_again(folder, ended, is_live) or job.attempt >= TRIES:
                return outcome.judge(folder, ended, self._setup.preset, live=is_live)
            crashes += is_live
            job = job._replace(attempt=job.attempt + 1)
            await self._agent.store.write(partial(jobs.enter, job=job, state=jobs.RUNNING))

    async def _measured_run(
        self, job: Job, material: Material, folder: Path, is_live: bool
    ) -> detached_run.Ended:
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

    async def _run_once(
        self, job: Job, material: Material, folder: Path, is_live: bool
    ) -> detached_run.Ended:
        """Run the program for one attempt."""
        told, prompt = self._tell(folder, material)
        seconds, why = self._setup.seconds, partial(self._reason, job)
        if is_live:
            return await self._sessions.run(job, material, folder, prompt, seconds, why)
        is_begun = (folder / shim.LOCK).exists()
        if self._program.live and self._setup.permissions == Policy.NONE and not is_begun:
            raise SpawnError(_UNBOUND)
        command = self._command(folder, told, prompt)
        return await detached_run.run(folder, command, seconds, self._setup.grace, why)

    def _is_tried_again(self, folder: Path, ended: detached_run.Ended, is_live: bool) -> bool:
        """Whether an attempt says nothing of its job: nobody saw its end, or its session crashed."""
        if ended.stopped:
            return False
        if not is_live:
            return ended.exit.code is None and ended.exit.signal is None
        if why := live_turns.unusable(folder / detached_run.OUT):
            logger.warning(_NOT_LIVE, why)
            self._live = live_turns.only_now(why)
            return True
        return live_turns.crashed(folder / detached_run.OUT)

    def _reason(self, job: Job) -> str:
        return "the agent ends" if self._stopping else self._why.get(job.id, "")

    def _tell(self, folder: Path, material: Material) -> tuple[str, Path]:
        """What the program is told, and the file that holds it."""
        _make(folder)
        config = self._agent.config
        told = prompts.of(material, self._setup.preset, config.name, config.description)
        content = {
            "message": material.message, "task": material.task, "history": material.history
        }  # fmt: skip
        prompt = _put(folder / "prompt.md", told.encode(errors="backslashreplace"))
        _put(folder / "message.json", outcome.as_json(content))
        return told, prompt

    def _command(self, folder: Path, told: str, prompt: Path) -> Command:
        drafts = folder / "drafts"
        _make(drafts)
        env = prompts.environment(str(folder))
        return self._program.command(told, str(prompt), str(drafts), env)

    async def _close(self, job: Job, material: Material, told: Outcome) -> None:
        """Tell what came of a job, as often as needed; then it is over."""
        while True:
            try:
                await reporting.report(self._agent, job, material, told)
                break
            except Refusal as refusal:
                if self._stopping:
                    return  # it stays as it is: what the program said is told the next time
                logger.warning("an answer cannot be sent yet: %s", refusal.message)
                await asyncio.sleep(_PATIENCE)
        await self._agent.store.write(partial(jobs.enter, job=job, state=jobs.OVER))
        await asyncio.to_thread(self._tidy)

    def _tidy(self) -> None:
        with contextlib.suppress(OSError):
            running = {f"{id:06}" for id in self._running}
            old = sorted(name for name in os.listdir(self._folder) if name[:6] not in running)
            for name in old[:-FOLDERS]:
                shutil.rmtree(self._folder / name, ignore_errors=True)


def _make(folder: Path) -> None:
    """Make the folder of a run; its owner alone can look into it."""
    modes.private_folder(folder)


def _put(path: Path, data: bytes) -> Path:
    atomic.replace(path, data, sync=False, private=True)
    return path
