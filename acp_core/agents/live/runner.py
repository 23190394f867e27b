"""``python -m acp_core.agents.live.runner``: holds a participant's live session.

It is started with the first turn, in the background, and takes one turn after the other: whoever
watches a turn (`acp_core.agents.live.turn`) gives it the next as a file, and reads how far it is
in the turn's journal. So it outlives who watches, and who comes later finds it at work. It ends
when nobody gives it a turn for long, and leaves nothing behind that its agent started.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from acp_core.agents import background, codec
from acp_core.agents.identity import Identity, marked, myself
from acp_core.agents.live import turn as live_turn
from acp_core.agents.live.connection import (
    Client,
    Connection,
    LiveSession,
    NoLiveSession,
    SessionFailed,
    end_all,
)
from acp_core.agents.live.gate import Gate, Judge
from acp_core.agents.live.gate import judge_of as of_scope
from acp_core.agents.live.requests import FORM
from acp_core.agents.live.state import End, Files, Held, Order, Turn
from acp_core.agents.live.turn import Reply, Steering
from acp_core.agents.live.updates import (
    AGENT,
    MOST_CALLS,
    RUNNER,
    Journal,
    SessionState,
    apply,
    begin_turn,
)
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.progress import string, table
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted

_LOOK = 5.0  # seconds between two looks while it is idle
_CANCEL = 4.0  # seconds for a cancelled turn to be answered
_FULL = 0.7  # share of the context from which on a new session is begun
_PERMISSION = "session/request_permission"
_OVER = "the turn was over"
_NEW = "new session with the turn's prompt, because "
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


class Runner:
    """Holds the session of a participant.

    Args:
        order: What it is asked for.
        judge: Decides what its agent asks permission for.
    """

    def __init__(self, order: Order, judge: Judge) -> None:
        self._order = order
        self._gate = Gate(order, judge, self._note)
        self._asked: deque[dict[str, Any]] = deque()  # requests for permission, as they came
        self._calls: dict[str, dict[str, Any]] = {}  # tool calls, as they were announced
        self._where = LoopDirectory(Path(order.place))
        self._files = Files(self._where)
        self._connection: Connection | None = None
        self._session: LiveSession | None = None
        self._state = SessionState()
        self._journal: Journal | None = None
        self._delivering: set[asyncio.Task[None]] = set()
        self._delivered: set[str] = set()  # ids of what was delivered in this turn
        self._one_by_one = asyncio.Lock()
        self._begun = utc_now()
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        before = self._files.load()
        same = before is not None and before.digest == order.digest
        self._changed = before is not None and before.session != "" and not same
        self._held = Held(
            myself(),
            digest=order.digest,
            session=before.session if before and same else "",
            used=before.used if before else None,
            number=before.number if before else 0,
        )

    async def run(self, ready: background.Ready) -> int:
        """Take turns until there are none any more. Returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._wake.set)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ask_to_stop)
        end_all(self._left_before)
        live_turn.discard_messages(self._files)
        self._save()
        ready()
        try:
            while await self._step():
                pass
        finally:
            await self._close()
        return 0

    def _left_before(self) -> list[Identity]:
        """What a runner before us left, when it was killed."""
        return [each for each in marked(*self._files.mark) if each != self._held.process]

    async def _step(self) -> bool:
        """Take the next turn, or wait for it. False where there will be none."""
        self._wake.clear()
        turn = self._files.take_turn()
        if turn is not None:
            await self._take(turn)
            return not self._stop.is_set() or self._leave()
        if self._stop.is_set() or self._is_over():
            return self._leave()
        if self._connection is not None and not self._connection.alive:
            await self._close()
        self._refuse_messages()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), _LOOK)
        return True

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._wake.set()

    def _is_over(self) -> bool:
        """Whether it was idle for long enough."""
        idle = utc_now() - (self._held.used or self._begun)
        if idle > timedelta(seconds=self._order.idle):
            return True
        return idle > timedelta(seconds=self._order.alone) and not self._where.is_locked()

    def _leave(self) -> bool:
        """Say that no more turns are taken; True where one was given in the same moment."""
        self._save(leaving=True)
        if self._stop.is_set() or not self._files.turn.exists():
            return False
        self._save(leaving=False)
        return True

    def _save(self, **changes: Any) -> None:
        self._held = replace(self._held, **changes)
        with contextlib.suppress(OSError):  # a full disk ends no session
            codec.write(self._files.held, self._held)

    async def _take(self, turn: Turn) -> None:
        """Take a turn, and write down how it ended."""
        self._save(number=turn.number)
        self._journal = Journal(Path(turn.journal))
        self._delivered = set()
        self._state = begin_turn(self._state)
        state = self._state
        self._note(
            turn={
                "session": state.session,
                "agent": state.agent,
                "version": state.version,
                "mode": state.mode,
                "before": state.before,
            }
        )
        end = End()
        try:
            await self._prompt(_text(turn.prompt), turn.number)
            end = End(1 if self._state.error else 0)
        except NoLiveSession as error:
            end = End(1, str(error))
            self._note(failed=str(error))
        except SessionFailed as error:
            end = End(1, crashed=not error.answered)
            self._note(failed=str(error))
            if not error.answered:
                await self._close()
        except OSError as error:
            end = End(1)
            self._note(failed=str(error))
        leaving = self._stop.is_set()  # whoever sees the end must not give it another turn
        self._save(used=utc_now(), turns=self._held.turns + 1, leaving=leaving)
        with contextlib.suppress(OSError):
            codec.write(Path(turn.end), end)

    async def _prompt(self, text: str, number: int) -> None:
        session = await self._ready()
        connection = session.connection
        before = await asyncio.to_thread(connection.processes)
        asked = asyncio.create_task(session.prompt(text))
        if not await self._answered(asked, session, number):
            self._note(note="The turn is cancelled.")
            self._gate.withdraw()
            await session.cancel()
            await asyncio.wait({asked}, timeout=_CANCEL)
            if asked.done():  # one program lets its commands go on
                await asyncio.to_thread(connection.end_commands, before)
        self._refuse_messages()
        if not asked.done():
            asked.cancel()
            raise SessionFailed("the agent did not end its turn when it was asked to")
        await asked

    async def _answered(
        self, asked: asyncio.Task[dict[str, Any]], session: LiveSession, number: int
    ) -> bool:
        """Wait until the turn is answered, and deliver messages meanwhile; False to cancel it."""
        while not asked.done():
            self._wake.clear()
            if self._stop.is_set() or live_turn.cancelled_by(self._where, number):
                return False
            for path, message in live_turn.messages(self._files):
                task = asyncio.create_task(self._deliver(session, path, message, number))
                self._delivering.add(task)
                task.add_done_callback(self._delivering.discard)
            woken = asyncio.create_task(self._wake.wait())
            await asyncio.wait({asked, woken}, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        return True

    async def _deliver(
        self, session: LiveSession, path: Path, message: Steering, number: int
    ) -> None:
        """Give the agent a message in the middle of its turn, and say what came of it."""
        if message.number != number:
            live_turn.reply(path, Reply(False, _OVER))
            return
        if not session.can_steer:
            live_turn.reply(
                path, Reply(False, "the agent takes no messages in the middle of a turn")
            )
            return
        async with self._one_by_one:
            if message.ids and self._delivered.issuperset(message.ids):
                live_turn.reply(path, Reply(True))
                return
            try:
                taken = await session.steer(message.text)
            except SessionFailed as error:
                live_turn.reply(path, Reply(False, str(error)))
                return
            if taken:
                self._delivered.update(message.ids)
                self._note(message=message.text, by=message.by, ids=list(message.ids))
        live_turn.reply(path, Reply(taken, "" if taken else _OVER))

    def _refuse_messages(self) -> None:
        """Messages that came too late for this turn."""
        for path, _ in live_turn.messages(self._files):
            live_turn.reply(path, Reply(False, _OVER))

    async def _ready(self) -> LiveSession:
        """The session, open, with room in its context."""
        session = self._session
        if self._connection is None or session is None:
            return await self._open()
        if self._state.size and self._state.used > _FULL * self._state.size:
            why = "the context of the session was nearly full"
            self._note(note="The context is nearly full: a new session begins.", opened=_NEW + why)
            await session.renew()
            self._save(session=session.id)
        return session

    async def _open(self) -> LiveSession:
        client = Client(self._answer, self._observe, lambda text: self._note(note=text))
        order, files = self._order, self._files
        self._connection = await Connection.open(order.command, files.errors, client, files.mark)
        self._save(agent=self._connection.identity)
        mark, place = files.mark
        session = LiveSession(
            self._connection,
            order.cwd,
            order.ask_mode,
            order.folders,
            order.server,
            {**order.server_env, mark: place},
        )
        used = self._held.used
        recent = used is not None and utc_now() - used < timedelta(minutes=1)
        try:
            await session.open(self._held.session, recent=recent, handshake=order.handshake)
        except SessionFailed:
            await self._close()
            raise
        self._note_opened(session, self._held.session)
        self._session = session
        self._save(session=session.id, steers=session.can_steer)
        return session

    def _note_opened(self, session: LiveSession, earlier: str) -> None:
        """Say in the turn's journal whether an earlier session goes on, and why it does not."""
        if session.continued:
            self._note(
                note=f"The session {earlier} is resumed.", opened=f"resumed session {earlier}"
            )
        elif earlier:
            self._note(
                note=f"The session {earlier} could not be resumed: a new one begins.",
                opened=_NEW + session.not_continued,
            )
        elif self._changed:
            self._changed = False
            self._note(opened=f"{_NEW}the agent or its settings changed")

    async def _close(self) -> None:
        """End the agent and everything that it started."""
        self._gate.withdraw()
        connection, self._connection, self._session = self._connection, None, None
        self._state = SessionState()
        if connection is not None:
            await connection.close()
            self._save(agent=None)

    def _observe(self, direction: str, message: dict[str, Any]) -> None:
        """Write a message down; the library calls this in the messages' order."""
        self._state = apply(self._state, direction, message)
        if direction == AGENT:
            self._notice(string(message.get("method")), message)
        if self._journal is not None:
            self._journal.write(direction, message, time.time())

    def _note(self, **message: Any) -> None:
        self._observe(RUNNER, message)

    def _notice(self, method: str, message: dict[str, Any]) -> None:
        """What is needed as it came when a request for permission or a form is answered."""
        params = table(message.get("params"))
        update = table(params.get("update"))
        call = string(update.get("toolCallId"))
        if method in (_PERMISSION, FORM) and "id" in message:  # a notification gets no answer
            self._asked.append(message)
        elif method == "$/cancel_request":
            self._gate.withdraw(str(params.get("requestId")))
        elif method == "session/update" and call:
            self._calls[call] = {**self._calls.get(call, {}), **update}
            while len(self._calls) > MOST_CALLS:
                del self._calls[next(iter(self._calls))]

    async def _answer(self, method: str, params: dict[str, Any]) -> object:
        """What the agent asks of us: permissions and answers. Files and terminals are its own."""
        if method not in (_PERMISSION, FORM):
            raise SessionFailed(f"{method}: not offered")
        message = self._asked.popleft()  # requests are answered in the order in which they came
        if method == FORM:
            return await self._gate.fill_in(message)
        call = string(table(table(message.get("params")).get("toolCall")).get("toolCallId"))
        return await self._gate.answer(message, self._calls.get(call))


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def main(judge_of: Callable[[Order], Judge] = of_scope) -> int:
    """Hold the session that is asked for.

    Args:
        judge_of: gives who decides what the agent asks permission for.

    Returns:
        The exit code.
    """
    return background.run_asked(
        Order, lambda order, ready: _run(order, judge_of(order), ready), NotStarted
    )


def _run(order: Order, judge: Judge, ready: background.Ready) -> int:
    logging.getLogger().addHandler(logging.NullHandler())  # the library's; the journal has it all
    atomic.private_folder(Files(LoopDirectory(Path(order.place))).folder)
    with contextlib.suppress(OSError, AttributeError):  # orphans of the agent become our children
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    return asyncio.run(Runner(order, judge).run(ready))


if __name__ == "__main__":
    sys.exit(main())
