"""Answering in live sessions: one for each sender and conversation or task, never shared.

A session stays warm between the messages of its conversation, and is resumed where it had to end. A
message that belongs to none gets a session of its own. What a sender's words make the program ask
permission for is rejected, unless the owner chose another policy.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from acp_core.agents.detached_run import OUT, Ended
from acp_core.agents.ending import GRACE
from acp_core.agents.live import binding
from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.state import TurnScope
from acp_core.agents.live.turn import LiveCommand, LiveTurn
from acp_core.agents.loop_directory import LoopDirectory, LoopRunning
from acp_core.agents.program import Program
from acp_core.agents.spawn import Attempt, SpawnError
from acp_core.files import modes
from acp_core.model.text import clean_name
from acp_core.protocols.wire.conduct.answering.jobs import Job, Material

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
                await asyncio.to_thread(modes.private_folder, self._folder)
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
